"""What the items of a project are, in digests: every byte that would run counts.

A path is walked from the folder's handle, without following links: a link may lead anywhere, and elsewhere by
tomorrow, so an item that is one, or lies behind one, cannot be trusted.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.files.handles import closing_handle
from amplifier_kit.files.open_flags import LIST, READ
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Code", "DeclaredItem", "Fingerprint", "UnreadableItemError", "fingerprint"]

_MAX_FILES: Final = 10_000
_MAX_BYTES: Final = 64_000_000
_MAX_DEPTH: Final = 64
_CHUNK: Final = 1 << 20
_COMPILED: Final = "__pycache__"


class UnreadableItemError(ValueError):
    """An item cannot be trusted, since what it is cannot be known for certain."""

    def __init__(self, name: str, problem: str) -> None:
        self.name = name
        super().__init__(f"{name!a} {problem}")


@attrs.frozen
class Code:
    """A folder of Python code of which a copy is run: what Python compiled in it is no part of it.

    Args:
        name: its path below the project's folder.
    """

    name: str


@attrs.frozen(kw_only=True)
class DeclaredItem:
    """An item that is no file: what a configuration says, such as a server's command line or address."""

    name: str
    value: JSONValue


@attrs.frozen(kw_only=True)
class Fingerprint:
    """What items are: a digest by name, and the content of the files among them."""

    items: dict[str, str]
    contents: dict[str, bytes]


def fingerprint(
    folder: Path, items: Sequence[str | Code | DeclaredItem]
) -> Fingerprint:
    """Read items and hash them. A file that does not exist is an item too: `absent`.

    Args:
        folder: the project's folder, links resolved.
        items: paths of files and folders relative to it, code of which a copy is run, and what is declared.

    Raises:
        UnreadableItemError: an item is no plain file or folder, leads outside, is too large, or changes meanwhile.
        OSError: the folder cannot be opened.
    """
    reader = _Reader()
    with closing_handle(os.open(folder, LIST)) as handle:
        for item in items:
            if isinstance(item, DeclaredItem):
                # sorted, so that a file in another order is no change
                text = json.dumps(item.value, sort_keys=True, ensure_ascii=True)
                # `=` cannot begin a path that was asked for, so the two kinds
                # never meet
                reader.items[f"={item.name}"] = _digest(b"declared", text.encode())
            elif isinstance(item, Code):
                reader.read(handle, item.name, is_code=True)
            else:
                reader.read(handle, item)
    return Fingerprint(items=reader.items, contents=reader.contents)


@attrs.define(eq=False)
class _Reader:
    """Reads items until too much was read."""

    items: dict[str, str] = attrs.field(factory=dict)
    contents: dict[str, bytes] = attrs.field(factory=dict)
    _bytes: int = 0
    _is_code: bool = False

    def read(self, root: int, name: str, *, is_code: bool = False) -> None:
        """Read a file, or a folder and all below it, of code without what Python compiled."""
        self._is_code = is_code
        parts = name.split("/")
        if (
            not name
            or name.startswith("/")
            or "\0" in name
            or any(part in ("", ".", "..") for part in parts)
        ):
            raise UnreadableItemError(
                name, "is no path below the folder; write it plainly, as tools/run.sh"
            )
        with ExitStack() as handles:
            folder = root
            for index, part in enumerate(parts[:-1]):
                opened = self._open(folder, part, LIST, "/".join(parts[: index + 1]))
                # a missing folder is a state, too: what appears in it later is a
                # change
                if opened is None:
                    self.items[name] = "absent"
                    return
                # the folders stay open on the way down, so that none is swapped
                # behind the walk
                handles.callback(os.close, opened)
                folder = opened
            self._entry(folder, parts[-1], name)

    def _open(self, folder: int, part: str, flags: int, name: str) -> int | None:
        try:
            return os.open(part, flags, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                problem = "is a link, or lies behind one; put the file itself there"
                raise UnreadableItemError(name, problem) from error
            raise UnreadableItemError(
                name, f"cannot be read: {error.strerror}"
            ) from error

    def _entry(self, folder: int, part: str, name: str) -> None:
        handle = self._open(folder, part, READ, name)
        if handle is None:
            self.items[name] = "absent"
            return
        with closing_handle(handle):
            status = os.fstat(handle)
            if stat.S_ISDIR(status.st_mode):
                self._folder(handle, name)
            elif stat.S_ISREG(status.st_mode):
                self._file(handle, name, status)
            else:
                raise UnreadableItemError(name, "is no plain file and no folder")

    def _folder(self, handle: int, name: str) -> None:
        self._count(name)
        if name.count("/") > _MAX_DEPTH:
            raise UnreadableItemError(name, f"lies more than {_MAX_DEPTH} folders deep")
        # an empty folder counts: a file that appears in it would run
        self.items[f"{name}/"] = "folder"
        # by the handle, which a renamed folder does not change
        for entry in sorted(os.listdir(handle)):
            if self._is_code and entry == _COMPILED:
                continue
            self._entry(handle, entry, f"{name}/{entry}")

    def _file(self, handle: int, name: str, status: os.stat_result) -> None:
        self._count(name)
        content = b"".join(self._chunks(handle, name))
        if (
            # a file that changes while it is read has a digest of no content that
            # ever was
            _version(os.fstat(handle)) != _version(status)
            or len(content) != status.st_size
        ):
            raise UnreadableItemError(
                name, "changed while it was read; try again when nothing writes it"
            )
        runs = b"-"
        # a file that becomes executable runs without another byte of it changing
        if status.st_mode & 0o111:
            runs = b"x"
        self.items[name] = _digest(b"file", runs, content)
        self.contents[name] = content

    def _chunks(self, handle: int, name: str) -> Iterator[bytes]:
        while chunk := os.read(handle, _CHUNK):
            self._bytes += len(chunk)
            if self._bytes > _MAX_BYTES:
                raise UnreadableItemError(
                    name,
                    f"makes it more than {_MAX_BYTES} bytes; that is too much to trust",
                )
            yield chunk

    def _count(self, name: str) -> None:
        if len(self.items) >= _MAX_FILES:
            raise UnreadableItemError(
                name,
                f"makes it more than {_MAX_FILES} files; that is too much to trust",
            )


def _version(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _digest(*parts: bytes) -> str:
    """Hash parts so that no two lists of them share a digest."""
    found = hashlib.sha256()
    for part in parts:
        # with the lengths, or two parts could share a digest with others cut
        # elsewhere
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.hexdigest()
