"""`write_file`: a whole file, exactly as given, or an error and the old file."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest

from amplifier_module_tool_filesystem import Filesystem
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONValue

Mount = Callable[[Mapping[str, JSONValue]], Filesystem]


async def test_a_file_and_its_directories_are_created(
    files: Filesystem, root: Path, events: list[tuple[str, object, object]]
) -> None:
    result = await files.write_file.execute(
        {"file_path": "a/b/c.txt", "content": "grün\r\n"}
    )

    assert result.output == {
        "file_path": str(root / "a/b/c.txt"),
        "bytes": 7,
        "created": True,
    }
    assert (root / "a/b/c.txt").read_bytes() == "grün\r\n".encode()
    assert events == [("artifact:write", str(root / "a/b/c.txt"), 7)]


async def test_an_existing_file_is_replaced_and_keeps_its_mode(
    files: Filesystem, root: Path
) -> None:
    (root / "run.sh").write_text("old")
    (root / "run.sh").chmod(0o750)

    result = await files.write_file("run.sh", "new")

    assert result["created"] is False
    assert result["diff"] == "@@ -1 +1 @@\n-old\n+new"
    assert (root / "run.sh").read_text() == "new"
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o750


async def test_of_sessions_that_write_a_new_file_at_once_one_does(
    mount: Mount, root: Path
) -> None:
    written: list[str] = []
    refused: list[str] = []

    async def write(files: Filesystem, text: str) -> None:
        try:
            await files.write_file("a.txt", text)
        except ToolError as error:
            refused.append(error.message)
        else:
            written.append(text)

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(write, mount({}), str(number))

    assert written == [(root / "a.txt").read_text()]
    assert len(refused) == 3
    assert os.listdir(root) == ["a.txt"]


async def test_writing_through_a_link_writes_its_target(
    files: Filesystem, root: Path
) -> None:
    (root / "target.txt").write_text("old")
    (root / "link.txt").symlink_to("target.txt")

    result = await files.write_file("link.txt", "new")

    assert result["file_path"] == str(root / "target.txt")
    assert (root / "link.txt").is_symlink()
    assert (root / "target.txt").read_text() == "new"


@pytest.mark.parametrize("content", ["half \ud83d a pair", "a NUL \0"])
async def test_content_that_no_file_can_hold_leaves_the_old_file(
    files: Filesystem,
    root: Path,
    content: str,
    events: list[tuple[str, object, object]],
) -> None:
    (root / "a.txt").write_text("old")

    with pytest.raises(ToolError, match=r"the text holds .* at line 1, column \d+"):
        await files.write_file("a.txt", content)

    assert (root / "a.txt").read_text() == "old"
    assert os.listdir(root) == ["a.txt"]
    assert events == []


@pytest.mark.parametrize("path", [".", "sub", "sub/", "new/"])
async def test_a_directory_is_not_written_over(
    files: Filesystem, root: Path, path: str
) -> None:
    (root / "sub").mkdir()

    with pytest.raises(
        ToolError, match=r"is a directory, not a file|names a directory"
    ):
        await files.write_file(path, "new")

    assert os.listdir(root) == ["sub"]


@pytest.mark.timeout(10)
async def test_a_fifo_is_not_written_to(files: Filesystem, root: Path) -> None:
    os.mkfifo(root / "fifo")

    with pytest.raises(ToolError, match="is a FIFO, not a file"):
        await files.write_file("fifo", "new")


async def test_a_file_has_a_largest_size(mount: Mount, root: Path) -> None:
    files = mount({"max_file_bytes": 10})
    await files.write_file("a.txt", "0123456789")

    with pytest.raises(ToolError, match="11 bytes are more than the 10"):
        await files.write_file("a.txt", "0123456789a")

    assert (root / "a.txt").read_text() == "0123456789"


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        ".amplifier/settings.yaml",
        "sub/.git/config",
        ".git",
        "link/hooks/x",
    ],
)
async def test_what_others_execute_is_protected_by_default(
    files: Filesystem, root: Path, path: str
) -> None:
    (root / ".git").mkdir()
    (root / "link").symlink_to(".git")

    with pytest.raises(
        ToolError, match=r"is protected by the rule '\.(git|amplifier)'"
    ):
        await files.write_file(path, "#!/bin/sh")
    with pytest.raises(ToolError, match="is protected by the rule"):
        await files.edit_file(path, "a", "b")

    assert os.listdir(root / ".git") == []


FULL_DISK_PROGRAM = """
import resource, sys
import anyio
from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_module_tool_filesystem import Filesystem, FilesystemConfig

async def main():
    files = Filesystem(FilesystemConfig(working_dir=sys.argv[2], read_before_write=False), ModuleCoordinator())
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
    for result in (
        await files.write_file.execute({"file_path": "a.txt", "content": "x" * 100_000}),
        await files.edit_file.execute({"file_path": "a.txt", "old_string": "old", "new_string": "x" * 100_000}),
    ):
        print(result.error["message"])

anyio.run(main, backend=sys.argv[1])
"""


@pytest.mark.process
def test_a_write_that_fails_half_way_leaves_the_old_file(
    root: Path, anyio_backend_name: str
) -> None:
    (root / "a.txt").write_text("old")

    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK_PROGRAM, anyio_backend_name, str(root)],
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
    assert done.stdout.count("the old content is untouched") == 2
    assert (root / "a.txt").read_text() == "old"
    assert os.listdir(root) == ["a.txt"]
