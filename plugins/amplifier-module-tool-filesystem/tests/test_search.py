"""`grep`: lines of text files, under limits that hold even against a hostile pattern."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_module_tool_filesystem import Filesystem, _match_lines
from amplifier_module_tool_filesystem._match_lines import serve
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONValue

pytestmark = pytest.mark.process

Mount = Callable[[Mapping[str, JSONValue]], Filesystem]


linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

ENDLESS = "(a+)+$"
"""Takes for ever on a row of `a` with another letter at the end."""


def matchers() -> list[Path]:
    """Return the matching processes of this process, as folders of `/proc`."""
    found: list[Path] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command, status = (
                (folder / "cmdline").read_bytes(),
                (folder / "status").read_text(),
            )
        except OSError:
            continue
        if b"_match_lines.py" in command and f"PPid:\t{os.getpid()}\n" in status:
            found.append(folder)
    return found


@pytest.fixture
def endless(root: Path) -> Path:
    (root / "a.txt").write_text("a" * 100 + "b\n")
    return root


@pytest.fixture
def tree(root: Path) -> Path:
    (root / "src").mkdir()
    (root / "src" / "b.py").write_text("import os\n\ndef find():\n    return os.name\n")
    (root / "a.txt").write_text("Find me\nnothing\nfind again")
    (root / ".rc").write_text("find=hidden\n")
    return root


async def test_matching_lines_are_found_in_the_order_of_paths(
    files: Filesystem, tree: Path
) -> None:
    result = await files.grep.execute({"pattern": r"find\b"})

    assert result.output == {
        "matches": [
            {"file": "a.txt", "line": 3, "text": "find again"},
            {"file": "src/b.py", "line": 3, "text": "def find():"},
        ],
        "files_searched": 2,
        "more": False,
    }


async def test_case_can_be_ignored(files: Filesystem, tree: Path) -> None:
    found = await files.grep("FIND", path="a.txt", ignore_case=True)

    assert found["matches"] == [
        {"file": "a.txt", "line": 1, "text": "Find me"},
        {"file": "a.txt", "line": 3, "text": "find again"},
    ]


async def test_context_shows_the_lines_around_a_match(
    files: Filesystem, tree: Path
) -> None:
    found = await files.grep("def", context=1)

    assert found["matches"] == [
        {
            "file": "src/b.py",
            "line": 3,
            "text": "def find():",
            "before": [""],
            "after": ["    return os.name"],
        }
    ]


@pytest.mark.parametrize(
    ("glob", "searched"),
    [(None, 2), ("*.py", 1), ("*.md", 0), ("src/*", 1), (".rc", 1), ("*.{py,txt}", 2)],
)
async def test_a_glob_chooses_the_files(
    files: Filesystem, tree: Path, glob: str | None, searched: int
) -> None:
    assert (await files.grep("x", glob=glob))["files_searched"] == searched


async def test_a_path_chooses_a_directory_or_a_file(
    files: Filesystem, tree: Path
) -> None:
    assert (await files.grep("find", path="src"))["files_searched"] == 1
    assert (await files.grep("find", path="src/b.py"))["files_searched"] == 1
    with pytest.raises(ToolError, match="no such file or directory"):
        await files.grep("find", path="nowhere")


async def test_matches_are_bounded_by_call_and_by_configuration(
    mount: Mount, root: Path
) -> None:
    (root / "a.txt").write_text("x\n" * 10)
    files = mount({"max_results": 5})

    few, most, all_of_them = [
        await files.grep("x", max_results=limit) for limit in (2, 50, None)
    ]

    assert [found["more"] for found in (few, most, all_of_them)] == [True, True, True]
    assert few["matches"] == [
        {"file": "a.txt", "line": line, "text": "x"} for line in (1, 2)
    ]
    assert (
        most["matches"]
        == all_of_them["matches"]
        == [{"file": "a.txt", "line": line, "text": "x"} for line in (1, 2, 3, 4, 5)]
    )


async def test_exactly_as_many_matches_as_asked_for_are_not_more(
    files: Filesystem, root: Path
) -> None:
    (root / "a.txt").write_text("x\n" * 3)

    assert (await files.grep("x", max_results=3))["more"] is False


async def test_a_result_has_a_size(mount: Mount, root: Path) -> None:
    (root / "a.txt").write_text("x" * 100 + "\n" + "x" * 100 + "\n")

    found = await mount({"max_read_bytes": 50}).grep("x")

    assert found["matches"] == [{"file": "a.txt", "line": 1, "text": "x" * 100}]
    assert found["more"] is True


async def test_long_lines_are_cut_with_their_length(mount: Mount, root: Path) -> None:
    (root / "a.txt").write_text("x" * 100 + "find\n")

    found = await mount({"max_line_length": 5}).grep("find")

    assert found["matches"] == [
        {"file": "a.txt", "line": 1, "text": "xxxxx [line cut: 5 of 104 characters]"}
    ]


async def test_what_cannot_be_searched_is_counted(mount: Mount, root: Path) -> None:
    (root / "a.bin").write_bytes(b"find\0")
    (root / "b.txt").write_text("find" * 100)
    (root / "c.txt").write_text("find")
    (root / "d.txt").touch()
    os.mkfifo(root / "fifo")
    (root / "link").symlink_to("c.txt")

    found = await mount({"max_file_bytes": 50}).grep("find")

    assert found["matches"] == [{"file": "c.txt", "line": 1, "text": "find"}]
    assert found["skipped"] == {"binary": 1, "too_large": 1}
    assert found["files_searched"] == 2

    alone = await mount({"max_file_bytes": 50}).grep("find", path="b.txt")
    assert (alone["skipped"], alone["files_searched"]) == ({"too_large": 1}, 0)


async def test_encodings_and_line_ends_do_not_show(
    files: Filesystem, root: Path
) -> None:
    (root / "a.txt").write_bytes(
        codecs.BOM_UTF16_LE + "grün\r\nblau\r\n".encode("utf-16-le")
    )

    assert (await files.grep("^blau$"))["matches"] == [
        {"file": "a.txt", "line": 2, "text": "blau"}
    ]


async def test_the_end_of_the_last_line_is_no_line(
    files: Filesystem, root: Path
) -> None:
    (root / "a.txt").write_text("x\n\n")

    assert (await files.grep("^$"))["matches"] == [
        {"file": "a.txt", "line": 2, "text": ""}
    ]


@pytest.mark.parametrize(
    ("pattern", "context", "max_results", "reason"),
    [
        ("", 0, None, "the pattern is empty"),
        ("(", 0, None, r"'\(' is no regular expression: missing \)"),
        ("x" * 1001, 0, None, "at most 1000 characters"),
        ("(" * 500 + ")" * 500, 0, None, "is no regular expression"),
        ("x", -1, None, "context is between 0 and 20"),
        ("x", 21, None, "context is between 0 and 20"),
        ("x", 0, 0, "max_results is at least 1"),
    ],
)
async def test_a_search_that_means_nothing_says_why(
    files: Filesystem, pattern: str, context: int, max_results: int | None, reason: str
) -> None:
    with pytest.raises(ToolError, match=reason):
        await files.grep(pattern, context=context, max_results=max_results)


async def test_endless_pattern_is_stopped_and_blocks_nobody(
    mount: Mount, endless: Path
) -> None:
    """In this process the pattern would hold the interpreter for longer than the universe is old."""
    files = mount({"search_timeout": 1.5})
    rounds = 0

    async def watch() -> None:
        nonlocal rounds
        while True:
            await anyio.lowlevel.checkpoint()
            rounds += 1

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            with pytest.raises(
                ToolError,
                match=r"reached its time limit of 1\.5 s at a\.txt; simplify the pattern",
            ):
                await files.grep(ENDLESS)
            group.cancel_scope.cancel()

    assert rounds > 100  # where the interpreter is held, the search is one round
    assert matchers() == []


async def test_a_cancelled_search_ends_soon_and_leaves_no_process(
    files: Filesystem, endless: Path
) -> None:
    with anyio.fail_after(10), anyio.move_on_after(0.3) as scope:
        await files.grep(ENDLESS)

    assert scope.cancelled_caught
    assert matchers() == []


@linux
async def test_matching_process_sees_no_secrets_and_death_is_error(
    files: Filesystem, endless: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "canary")
    environments: list[bytes] = []

    async def look_and_kill() -> None:
        while not environments:
            await anyio.lowlevel.checkpoint()
            for folder in matchers():
                environments.append((folder / "environ").read_bytes())
                os.kill(int(folder.name), signal.SIGKILL)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(look_and_kill)
            with pytest.raises(
                ToolError, match=r"the process that matches .* ended at"
            ):
                await files.grep(ENDLESS)

    assert b"canary" not in b"".join(environments)


async def test_a_search_needs_a_process_and_says_when_there_is_none(
    files: Filesystem, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tree / "nothing"))

    with pytest.raises(ToolError, match="cannot be started: No such file or directory"):
        await files.grep("x")


@linux
async def test_a_file_that_cannot_be_read_is_counted(mount: Mount) -> None:
    """The first page of a process's memory is never there."""
    found = await mount(
        {"allowed_read_paths": ["/proc/self"], "denied_read_paths": []}
    ).grep("x", path="/proc/self/mem")

    assert (found["skipped"], found["files_searched"]) == ({"unreadable": 1}, 0)


