"""`grep` over more than one batch of files: the result is that of a search file by file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from amplifier_module_tool_filesystem import Filesystem, walk
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONValue

pytestmark = pytest.mark.process

Mount = Callable[[Mapping[str, JSONValue]], Filesystem]

MANY = 600
"""More files than two batches hold."""

CONTENTS = (
    b"Needle 12\n\nhay\n",
    b"hay\r\nneedle|\r\n",
    b"",
    b"\0",
    b"\xff",
    b"\n",
    "\u212aelvin nee\n".encode(),
    b"x" * 9,
)


@pytest.fixture
def many(root: Path) -> dict[str, bytes]:
    """Files of all kinds, small and large, with their content by path."""
    contents = {
        f"d{number % 7}/f{number:03}.txt": CONTENTS[number % 8] * (number % 3 + 1)
        for number in range(MANY)
    }
    contents |= {f"d3/large{number}": b"hay needle\n" * 20_000 for number in range(3)}
    for path, content in contents.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_bytes(content)
    return contents


def file_by_file(
    contents: Mapping[str, bytes], pattern: str, *, ignore_case: bool, limit: int
) -> dict[str, JSONValue]:
    """Search as simply as can be."""
    search = re.compile(pattern, re.IGNORECASE if ignore_case else 0).search
    matches: list[JSONValue] = []
    searched = binary = 0
    for path in sorted(contents, key=lambda path: path.split("/")):
        if b"\0" in contents[path] or b"\xff" in contents[path]:
            binary += 1
            continue
        searched += 1
        for number, line in enumerate(contents[path].decode().splitlines(), 1):
            if search(line):
                matches.append({"file": path, "line": number, "text": line})
        if len(matches) > limit:
            break
    result: dict[str, JSONValue] = {
        "matches": matches[:limit], "files_searched": searched, "more": len(matches) > limit
    }  # fmt: skip
    return result | {"skipped": {"binary": binary}} if binary else result


@pytest.mark.parametrize(
    "pattern", ["needle", r"\d\d", "k|12", r"needle\|$", "^$", "[Nn]eedle", "nowhere"]
)
async def test_many_files_are_searched_as_one_after_the_other(
    mount: Mount, many: dict[str, bytes], pattern: str
) -> None:
    for limit, ignore_case in (
        (1, True),
        (70, False),
        (100_000, False),
        (100_000, True),
    ):
        files = mount({"max_results": limit, "max_read_bytes": 1 << 30})

        found = await files.grep(pattern, ignore_case=ignore_case)

        assert found == file_by_file(
            many, pattern, ignore_case=ignore_case, limit=limit
        )


async def test_what_was_only_read_ahead_shows_nowhere(
    files: Filesystem, root: Path
) -> None:
    (root / ".gitignore").write_text("*.log\n")
    (root / "a.txt").write_text("x\nx\n")
    (root / "b.bin").write_bytes(b"\0")
    (root / "c.log").touch()

    found = await files.grep("x", max_results=1)
    rest = await files.grep("x")

    assert found["matches"] == [{"file": "a.txt", "line": 1, "text": "x"}]
    assert (
        found["files_searched"],
        found["more"],
        "skipped" in found,
        "ignored" in found,
    ) == (1, True, False, False)
    assert (rest["files_searched"], rest["skipped"], rest["ignored"]) == (
        1,
        {"binary": 1},
        1,
    )


async def test_a_pattern_that_hangs_in_a_later_batch_names_its_file(
    mount: Mount, root: Path
) -> None:
    for number in range(MANY):
        (root / f"f{number:03}").write_text("b\n")
    (root / "f400").write_text("a" * 100 + "b\n")

    with pytest.raises(
        ToolError, match=r"reached its time limit of 2 s at f400; simplify the pattern"
    ):
        await mount({"search_timeout": 2.0}).grep("(a+)+$")


async def test_time_up_between_two_answers_leaves_result_incomplete(
    files: Filesystem, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("x\n")
    # the start, the walk's look, the look before the answer
    times = iter([0.0, 0.0, 100.0])
    monkeypatch.setattr(walk, "time", SimpleNamespace(monotonic=lambda: next(times)))

    found = await files.grep("x")

    assert (found["files_searched"], found["matches"], found["more"]) == (0, [], False)
    assert (
        found["incomplete"]
        == "the time limit of 30 s was reached; narrow the path or the pattern"
    )
