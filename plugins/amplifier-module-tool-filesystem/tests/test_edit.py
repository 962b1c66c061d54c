"""`edit_file`: the text that is meant changes, and nothing else."""

from __future__ import annotations

import codecs
import os
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest

from amplifier_module_tool_filesystem import Filesystem
from amplifier_module_tool_filesystem.edit import Edit
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONValue

Mount = Callable[[Mapping[str, JSONValue]], Filesystem]


async def test_a_text_is_replaced(
    files: Filesystem, root: Path, events: list[tuple[str, object, object]]
) -> None:
    (root / "a.py").write_text("x = 1\ny = 2\n")
    (root / "a.py").chmod(0o700)

    result = await files.edit_file.execute(
        {"file_path": "a.py", "old_string": "y = 2", "new_string": "y = 30"}
    )

    assert result.output == {
        "file_path": str(root / "a.py"),
        "replacements_made": 1,
        "bytes_written": 13,
        "diff": "@@ -1,3 +1,3 @@\n x = 1\n-y = 2\n+y = 30\n ",
    }
    assert (root / "a.py").read_text() == "x = 1\ny = 30\n"
    assert stat.S_IMODE((root / "a.py").stat().st_mode) == 0o700
    assert events == [("artifact:write", str(root / "a.py"), 13)]


async def test_every_occurrence_is_replaced_on_demand(
    files: Filesystem, root: Path
) -> None:
    (root / "a.txt").write_text("a b a b a")

    result = await files.edit_file("a.txt", "a", "cc", replace_all=True)

    assert result["replacements_made"] == 3
    assert (root / "a.txt").read_text() == "cc b cc b cc"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one\r\ntwo\r\nthree\r\n", b"one\r\n2\r\n2b\r\nthree\r\n"),
        (codecs.BOM_UTF8 + b"one\ntwo\nthree", codecs.BOM_UTF8 + b"one\n2\n2b\nthree"),
        (b"one\rtwo\rthree", b"one\r2\r2b\rthree"),
        (
            codecs.BOM_UTF16_LE + "one\r\ntwo\r\nthree".encode("utf-16-le"),
            codecs.BOM_UTF16_LE + "one\r\n2\r\n2b\r\nthree".encode("utf-16-le"),
        ),
        (b"one\ntwo\r\nthree\n", b"one\n2\r\n2b\r\nthree\n"),
    ],
)
async def test_encoding_mark_and_line_ends_are_kept(
    files: Filesystem, root: Path, before: bytes, after: bytes
) -> None:
    (root / "a.txt").write_bytes(before)

    await files.edit_file("a.txt", "one\ntwo\n", "one\n2\n2b\n")

    assert (root / "a.txt").read_bytes() == after


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("", "x", "old_string is empty"),
        ("two", "two", "are equal"),
        ("one\n", "one\r\n", "differ only in line ends"),
        ("o", "0", r"is there 2 times, at line 1, 2;.*or set replace_all"),
        ("four", "4", "is not there; read the file again"),
        ("oen", "1", "the nearest line is 1: 'one'"),
        ("one\n  two", "1", "line 1 differs from it only in white space"),
        ("     2\ttwo", "2", "leave out the line numbers"),
        ("two", "\ud800", "half a surrogate pair"),
    ],
)
async def test_edit_that_cannot_be_meant_says_why_and_changes_nothing(
    files: Filesystem, root: Path, old: str, new: str, reason: str
) -> None:
    (root / "a.txt").write_text("one\n two\nthree\n")
    before = (root / "a.txt").stat()

    with pytest.raises(ToolError, match=reason):
        await files.edit_file("a.txt", old, new)

    after = (root / "a.txt").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(
    ("text", "old"),
    [
        (
            "\n".join(f"{3**number % 2**198:0198b}" for number in range(200, 3000)),
            f"{3**3001 % 2**198:0198b}",
        ),
        ("a\n" * 1_000_000, "a\n" * 2000 + "b"),
    ],
    ids=["alike", "equal"],
)
async def test_a_hint_costs_little_also_where_all_lines_are_alike(
    files: Filesystem, root: Path, text: str, old: str
) -> None:
    (root / "a.txt").write_text(text)
    started = time.process_time()

    with pytest.raises(ToolError, match="old_string is not there; the nearest line is"):
        await files.edit_file("a.txt", old, "new")

    assert time.process_time() - started < 5


async def test_many_occurrences_are_counted_and_the_first_are_named(
    files: Filesystem, root: Path
) -> None:
    (root / "a.txt").write_text("x\n" * 40)

    with pytest.raises(
        ToolError,
        match="there 40 times, at line 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more",
    ):
        await files.edit_file("a.txt", "x", "y")


async def test_what_is_no_text_cannot_be_edited(files: Filesystem, root: Path) -> None:
    (root / "a.bin").write_bytes(b"old\xff")
    (root / "sub").mkdir()

    with pytest.raises(
        ToolError, match=r"'a\.bin' \(4 bytes\): binary or unknown encoding: byte 3"
    ):
        await files.edit_file("a.bin", "old", "new")
    with pytest.raises(ToolError, match="is a directory, not a file"):
        await files.edit_file("sub", "old", "new")
    with pytest.raises(ToolError, match="no such file"):
        await files.edit_file("nothing.txt", "old", "new")