@linux
async def test_a_pattern_that_takes_much_memory_ends_its_process(
    mount: Mount, root: Path
) -> None:
    (root / "a.txt").write_text("a" * 4_000_000)
    files = mount({"max_file_bytes": 4_000_000})

    with pytest.raises(
        ToolError,
        match=r"the process that matches .* ended at a\.txt; simplify the pattern",
    ):
        await files.grep("^(?:(.)|b)*c")
    assert (await files.grep("a+b?$", context=1))["files_searched"] == 1


async def test_many_short_lines_have_the_memory_they_need(
    mount: Mount, root: Path
) -> None:
    (root / "a.txt").write_text("āb\n" * 1_000_000, encoding="utf-8")

    found = await mount({"max_file_bytes": 4_000_000}).grep("c")

    assert (found["files_searched"], found["matches"]) == (1, [])


def test_a_lower_limit_of_the_system_is_kept() -> None:
    """Whoever runs under one could not set a higher one, and would find nothing."""
    limited = "import os, resource as r, sys; r.setrlimit(r.RLIMIT_CPU, (9, 9)); os.execv(sys.argv[1], sys.argv[1:])"
    program = [sys.executable, "-I", "-S", _match_lines.__file__, "31", str(1 << 30)]

    ended = subprocess.run(
        [sys.executable, "-c", limited, *program],
        input=b'{"pattern": "b", "ignore_case": false}\n3 1\na\nb',
        capture_output=True,
        check=False,
    )

    assert (ended.stdout, ended.stderr) == (b"{}\n[1]\n", b"")


