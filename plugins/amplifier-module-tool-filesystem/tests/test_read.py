"""`read_file`: a page of any text file, in bounded memory."""

from __future__ import annotations

import codecs
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest

from amplifier_module_tool_filesystem import Filesystem
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

Mount = Callable[[Mapping[str, JSONValue]], Filesystem]


async def read(
    files: Filesystem, path: str, *, offset: int = 1, limit: int = 2000
) -> JSONObject:
    """Read a page of text."""
    page = await files.read_file(path, offset=offset, limit=limit)
    assert isinstance(page, dict)
    return page


async def test_a_file_is_read_with_line_numbers(
    files: Filesystem, root: Path, events: list[tuple[str, object, object]]
) -> None:
    (root / "a.txt").write_text("one\ntwo\n\nfour")

    result = await files.read_file.execute({"file_path": "a.txt"})

    assert result.success
    assert result.output == {
        "file_path": str(root / "a.txt"),
        "content": "     1\tone\n     2\ttwo\n     3\t\n     4\tfour",
        "total_lines": 4,
        "lines_read": 4,
        "offset": 1,
        "more": False,
        "truncated": False,
    }
    assert events == [("artifact:read", str(root / "a.txt"), 14)]


async def test_offset_and_limit_choose_the_lines(files: Filesystem, root: Path) -> None:
    (root / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 101)))

    page = await read(files, "a.txt", offset=42, limit=2)

    assert page["content"] == "    42\tline 42\n    43\tline 43"
    assert (page["lines_read"], page["total_lines"], page["more"]) == (2, 100, True)


async def test_two_thousand_lines_are_the_default(
    files: Filesystem, root: Path
) -> None:
    (root / "a.txt").write_text("x\n" * 2001)

    page = await read(files, "a.txt")

    assert (page["lines_read"], page["total_lines"], page["more"]) == (2000, 2001, True)


@pytest.mark.parametrize(("offset", "limit"), [(0, 1), (-1, 1), (1, 0)])
async def test_a_page_that_means_nothing_is_refused(
    files: Filesystem, root: Path, offset: int, limit: int
) -> None:
    (root / "a.txt").write_text("x\n")

    with pytest.raises(ToolError, match="offset and limit are at least 1"):
        await read(files, "a.txt", offset=offset, limit=limit)


async def test_an_empty_file_is_read_with_a_warning(
    files: Filesystem, root: Path
) -> None:
    (root / "a.txt").touch()

    page = await read(files, "a.txt")

    assert (page["content"], page["total_lines"], page["warning"]) == (
        "",
        0,
        "The file is empty.",
    )


async def test_an_offset_behind_the_end_is_answered_with_a_warning(
    files: Filesystem, root: Path
) -> None:
    (root / "a.txt").write_text("one\ntwo\n")

    page = await read(files, "a.txt", offset=9)

    assert page["warning"] == "The file has 2 lines; offset 9 is behind the last one."
    assert (page["lines_read"], page["more"]) == (0, False)


async def test_a_long_line_is_cut_with_its_true_length(
    mount: Mount, root: Path
) -> None:
    (root / "a.txt").write_text("short\n" + "x" * 200_000 + "\nafter\n")

    page = await read(mount({"max_line_length": 10}), "a.txt")

    assert (
        page["content"]
        == "     1\tshort\n     2\txxxxxxxxxx [line cut: 10 of 200000 characters]\n     3\tafter"
    )
    assert page["truncated"] is True


async def test_a_result_has_a_size_and_says_where_to_go_on(
    mount: Mount, root: Path
) -> None:
    (root / "a.txt").write_text("123456789\n" * 100)
    files = mount({"max_read_bytes": 35})

    first = await read(files, "a.txt")
    assert (first["lines_read"], first["truncated"], first["more"]) == (3, True, True)
    assert first["warning"] == "The result is full; continue with offset=4."
    assert first["total_lines"] == 100

    second = await read(files, "a.txt", offset=4)
    assert second["lines_read"] == 3


async def test_a_page_holds_at_least_one_line(mount: Mount, root: Path) -> None:
    (root / "a.txt").write_text("123456789\nabc\n")

    assert (await read(mount({"max_read_bytes": 1}), "a.txt"))["lines_read"] == 1


async def test_a_file_too_long_to_count_has_no_total(mount: Mount, root: Path) -> None:
    (root / "a.txt").write_text("line\n" * 1_000_000)

    page = await read(mount({"max_scan_bytes": 100_000}), "a.txt", limit=5)

    assert (page["total_lines"], page["more"], page["lines_read"]) == (None, True, 5)


