"""What the system refuses to this user is said, counted, and changes nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_module_tool_filesystem import Filesystem, FilesystemConfig
from amplifier_sdk.errors import ToolError

NOBODY = 65534


@pytest.fixture
def closed() -> Iterator[Path]:
    """A directory with parts that may not be entered, read or written; the tests are no superuser in it."""
    root = Path(tempfile.mkdtemp())
    (root / "locked").mkdir()
    (root / "fixed").mkdir()
    (root / "names").mkdir()
    for path in (
        "locked/a.txt",
        "fixed/a.txt",
        "names/a.txt",
        "open.txt",
        "locked.txt",
        "fixed.txt",
    ):
        (root / path).write_text("find\n")
    is_superuser = os.geteuid() == 0
    if is_superuser:
        for place in (root, *root.rglob("*")):
            os.chown(place, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    modes = {
        "locked": 0o000,
        "fixed": 0o555,
        "names": 0o444,
        "locked.txt": 0o000,
        "fixed.txt": 0o444,
    }
    for path, mode in modes.items():
        (root / path).chmod(mode)
    yield root
    for directory in ("locked", "fixed", "names"):
        (root / directory).chmod(0o755)
    if is_superuser:
        os.seteuid(0)
    shutil.rmtree(root)


@pytest.fixture
def files(closed: Path) -> Filesystem:
    return Filesystem(
        FilesystemConfig(working_dir=str(closed), read_before_write=False),
        ModuleCoordinator(),
    )


@pytest.mark.parametrize("path", ["locked.txt", "locked/a.txt"])
async def test_what_may_not_be_read_is_refused(files: Filesystem, path: str) -> None:
    with pytest.raises(
        ToolError, match="permission denied: this process lacks the permission"
    ):
        await files.read_file(path)


@pytest.mark.parametrize(
    "path",
    ["fixed.txt", "fixed/a.txt", "fixed/new.txt", "locked/new.txt", "fixed/new/a.txt"],
)
async def test_what_may_not_be_written_is_refused_and_stays(
    files: Filesystem, closed: Path, path: str
) -> None:
    with pytest.raises(
        ToolError, match="permission denied: this process lacks the permission"
    ):
        await files.write_file(path, "new")

    assert (closed / "fixed.txt").read_text() == "find\n"
    assert os.listdir(closed / "fixed") == ["a.txt"]


async def test_a_list_counts_the_directories_it_could_not_enter(
    files: Filesystem,
) -> None:
    listed = await files.list_directory(depth=2)

    assert listed["unreadable_directories"] == 1
    with pytest.raises(ToolError, match="permission denied"):
        await files.list_directory("locked")


@pytest.mark.skipif(
    os.geteuid() == 0, reason="the interpreter of the superuser may be closed to others"
)
async def test_a_search_counts_what_it_could_not_read(files: Filesystem) -> None:
    found = await files.grep("find")

    assert found["matches"] == [
        {"file": path, "line": 1, "text": "find"}
        for path in ("fixed/a.txt", "fixed.txt", "open.txt")
    ]
    assert (found["skipped"], found["unreadable_directories"]) == ({"unreadable": 1}, 1)
    assert found["unreadable_entries"] == 1


async def test_entries_that_cannot_be_looked_at_end_no_walk(
    files: Filesystem, closed: Path
) -> None:
    """A directory may let its names be read and nothing more, and a mount that is gone says less."""
    found = await files.glob("**/*.txt")

    assert found["matches"] == ["fixed/a.txt", "fixed.txt", "locked.txt", "open.txt"]
    assert (found["unreadable_directories"], found["unreadable_entries"]) == (1, 1)
    with pytest.raises(ToolError, match="not everything in it can be read"):
        await files.delete("names", recursive=True)


async def test_a_move_that_is_refused_leaves_no_second_name(
    files: Filesystem, closed: Path
) -> None:
    with pytest.raises(ToolError, match="permission denied"):
        await files.move("fixed/a.txt", "b.txt")

    assert not (closed / "b.txt").exists()
    assert (closed / "fixed" / "a.txt").stat().st_nlink == 1
