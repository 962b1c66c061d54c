"""A folder that came from elsewhere: what may be in it, and the digest of all that is."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NoReturn

from amplifier.app.directories import is_below
from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.open_flags import READ
from amplifier_sdk.errors import ConfigError

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_FILES",
    "clean_tree",
    "copy_tree",
    "has_digest",
    "hash_tree",
    "sync_folder",
]

MAX_FILES: Final = 10_000
MAX_BYTES: Final = 64_000_000
MAX_DEPTH: Final = 40
_COMPILED: Final = "__pycache__"
_LEFT_OUT: Final = (_COMPILED, ".git", ".hg", ".svn", ".venv", ".nox", "node_modules")


def hash_tree(folder: Path) -> str:
    """Return the digest of a folder: of the names, kinds and contents of all in it, but for compiled Python.

    Raises:
        ConfigError: it holds what no collection or module may: a link that leads out, a device, or too much.
        OSError: it cannot be read.
    """
    found = hashlib.sha256()
    size = 0
    for count, (name, path, status) in enumerate(_walk(folder, folder, "")):
        if count >= MAX_FILES:
            _refuse(folder, f"it has more than {MAX_FILES} files")
        kind, content = _content(folder, path, status)
        size += len(content)
        if size > MAX_BYTES:
            _refuse(folder, f"it has more than {MAX_BYTES} bytes")
        # With their lengths, so that no two trees have one stream of bytes.
        for part in (kind, name.encode("utf-8", "surrogateescape"), content):
            found.update(len(part).to_bytes(8, "big"))
            found.update(part)
    return f"sha256:{found.hexdigest()}"


def has_digest(folder: Path, digest: str) -> bool:
    """Whether a folder has a digest; one that is not there, or holds what is refused, has none."""
    try:
        return hash_tree(folder) == digest
    except (ConfigError, OSError):
        return False


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder as it is, without what version control, tools and Python leave in one.

    Raises:
        ConfigError: it holds what no collection or module may, as in `hash_tree`.
        OSError: it cannot be read or written.
    """
    size = 0
    target.mkdir(mode=0o755)
    for count, (name, path, status) in enumerate(_walk(source, source, "", _LEFT_OUT)):
        kind, content = _content(source, path, status)
        size += len(content)
        if count >= MAX_FILES or size > MAX_BYTES:
            _refuse(source, f"it has more than {MAX_FILES} files or {MAX_BYTES} bytes")
        copy = target / name
        if kind == b"folder":
            copy.mkdir(mode=0o755)
        elif kind == b"link":
            copy.symlink_to(os.fsdecode(content))
        else:
            copy.write_bytes(content)
            copy.chmod(0o755 if kind == b"program" else 0o644)


def clean_tree(folder: Path) -> None:
    """Remove compiled Python from a folder: it would run in place of the source that is checked.

    Raises:
        ConfigError: the folder is too deep.
        OSError: it cannot be read or written.
    """
    compiled = [
        path
        for _, path, _ in _walk(folder, folder, "", left_out=())
        if path.name == _COMPILED
    ]
    for path in compiled:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Write a folder's names to the disk, so that a rename in it survives a power loss."""
    with closing_handle(os.open(path, os.O_RDONLY)) as handle:
        os.fsync(handle)


def _walk(
    root: Path, folder: Path, prefix: str, left_out: tuple[str, ...] = (_COMPILED,)
) -> Iterator[tuple[str, Path, os.stat_result]]:
    """Return all below a folder, sorted by name, without following links."""
    if prefix.count("/") > MAX_DEPTH:
        _refuse(root, f"it is more than {MAX_DEPTH} folders deep")
    for name in sorted(os.listdir(folder)):
        path = folder / name
        status = path.lstat()
        if name in left_out:
            continue
        yield f"{prefix}{name}", path, status
        if stat.S_ISDIR(status.st_mode):
            yield from _walk(root, path, f"{prefix}{name}/", left_out)


def _content(root: Path, path: Path, status: os.stat_result) -> tuple[bytes, bytes]:
    """Return the kind of an entry, and what is in it."""
    if stat.S_ISDIR(status.st_mode):
        return b"folder", b""
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(path)
        if os.path.isabs(target) or not is_below(path, root):
            problem = (
                "it is a link that leads out of its folder; put the file itself there"
            )
            _refuse(path, problem)
        return b"link", os.fsencode(target)
    if not stat.S_ISREG(status.st_mode):
        _refuse(path, "it is no plain file, folder or link")
    if status.st_size > MAX_BYTES:
        _refuse(path, f"it has more than {MAX_BYTES} bytes")
    # Without following a link that took the file's place since.
    handle = os.open(path, READ)
    with open(handle, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    return b"program" if status.st_mode & 0o100 else b"file", content


def _refuse(path: Path, problem: str) -> NoReturn:
    raise ConfigError.of(ascii(str(path)), problem, subject="contents of a source")