async def test_an_edited_file_has_a_largest_size(mount: Mount, root: Path) -> None:
    (root / "a.txt").write_text("0123456789")
    (root / "b.txt").write_text("01234567890")
    files = mount({"max_file_bytes": 10, "read_before_write": False})

    for path in ("a.txt", "b.txt"):
        with pytest.raises(ToolError, match="more than the 10 that one file may have"):
            await files.edit_file(path, "9", "nine")

    assert (root / "a.txt").read_text() == "0123456789"


async def test_edits_of_one_file_at_the_same_time_all_take_effect(
    files: Filesystem, root: Path
) -> None:
    (root / "a.txt").write_text("".join(f"<{number}>\n" for number in range(12)))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for number in range(12):
                group.start_soon(
                    files.edit_file, "a.txt", f"<{number}>", f"done {number}"
                )

    assert (root / "a.txt").read_text() == "".join(
        f"done {number}\n" for number in range(12)
    )


async def test_concurrent_edit_is_done_or_refused_never_lost(
    mount: Mount, root: Path
) -> None:
    (root / "a.txt").write_text("".join(f"<{number}>\n" for number in range(40)))
    sessions = [
        mount({"read_before_write": False}),
        mount({"read_before_write": False}),
    ]
    done: list[int] = []

    async def edit(files: Filesystem, number: int) -> None:
        try:
            await files.edit_file("a.txt", f"<{number}>", f"done {number}")
            done.append(number)
        except ToolError as error:
            assert "read the file again" in error.message

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for number in range(40):
                group.start_soon(edit, sessions[number % 2], number)

    text = (root / "a.txt").read_text()
    assert done
    assert [number for number in range(40) if f"done {number}\n" in text] == sorted(
        done
    )
    assert os.listdir(root) == ["a.txt"]


async def test_several_edits_are_made_one_after_the_other(
    files: Filesystem, root: Path
) -> None:
    (root / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    edits: list[JSONValue] = [
        {"old_string": "one", "new_string": "1"},
        {"old_string": "1\ntwo", "new_string": "two\ntwo"},
        {"old_string": "two", "new_string": "2", "replace_all": True},
    ]

    result = await files.edit_file.execute({"file_path": "a.txt", "edits": edits})

    assert isinstance(result.output, dict)
    assert result.output["replacements_made"] == 4
    assert result.output["diff"] == "@@ -1,4 +1,4 @@\n-one\n-two\n+2\n+2\n three\n "
    assert (root / "a.txt").read_bytes() == b"2\r\n2\r\nthree\r\n"


async def test_of_several_edits_all_are_made_or_none(
    files: Filesystem, root: Path
) -> None:
    (root / "a.txt").write_text("one\ntwo\n")
    edits = [
        Edit(old_string="one", new_string="1"),
        Edit(old_string="three", new_string="3"),
    ]

    with pytest.raises(
        ToolError, match=r"edit 2 of 2: .*old_string is not there.*nothing was changed"
    ):
        await files.edit_file("a.txt", edits=edits)
    with pytest.raises(ToolError, match="edit 1 of 2: old_string is empty"):
        await files.edit_file(
            "a.txt", edits=[Edit(old_string="", new_string="1"), *edits[:1]]
        )

    assert (root / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "old_string and new_string are missing"),
        ({"old_string": "one"}, "old_string and new_string are missing"),
        ({"edits": []}, "there is nothing to replace"),
        (
            {"edits": [{"old_string": "one", "new_string": "1"}], "replace_all": True},
            "give either edits",
        ),
        (
            {"edits": [{"old_string": "one", "new_string": "1"}], "old_string": "one"},
            "give either edits",
        ),
    ],
)
async def test_an_edit_is_given_in_one_form(
    files: Filesystem, root: Path, arguments: Mapping[str, JSONValue], reason: str
) -> None:
    (root / "a.txt").write_text("one\n")

    result = await files.edit_file.execute({"file_path": "a.txt", **arguments})

    assert result.error is not None
    assert reason in str(result.error["message"])


async def test_a_diff_shows_where_and_has_a_size(files: Filesystem, root: Path) -> None:
    (root / "a.txt").write_text("".join(f"{number}\n" for number in range(1, 10_001)))

    async def diff(old: str, new: str) -> str:
        return str((await files.edit_file("a.txt", old, new))["diff"])

    assert (
        await diff("\n5000\n", "\nfive\n")
        == "@@ -4997,7 +4997,7 @@\n 4997\n 4998\n 4999\n-5000\n+five\n 5001\n 5002\n 5003"
    )
    assert await diff("five", "x" * 1000) == (
        "@@ -4997,7 +4997,7 @@\n 4997\n 4998\n 4999\n-five\n+"
        + "x" * 499
        + " [cut]\n 5001\n 5002\n 5003"
    )
    assert (await diff("\n7\n", "\n" + "new\n" * 300)).endswith("more lines of diff]")
    assert (
        await diff("\n9999\n", "\n" + "new\n" * 3000)
        == "[diff left out, it is too long: the changes begin at line 10298]"
    )
