"""`move` and `delete`: exactly what is named, only where it may be, and never something in its place."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from amplifier_module_tool_filesystem import Filesystem
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONValue

Mount = Callable[[Mapping[str, JSONValue]], Filesystem]
Heard = list[tuple[str, object, object]]


def content(root: Path) -> dict[str, str | None]:
    """Everything below a directory: the text of files, the targets of links, `None` for directories."""
    return {
        str(place.relative_to(root)): f"-> {os.readlink(place)}"
        if place.is_symlink()
        else None
        if place.is_dir()
        else place.read_text()
        for place in sorted(root.rglob("*"))
    }


async def test_a_file_is_moved_and_directories_are_made(
    files: Filesystem, root: Path, events: Heard
) -> None:
    (root / "a.txt").write_text("text")
    (root / "a.txt").chmod(0o640)

    result = await files.move("a.txt", "new/deep/b.txt")

    moved = root / "new/deep/b.txt"
    assert result == {
        "source": str(root / "a.txt"),
        "destination": str(moved),
        "type": "file",
    }
    assert content(root) == {"new": None, "new/deep": None, "new/deep/b.txt": "text"}
    assert moved.stat().st_mode & 0o777 == 0o640
    assert moved.stat().st_nlink == 1
    assert events == [
        ("artifact:write", str(root / "a.txt"), 0),
        ("artifact:write", str(moved), 4),
    ]


async def test_a_directory_is_moved_with_all_that_is_in_it(
    files: Filesystem, root: Path
) -> None:
    (root / "old" / "sub").mkdir(parents=True)
    (root / "old" / "sub" / "a.txt").write_text("text")

    await files.move("old", "new")

    assert content(root) == {"new": None, "new/sub": None, "new/sub/a.txt": "text"}


async def test_a_link_is_moved_and_deleted_itself(
    files: Filesystem, root: Path
) -> None:
    (root / "target").write_text("text")
    (root / "link").symlink_to("target")

    assert (await files.move("link", "moved"))["type"] == "link"
    assert content(root) == {"moved": "-> target", "target": "text"}

    assert (await files.delete("moved"))["type"] == "link"
    assert content(root) == {"target": "text"}


async def test_nothing_is_written_over(files: Filesystem, root: Path) -> None:
    (root / "a.txt").write_text("a")
    (root / "b.txt").write_text("b")
    (root / "sub").mkdir()
    before = content(root)

    for destination in ("b.txt", "sub"):
        with pytest.raises(ToolError, match="something is there already"):
            await files.move("a.txt", destination)
    with pytest.raises(ToolError, match="ends with a slash"):
        await files.move("a.txt", "sub/")
    with pytest.raises(ToolError, match="inside of what is to be moved"):
        await files.move("sub", "sub/x")
    await files.move("a.txt", "./a.txt")

    assert content(root) == before


async def test_a_file_that_appears_at_the_new_name_meanwhile_stays(
    files: Filesystem, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("a")
    link = os.link

    def link_late(*arguments: object, **options: object) -> None:
        (root / "b.txt").write_text("theirs")
        link(*arguments, **options)  # type: ignore[arg-type]  # passed on as they are

    monkeypatch.setattr(os, "link", link_late)

    with pytest.raises(ToolError, match="file exists"):
        await files.move("a.txt", "b.txt")

    assert content(root) == {"a.txt": "a", "b.txt": "theirs"}


@pytest.mark.parametrize(("code", "moved"), [(errno.EPERM, True), (errno.EXDEV, False)])
async def test_a_file_system_without_hard_links_renames(
    files: Filesystem,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    moved: bool,
) -> None:
    (root / "a.txt").write_text("a")

    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)

    if moved:
        await files.move("a.txt", "b.txt")
        assert content(root) == {"b.txt": "a"}
    else:
        with pytest.raises(ToolError, match="on another file system"):
            await files.move("a.txt", "b.txt")
        assert content(root) == {"a.txt": "a"}


async def test_files_and_directories_are_deleted(
    files: Filesystem, root: Path, events: Heard
) -> None:
    (root / "a.txt").write_text("a")
    (root / "empty").mkdir()
    (root / "full" / "sub").mkdir(parents=True)
    (root / "full" / "sub" / "b.txt").write_text("b")

    assert await files.delete("a.txt") == {
        "path": str(root / "a.txt"),
        "deleted": True,
        "type": "file",
        "entries": 0,
    }
    await files.delete("empty")
    with pytest.raises(ToolError, match=r"is not empty \(1 entries\); set recursive"):
        await files.delete("full")
    assert (await files.delete("full", recursive=True))["entries"] == 2

    assert content(root) == {}
    assert [path for _, path, _ in events] == [
        str(root / name) for name in ("a.txt", "empty", "full")
    ]


async def test_deleting_nothing_says_so_and_names_the_nearest(
    files: Filesystem, root: Path, events: Heard
) -> None:
    (root / "readme.md").touch()

    result = await files.delete("raedme.md")

    assert result["deleted"] is False
    assert "did you mean 'readme.md'" in str(result["warning"])
    assert events == []
    with pytest.raises(ToolError, match=r"did you mean 'readme\.md'"):
        await files.move("raedme.md", "x")


async def test_deleting_does_not_follow_links_out(
    files: Filesystem, root: Path, tmp_path: Path
) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "out").symlink_to(tmp_path / "work-evil")

    await files.delete("sub", recursive=True)

    assert content(root) == {}
    assert (tmp_path / "work-evil" / "secret.txt").read_text() == "top secret\n"


@pytest.mark.parametrize("path", [".", "..", "/", "sub/..", "{root}"])
async def test_the_directory_that_the_session_works_in_stays(
    files: Filesystem, root: Path, path: str
) -> None:
    (root / "sub").mkdir()

    for call in (
        files.delete(path.format(root=root), recursive=True),
        files.move(path.format(root=root), "new"),
    ):
        with pytest.raises(
            ToolError,
            match=r"leads outside|holds a directory that the session works in",
        ):
            await call

    assert content(root) == {"sub": None}


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        (".env", "harmless.txt"),
        ("key", "id_rsa"),
        ("key", ".git/hooks/pre-commit"),
        (".git", "git"),
        ("docs", "papers"),
        ("docs/fixed", "fixed"),
        ("key", "docs/fixed/x"),
        ("link", ".amplifier/settings.yaml"),
    ],
)
async def test_moving_neither_opens_nor_fills_what_is_protected(
    mount: Mount, root: Path, source: str, destination: str
) -> None:
    files = mount({"denied_write_paths": [".git", ".amplifier", "./docs/fixed"]})
    for directory in (".git", "docs/fixed"):
        (root / directory).mkdir(parents=True)
    (root / ".env").write_text("TOKEN=secret")
    (root / "key").write_text("mine")
    (root / "link").symlink_to("key")
    before = content(root)

    with pytest.raises(ToolError, match="is protected by the rule"):
        await files.move(source, destination)

    assert content(root) == before


@pytest.mark.parametrize("inside", [".git/config", "deep/.env", "id_rsa"])
async def test_directory_that_holds_what_is_protected_is_not_deleted(
    files: Filesystem, root: Path, inside: str
) -> None:
    (root / "project" / inside).parent.mkdir(parents=True)
    (root / "project" / inside).touch()
    before = content(root)

    with pytest.raises(ToolError, match="is protected by the rule"):
        await files.delete("project", recursive=True)

    assert content(root) == before


async def test_a_directory_too_large_to_look_at_is_not_deleted(
    mount: Mount, root: Path
) -> None:
    (root / "sub").mkdir()
    for number in range(5):
        (root / "sub" / str(number)).touch()

    with pytest.raises(ToolError, match="delete its parts one by one"):
        await mount({"max_visited": 3}).delete("sub", recursive=True)

    assert len(content(root)) == 6


async def test_what_was_read_may_be_written_where_it_was_moved_to(
    careful: Filesystem, root: Path
) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a.txt").write_text("one")
    await careful.read_file("sub/a.txt")

    await careful.move("sub", "new")
    await careful.edit_file("new/a.txt", "one", "two")
    await careful.delete("new/a.txt")
    (root / "new" / "a.txt").write_text("three")

    with pytest.raises(ToolError, match="was not read in this session"):
        await careful.write_file("new/a.txt", "four")
