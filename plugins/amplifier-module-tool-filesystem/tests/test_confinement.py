"""No tool reaches outside what it may use, and none raises anything but a `ToolError`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from amplifier_module_tool_filesystem import Filesystem
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import ToolResult

HOSTILE = [
    "../secret.txt",
    "sub/../../secret.txt",
    "./.././secret.txt",
    "{root}/../secret.txt",
    "{root}-evil/secret.txt",
    "../work-evil/secret.txt",
    "/etc/passwd",
    "/proc/self/environ",
    "//etc/passwd",
    "~root/.profile",
    "~nosuchuser",
    "out/secret.txt",
    "out",
    "abs/etc/passwd",
    "file-out",
    "chain",
    "sub/up/secret.txt",
    "loop",
    "loop/x",
    "a\0b",
    "\0",
    "",
    "a\ud800",
    "x" * 300,
    "x/" * 3000,
    "..",
    "../",
    "/",
    "/dev/zero",
    "..\\secret.txt",
    "%2e%2e/secret.txt",
    "file:///etc/passwd",
    "fi\u202ele",
    "$HOME/.profile",
    "..;/secret.txt",
]


@pytest.fixture
def maze(root: Path, tmp_path: Path) -> Path:
    (root / "sub").mkdir()
    (root / "out").symlink_to(tmp_path)
    (root / "abs").symlink_to("/")
    (root / "file-out").symlink_to("../secret.txt")
    (root / "chain").symlink_to("out/secret.txt")
    (root / "sub" / "up").symlink_to("../..")
    (root / "loop").symlink_to("loop")
    return root


def calls(
    files: Filesystem, path: str
) -> list[Callable[[], Coroutine[object, object, JSONObject | ToolResult]]]:
    return [
        lambda: files.read_file(path),
        lambda: files.write_file(path, "overwritten"),
        lambda: files.edit_file(path, "secret", "overwritten"),
        lambda: files.move("mine", path),
        lambda: files.move(path, "moved"),
        lambda: files.delete(path),
        lambda: files.list_directory(path),
        lambda: files.glob("**/*", path),
        lambda: files.grep("secret", path),
    ]


@pytest.mark.parametrize("path", HOSTILE)
async def test_a_hostile_path_reaches_nothing(
    files: Filesystem, maze: Path, tmp_path: Path, path: str
) -> None:
    outside = {
        file: file.read_text()
        for file in (tmp_path / "secret.txt", tmp_path / "work-evil" / "secret.txt")
    }
    names = sorted(tmp_path.iterdir())

    for call in calls(files, path.format(root=maze)):
        try:
            result = await call()
        except ToolError as error:
            assert "top secret" not in error.message
        else:
            assert "top secret" not in str(result)
            shown = result.output if isinstance(result, ToolResult) else result
            assert isinstance(shown, dict)
            assert str(shown.get("file_path", maze)).startswith(f"{maze}")

    assert {file: file.read_text() for file in outside} == outside
    assert sorted(tmp_path.iterdir()) == names


@pytest.mark.process
async def test_a_search_does_not_leave_by_a_link(files: Filesystem, maze: Path) -> None:
    (maze / "mine.txt").write_text("no secret\n")

    found = await files.grep("secret")
    listed = await files.glob("**/*secret*")

    assert found["matches"] == [{"file": "mine.txt", "line": 1, "text": "no secret"}]
    assert listed["matches"] == []