LINES = st.lists(
    st.text(
        st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=5
    ),
    max_size=8,
)


@given(
    batches=st.lists(st.lists(LINES, min_size=1, max_size=3), max_size=3),
    limit=st.integers(1, 5),
    ignore_case=st.booleans(),
)
def test_the_matching_program_answers_each_text_with_its_lines(
    batches: list[list[list[str]]], limit: int, ignore_case: bool
) -> None:
    requests = io.BytesIO(
        json.dumps({"pattern": "[a-f]", "ignore_case": ignore_case}).encode() + b"\n"
    )
    requests.seek(0, io.SEEK_END)
    for texts in batches:
        data = ["\n".join(lines).encode() for lines in texts]
        header = " ".join(str(number) for number in (*map(len, data), limit))
        requests.write(b"".join([header.encode(), b"\n", *data]))
    requests.seek(0)
    answers = io.BytesIO()

    serve(requests, answers)

    wanted = re.compile("[a-f]", re.IGNORECASE if ignore_case else 0)
    expected = [
        [index for index, line in enumerate(lines) if wanted.search(line)][:limit]
        for texts in batches
        for lines in texts
    ]
    assert [json.loads(line) for line in answers.getvalue().splitlines()] == [
        {},
        *expected,
    ]


def test_the_matching_program_ends_at_a_pattern_that_is_none() -> None:
    answers = io.BytesIO()

    serve(io.BytesIO(b'{"pattern": "[", "ignore_case": false}\n3 1\nabc'), answers)
    serve(io.BytesIO(b'{"pattern": "(?u)(?a)x", "ignore_case": false}\n'), answers)

    assert [json.loads(line) for line in answers.getvalue().splitlines()] == [
        {"error": "unterminated character set at position 0"},
        {"error": "ASCII and UNICODE flags are incompatible"},
    ]
