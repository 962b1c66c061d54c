"""The copies: files named after their content, so that each content is stored once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Final

import attrs
from anyio.from_thread import check_cancelled

from amplifier_kit.files.open_flags import NEW
from amplifier_kit.files.private_append import make_folders

__all__ = ["FileTooLargeError", "Objects"]

_CHUNK: Final = 1 << 18


class FileTooLargeError(Exception):
    """A file has more bytes than are copied."""


@attrs.define(eq=False)
class Objects:
    """The copies of one session, in a folder for their user alone; for worker threads, since its functions block."""

    folder: Path
    _sizes: dict[str, int] = attrs.field(factory=dict)

    def open(self) -> None:
        """Find the copies that there are, and remove what a killed process left unfinished."""
        make_folders(self.folder)
        for path in self._files():
            if path.name.endswith(".tmp"):
                path.unlink()
            else:
                self._sizes[path.name] = path.stat().st_size

    @property
    def total(self) -> int:
        """The bytes of all copies."""
        return sum(self._sizes.values())

    def put(self, source: BinaryIO, limit: int) -> tuple[str, int]:
        """Copy a file piece by piece; return the digest of its content and its size.

        Raises:
            TooLargeError: it has more than `limit` bytes.
            OSError: it cannot be read, or the copy cannot be written.
        """
        temporary = self.folder / f"{token_hex(8)}.tmp"
        digest, size = hashlib.sha256(), 0
        try:
            with open(os.open(temporary, NEW, 0o600), "wb") as copy:
                while data := source.read(_CHUNK):
                    # A large file takes seconds, and a cancelled turn must not wait for
                    # its copy.
                    check_cancelled()
                    size += len(data)
                    if size > limit:
                        raise FileTooLargeError
                    digest.update(data)
                    copy.write(data)
            name = digest.hexdigest()
            # a power failure may have left less of it than there was
            if self._sizes.get(name) != size:
                place = self.folder / name[:2] / name
                place.parent.mkdir(exist_ok=True, mode=0o700)
                # Named only once it is complete: a name stands for its content.
                os.replace(temporary, place)
                self._sizes[name] = size
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()
        return name, size

    def open_copy(self, digest: str) -> BinaryIO:
        """Open a copy for reading; the caller closes it.

        Raises:
            FileNotFoundError: it is not there (any more).
        """
        return open(self.folder / digest[:2] / digest, "rb")

    def copy_to(self, target: BinaryIO, digest: str) -> bool:
        """Write what was copied into a file, and tell whether it is what it was.

        Raises:
            OSError: the copy is not there (any more), or the system refuses.
        """
        seen = hashlib.sha256()
        with self.open_copy(digest) as copy:
            while data := copy.read(_CHUNK):
                seen.update(data)
                target.write(data)
        return seen.hexdigest() == digest

    def keep(self, digests: Collection[str]) -> None:
        """Remove all copies but these."""
        for name in [name for name in self._sizes if name not in digests]:
            with suppress(FileNotFoundError):
                (self.folder / name[:2] / name).unlink()
            del self._sizes[name]

    def size_of(self, digests: Collection[str]) -> int:
        """Return the bytes of some copies."""
        return sum(self._sizes.get(digest, 0) for digest in digests)

    def _files(self) -> Iterator[Path]:
        for entry in self.folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                yield from (path for path in entry.iterdir() if path.is_file())
            elif entry.is_file():
                yield entry
