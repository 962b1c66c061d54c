"""Unpacking archives of others: only plain files and folders, each below the target, and not too much of it."""

from __future__ import annotations

import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from gzip import BadGzipFile, GzipFile
from io import FileIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NoReturn

from amplifier.app.sources.trees import MAX_BYTES, MAX_DEPTH, MAX_FILES
from amplifier_sdk.errors import ConfigError

if TYPE_CHECKING:
    pass

__all__ = ["unpack"]

_CHUNK: Final = 1 << 16
_MAX_NAME: Final = 1000
_MAX_PART: Final = 255
_BLOCK: Final = 512
_MAX_STREAM: Final = MAX_BYTES + MAX_FILES * 8 * _BLOCK
_MAX_LIST: Final = MAX_FILES * 400
"""How many bytes the list of a `.zip` file may have, which Python reads whole: some 50 and a name for each entry."""

_NO_FILE: Final = "is a link or a device; only files and folders are unpacked"
_DAMAGED: Final = (
    BadGzipFile,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,  # of numbers, times and names that cannot be
    lzma.LZMAError,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What Python's readers raise on archives that nobody made by mistake."""


def unpack(archive: Path, target: Path) -> None:
    """Unpack an archive into a folder, which is made. One folder that holds all the rest is left away.

    Args:
        archive: a `.tar.gz`, `.tgz` or `.zip` file.
        target: where its files go; nothing is there yet.

    Raises:
        ConfigError: it is damaged, or holds a link, a device, a path that leads out, or too much.
        OSError: it cannot be read, or its files cannot be written.
    """
    whole = target.with_name(f"{target.name}.whole")
    whole.mkdir(mode=0o755)
    try:
        if archive.name.lower().endswith(".zip"):
            entries = _zip_entries(archive)
        else:
            entries = _tar_entries(archive)
        _write(archive, whole, entries)
    except ConfigError:  # which is a ValueError as well
        raise
    except _DAMAGED as error:
        _refuse(archive, f"it cannot be read: {error}")
    inner = list(whole.iterdir())
    if len(inner) == 1 and inner[0].is_dir():
        inner[0].rename(target)
        whole.rmdir()
    else:
        whole.rename(target)


_Entry = tuple[str, "IO[bytes] | None", bool]
"""A name, the content of a file or `None` for a folder, and whether it is a program."""


def _write(archive: Path, target: Path, entries: Iterator[_Entry]) -> None:
    size = 0
    seen: dict[str, bool] = {}
    for count, (name, content, is_program) in enumerate(entries):
        if count >= MAX_FILES:
            _refuse(archive, f"it has more than {MAX_FILES} entries")
        parts = _parts(archive, name)
        path = target.joinpath(*parts)
        # On a file system that ignores case the second of two would replace the first
        # after it was checked.
        key = "/".join(parts).casefold()
        if key in seen and (content is not None or seen[key]):
            problem = f"it holds {name!a} twice, or two names that differ in case alone"
            _refuse(archive, problem)
        seen[key] = content is not None
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            if content is None:
                path.mkdir(exist_ok=True, mode=0o755)
                continue
            # Exclusive: no entry may write through what an earlier one made.
            made = path.open("xb")
        except (FileExistsError, NotADirectoryError):
            _refuse(archive, f"it holds a file and a folder of one name, at {name!a}")
        with made as file:
            while chunk := content.read(_CHUNK):
                size += len(chunk)
                if size > MAX_BYTES:
                    _refuse(archive, f"it holds more than {MAX_BYTES} bytes")
                file.write(chunk)
        path.chmod(0o755 if is_program else 0o644)


def _parts(archive: Path, name: str) -> list[str]:
    """Return the parts of a name, which lead to nowhere but below the target."""
    parts = name.rstrip("/").removeprefix("./").split("/")
    is_plain = (
        name.isprintable()
        and "\\" not in name
        and ":" not in name
        and len(name) <= _MAX_NAME
    )
    if (
        not is_plain
        or name.startswith("/")
        or any(part in ("", "..", ".git") for part in parts)
    ):
        _refuse(
            archive,
            f"the name {name[:_MAX_NAME]!a} leads elsewhere, or has characters that no file should have",
        )
    if any(len(part.encode()) > _MAX_PART for part in parts):
        _refuse(archive, f"{name[:200]!a} is longer than a file may be called")
    if len(parts) > MAX_DEPTH:
        _refuse(archive, f"{name[:200]!a} lies more than {MAX_DEPTH} folders deep")
    return [part for part in parts if part != "."]


def _tar_entries(archive: Path) -> Iterator[_Entry]:
    with GzipFile(archive, "rb") as unzipped:
        stream = _Bounded(archive, unzipped)
        # As a stream, so that no header can send the reader back and forth in what is
        # unpacked.
        with tarfile.open(fileobj=stream, mode="r|") as tar:  # type: ignore[call-overload]  # it is only read from
            for member in tar:
                if member.isdir():
                    yield member.name, None, False
                elif member.isreg():
                    content = tar.extractfile(member)
                    yield member.name, content, bool(member.mode & 0o100)
                else:
                    _refuse(archive, f"{member.name!a} {_NO_FILE}")


def _zip_entries(archive: Path) -> Iterator[_Entry]:
    with _Zipped(archive) as source, zipfile.ZipFile(source) as opened:
        for info in opened.infolist():
            if not info.filename:
                _refuse(archive, "an entry has no name")
            mode = info.external_attr >> 16
            if info.flag_bits & 1:
                _refuse(archive, f"{info.filename!a} is encrypted")
            # Archives made on Windows have no Unix mode.
            if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                _refuse(archive, f"{info.filename!a} {_NO_FILE}")
            if info.is_dir():
                yield info.filename, None, False
                continue
            with opened.open(info) as content:
                yield info.filename, content, bool(mode & 0o100)


class _Zipped(FileIO):
    """A file of which no part is read at once that could be the list of far too many files."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _MAX_LIST:
            _refuse(Path(str(self.name)), f"it has more than {MAX_FILES} entries")
        return super().read(size)


class _Bounded:
    """Reads a stream up to a limit: what a few bytes unpack to is not believed."""

    def __init__(self, archive: Path, stream: GzipFile) -> None:
        self._archive = archive
        self._stream = stream
        self._left = _MAX_STREAM

    def read(self, size: int = _CHUNK) -> bytes:
        data = self._stream.read(min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            _refuse(self._archive, f"it holds more than {MAX_BYTES} bytes")
        return data


def _refuse(archive: Path, problem: str) -> NoReturn:
    raise ConfigError.of("", problem, subject=f"archive {str(archive)!r}")