@pytest.mark.parametrize(
    "data",
    [
        b"one\r\nzwei\r\n",
        b"one\rzwei\r",
        codecs.BOM_UTF8 + b"one\nzwei",
        codecs.BOM_UTF16_LE + "one\r\nzwei".encode("utf-16-le"),
        codecs.BOM_UTF16_BE + "one\nzwei\n".encode("utf-16-be"),
    ],
)
async def test_encodings_and_line_ends_do_not_show(
    files: Filesystem, root: Path, data: bytes
) -> None:
    (root / "a.txt").write_bytes(data)

    assert (await read(files, "a.txt"))["content"] == "     1\tone\n     2\tzwei"


async def test_a_binary_file_is_refused_with_its_size(
    files: Filesystem, root: Path
) -> None:
    (root / "a.bin").write_bytes(b"\xfaELF\r\n\x1a\n" + bytes(100))

    with pytest.raises(
        ToolError, match=r"'a\.bin' \(108 bytes\): binary or unknown encoding: line 1"
    ):
        await read(files, "a.bin")


async def test_text_before_binary_data_can_be_read(
    files: Filesystem, root: Path
) -> None:
    (root / "a.bin").write_bytes(b"one\ntwo\n\0\0\0")

    with pytest.raises(
        ToolError, match=r"line 3 .* can be read with offset=1, limit=2"
    ):
        await read(files, "a.bin")

    assert (await read(files, "a.bin", offset=1, limit=2))[
        "content"
    ] == "     1\tone\n     2\ttwo"


async def test_a_directory_is_refused_with_the_tool_that_lists_it(
    files: Filesystem, root: Path
) -> None:
    with pytest.raises(
        ToolError, match=r"'\.': is a directory, not a file; list_directory"
    ):
        await read(files, ".")


async def test_a_missing_file_is_refused_with_the_nearest_name(
    files: Filesystem, root: Path
) -> None:
    (root / "readme.md").touch()

    result = await files.read_file.execute({"file_path": "raedme.md"})

    assert not result.success
    assert result.error == {
        "message": "'raedme.md': there is no such file or directory; did you mean 'readme.md'?"
    }


@pytest.mark.timeout(10)
async def test_a_fifo_does_not_block(files: Filesystem, root: Path) -> None:
    os.mkfifo(root / "fifo")

    with pytest.raises(ToolError, match="is a FIFO, not a file"):
        await read(files, "fifo")


async def test_a_name_that_is_no_utf8_is_reported_with_escapes(
    files: Filesystem, root: Path
) -> None:
    (root / os.fsdecode(b"caf\xe9")).write_text("x\n")
    (root / "link").symlink_to(os.fsdecode(b"caf\xe9"))

    assert (await read(files, "link"))["file_path"] == rf"{root}/caf\udce9"


async def test_a_long_read_ends_soon_after_its_cancellation(
    files: Filesystem, root: Path
) -> None:
    with (root / "huge.txt").open("wb") as file:
        file.truncate(64 << 30)
    started = time.process_time()

    with anyio.move_on_after(0.1) as scope:
        await read(files, "huge.txt", offset=2)

    assert scope.cancelled_caught
    assert time.process_time() - started < 5


MEMORY_PROGRAM = """
import pathlib, re, resource, sys
import anyio
from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_module_tool_filesystem import Filesystem, FilesystemConfig

def most():
    status = pathlib.Path("/proc/self/status")
    if status.exists():  # ru_maxrss begins with the most of the process that started this one
        return int(re.search("VmHWM: *([0-9]+)", status.read_text().expandtabs())[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)

async def main():
    files = Filesystem(FilesystemConfig(working_dir=sys.argv[2]), ModuleCoordinator())
    await files.read_file("small.txt")
    before = most()
    page = await files.read_file(sys.argv[3], limit=5)
    print(page["lines_read"], most() - before)

anyio.run(main, backend=sys.argv[1])
"""


@pytest.mark.process
@pytest.mark.parametrize("kind", ["gigabyte-behind", "endless-line"])
def test_a_page_of_a_huge_file_needs_little_memory(
    root: Path, anyio_backend_name: str, kind: str
) -> None:
    """Five lines of a file of 1 GB, and a line of 128 MB, each grow the process by less than 64 MB."""
    (root / "small.txt").write_text("x\n")
    with (root / "huge.txt").open("wb") as file:
        if kind == "gigabyte-behind":
            file.write(b"line\n" * 10)
            file.truncate(1 << 30)
        else:
            for _ in range(128):
                file.write(b"x" * (1 << 20))
            file.write(b"\n" + b"line\n" * 10)

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            MEMORY_PROGRAM,
            anyio_backend_name,
            str(root),
            "huge.txt",
        ],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        },
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    lines_read, grown = map(int, done.stdout.split())
    assert lines_read == 5
    assert grown < 64 * 1024
