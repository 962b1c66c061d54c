"""Names that come from outside, as names of folders: one rule for all that keep something by session."""

from __future__ import annotations

import hashlib
import re
from typing import Final

__all__ = ["folder_beginnings", "folder_name"]

_PLAIN: Final = r"[a-z0-9][a-z0-9_-]{0,99}"
_ODD: Final = r"[^a-z0-9_-]+"
_RESERVED: Final = r"(?:con|prn|aux|nul|com\d|lpt\d)"


def folder_name(name: str) -> str:
    """Return the one folder name that stands for a name, whatever characters that has.

    Lower-case letters, digits, `-` and `_` stand for themselves. Any other name becomes `=`, what is legible of it
    and a digest: no two names share a folder, also where the file system ignores case, and none leads elsewhere.
    """
    # `con` and its like are devices on Windows, where the folder may be copied to
    if re.fullmatch(_PLAIN, name) and not re.fullmatch(_RESERVED, name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"={_legible(name)}-{digest}"


def folder_beginnings(begin: str) -> tuple[str, ...]:
    """Return what the folder names of all names with this beginning begin with.

    Other names may have folders that begin so.
    """
    odd = f"={_legible(begin)}"
    return (odd,) if re.search(_ODD, begin) else (begin, odd)


def _legible(name: str) -> str:
    return re.sub(_ODD, "-", name[:200].lower()).strip("-")[:40]
