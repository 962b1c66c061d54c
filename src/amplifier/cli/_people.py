"""Errors as people read them: what happened, to what, what to type next; no names of classes, no numbers of errors."""

from __future__ import annotations

import errno
import os
import re
import socket
from collections.abc import Mapping
from typing import Final

__all__ = ["plain", "system_text"]

_NO_NAME: Final = "the address is not known here: check its spelling and the network"
_REMEDIES: Final[Mapping[int, str]] = {
    errno.EACCES: "you may not use it; check its owner and permissions",
    errno.EADDRINUSE: "another program uses this port; stop it, or choose another port",
    errno.EADDRNOTAVAIL: "this machine has no such address; choose another one",
    errno.EAGAIN: "the system has no room for it now; try again in a moment",
    errno.ECONNREFUSED: "nothing answers there; check the address, and that the server runs",
    errno.ECONNRESET: "the other side closed the connection; try again",
    errno.EDQUOT: "your share of the disk is used up; free some space and try again",
    errno.EEXIST: "it is there already; choose another name, or remove it",
    errno.EFBIG: "the file would be larger than allowed; raise the limit, or free some space",
    errno.EHOSTUNREACH: "it cannot be reached; check the network",
    errno.EIO: "the disk could not be read or written; check it",
    errno.EISDIR: "it is a folder, and a file is needed; check the path",
    errno.ELOOP: "its links lead in a cycle; check the path",
    errno.EMFILE: "too many files are open; close some programs and try again",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ENETUNREACH: "there is no network; connect, and try again",
    errno.ENFILE: "too many files are open; close some programs and try again",
    errno.ENOENT: "it is not there; check the path",
    errno.ENOMEM: "there is not enough memory; close some programs and try again",
    errno.ENOSPC: "the disk is full; free some space and try again",
    errno.ENOTDIR: "a part of its path is a file, and no folder; check the path",
    errno.ENOTEMPTY: "the folder is not empty; choose another one",
    errno.EPERM: "the system does not permit it; check its owner and permissions",
    errno.EPIPE: "the other side closed the connection; try again",
    errno.EROFS: "it lies where nothing can be written; choose another place",
    errno.ETIMEDOUT: "nothing answered in time; check the network, and try again",
    errno.EXDEV: "both lie on different disks; choose another place",
}
"""What the system refused, and what helps, by its number."""

_NUMBERED: Final = re.compile(r"\[Errno (-?\d+)\] ([^:'\";]+)")
_CLASS: Final = re.compile(
    r"(?<![\w.'\"`/-])(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:\(\))?(?:: |$)"
)
_CODEC: Final = re.compile(
    r"'[\w-]+' codec can't (?:de|en)code .+? in position \d+(?:-\d+)?: [\w ]+(?:\(\d+\))?"
)
_KINDS: Final[Mapping[str, str]] = {
    "NoneType": "nothing",
    "bool": "true or false",
    "dict": "a mapping",
    "float": "a number",
    "int": "a number",
    "list": "a list",
    "str": "a text",
}
"""What a document holds, by Python's names for it."""

_KIND: Final = re.compile(rf"(?<=\bgot )(?:{'|'.join(_KINDS)})(?![\w ])")


def system_text(error: OSError) -> str:
    """Say what the system refused: the file it was about, where there is one, and what helps."""
    problem = _reason(error)
    path = error.filename
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if isinstance(path, (str, os.PathLike)):
        return f"{os.fspath(path)}: {problem}"
    return problem


def plain(text: str) -> str:
    """Return a message without what only programmers read, wherever it was put together.

    Args:
        text: the message, in which the text of another error may stand.
    """
    text = _NUMBERED.sub(lambda match: _numbered(int(match[1]), match[2]), text)
    text = _CODEC.sub("it is not UTF-8; save it as UTF-8", text)
    text = _KIND.sub(lambda match: _KINDS[match[0]], text)
    return _CLASS.sub("", text).strip()


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return _NO_NAME
    if isinstance(error, TimeoutError) and error.errno is None:
        return "nothing answered in time; try again"
    # A class of our own says it better than the number that it carries.
    is_own = type(error).__module__.startswith("amplifier")
    if not is_own and error.errno is not None and error.errno in _REMEDIES:
        return _REMEDIES[error.errno]
    if is_own and error.strerror:
        return error.strerror
    if error.strerror:
        return _lowered(error.strerror)
    return plain(str(error)) or "the system refused it"


def _numbered(number: int, words: str) -> str:
    # Negative numbers are of names that could not be looked up.
    if number < 0:
        return _NO_NAME
    return _REMEDIES.get(number, _lowered(words))


def _lowered(words: str) -> str:
    return words[:1].lower() + words[1:]
