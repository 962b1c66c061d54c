"""Secrets stay unread, and nothing is written over that the session has not seen as it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from amplifier_module_tool_filesystem import Filesystem
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONValue

Mount = Callable[[Mapping[str, JSONValue]], Filesystem]

SECRETS = [
    ".env",
    ".ENV",
    ".env.production",
    ".env\u200b",
    "config/.env",
    ".ssh/config",
    "id_rsa",
    "id_ed25519_work",
    "server.pem",
    "tls.KEY",
    ".aws/credentials",
    ".netrc",
    ".npmrc",
    ".bash_history",
    "credentials.json",
]
HARMLESS = [
    ".env.example",
    "id_rsa.pub",
    "environment.py",
    "keys.py",
    "credentials.py",
    "monkey",
    "src/secrets.py",
]


def put(root: Path, path: str, text: str = "TOKEN=hush\n") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.process
@pytest.mark.parametrize("path", SECRETS)
async def test_a_secret_is_neither_read_nor_edited_nor_found(
    files: Filesystem, root: Path, path: str
) -> None:
    put(root, path)
    (root / "link").symlink_to(path)

    for name in (
        path,
        "link",
        f"./nothing/../{path}" if (root / "nothing").exists() else f"./{path}",
    ):
        for call in (
            files.read_file(name),
            files.edit_file(name, "T", "t"),
            files.grep("hush", name),
        ):
            with pytest.raises(ToolError, match="is protected by the rule") as caught:
                await call
            assert "hush" not in caught.value.message
    found = await files.grep("hush", glob="**/{*,.*}")
    nearby = await files.grep("hush", glob="**/{.*,*}/{.*,*}")

    assert (found["matches"], nearby["matches"]) == ([], [])
    assert (root / path).read_text() == "TOKEN=hush\n"


@pytest.mark.process
@pytest.mark.parametrize("path", HARMLESS)
async def test_what_only_looks_like_a_secret_is_read(
    files: Filesystem, root: Path, path: str
) -> None:
    put(root, path)

    await files.read_file(path)
    assert len(str((await files.grep("hush", path))["matches"])) > 2


@pytest.mark.process
async def test_a_search_counts_what_it_did_not_open(
    files: Filesystem, root: Path
) -> None:
    put(root, "server.pem")
    put(root, "a.txt")

    found = await files.grep("hush")

    assert (found["files_searched"], found["skipped"]) == (1, {"protected": 1})


async def test_protected_directories_are_listed_but_not_entered(
    files: Filesystem, root: Path
) -> None:
    put(root, ".ssh/id_rsa")

    listed = await files.list_directory(depth=3)

    assert listed["entries"] == [{"name": ".ssh", "type": "directory"}]
    with pytest.raises(ToolError, match="is protected"):
        await files.list_directory(".ssh")
    assert (await files.glob(".ssh/*"))["matches"] == []


@pytest.mark.process
async def test_what_is_never_read_is_configured(mount: Mount, root: Path) -> None:
    for path in (".env", "notes.txt", "docs/plan.txt", "docs/other.txt"):
        put(root, path)
    files = mount({"denied_read_paths": ["notes.*", "docs/plan.txt"]})

    for path in ("notes.txt", "docs/plan.txt"):
        with pytest.raises(ToolError, match="is protected"):
            await files.read_file(path)
    for path in (".env", "docs/other.txt"):
        await files.read_file(path)
    assert (await files.grep("hush", "docs"))["skipped"] == {"protected": 1}


@pytest.mark.parametrize(
    "path",
    [
        "/proc/self/environ",
        "/proc/1/cmdline",
        "/dev/zero",
        "/etc/shadow",
        "/sys/kernel",
    ],
)
async def test_systems_own_files_closed_even_where_everything_is_open(
    mount: Mount, path: str
) -> None:
    with pytest.raises(
        ToolError, match=r"is protected by the rule|there is no such file"
    ):
        await mount({"allowed_read_paths": ["/"]}).read_file(path)


async def test_editing_is_reading(mount: Mount, root: Path) -> None:
    put(root, "out/a.txt", "secret line\n")
    files = mount({"allowed_read_paths": [], "allowed_write_paths": ["out"]})

    with pytest.raises(
        ToolError, match="outside of what may be used to read"
    ) as caught:
        await files.edit_file("out/a.txt", "secret lime", "x")
    assert "line" not in caught.value.message.replace("secret lime", "")


@pytest.mark.parametrize("change", ["write", "edit"])
async def test_a_file_is_read_before_it_is_written_over(
    careful: Filesystem, root: Path, change: str
) -> None:
    (root / "a.txt").write_text("old")

    async def write() -> None:
        await (
            careful.write_file("a.txt", "new")
            if change == "write"
            else careful.edit_file("a.txt", "old", "new")
        )

    with pytest.raises(
        ToolError,
        match=r"'a\.txt': the file was not read in this session; read it with read_file",
    ):
        await write()
    assert (root / "a.txt").read_text() == "old"
    await careful.read_file("a.txt", limit=1)
    await write()
    assert (root / "a.txt").read_text() == "new"


@pytest.mark.parametrize("change", ["write", "edit"])
@pytest.mark.parametrize("others", ["other!", "oldest", "x"])
async def test_a_file_that_changed_since_it_was_read_is_read_again(
    careful: Filesystem, root: Path, change: str, others: str
) -> None:
    (root / "a.txt").write_text("old, 6")
    await careful.read_file("a.txt")
    (root / "a.txt").write_text(others)
    os.utime(root / "a.txt", ns=(1, 1))

    with pytest.raises(ToolError, match="changed since it was read; read it again"):
        await (
            careful.write_file("a.txt", "new")
            if change == "write"
            else careful.edit_file("a.txt", "o", "n")
        )

    assert (root / "a.txt").read_text() == others
    await careful.read_file("a.txt")
    await careful.write_file("a.txt", "new")


async def test_what_the_session_wrote_it_has_seen(
    careful: Filesystem, root: Path
) -> None:
    await careful.write_file("a.txt", "one")
    await careful.write_file("a.txt", "two")
    await careful.edit_file("a.txt", "two", "three")
    await careful.edit_file("./a.txt", "three", "four")

    assert (root / "a.txt").read_text() == "four"


async def test_each_session_has_seen_its_own(mount: Mount, root: Path) -> None:
    one, other = mount({}), mount({})
    await one.write_file("a.txt", "one")

    with pytest.raises(ToolError, match="was not read in this session"):
        await other.write_file("a.txt", "other")


async def test_reading_first_need_not_be_asked_for(mount: Mount, root: Path) -> None:
    (root / "a.txt").write_text("old")

    await mount({"read_before_write": False}).write_file("a.txt", "new")

    assert (root / "a.txt").read_text() == "new"
