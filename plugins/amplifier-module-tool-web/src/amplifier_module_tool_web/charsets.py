"""Which encoding the bytes of a page are in, and the text they hold."""

from __future__ import annotations

import codecs
import re
from typing import Final

__all__ = ["decode"]

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What browsers know. Python's other codecs run programs of their own on the bytes, or unpack them.
_KNOWN: Final = re.compile(
    r"utf-8|utf-16(?:-le|-be)?|cp(?:125\d|874|866|932|949)|iso8859-\d+|koi8-[rut]|gb(?:2312|k|18030)|big5(?:hkscs)?"
    r"|euc_(?:jp|kr)|shift_jis|iso2022_jp|mac-(?:roman|cyrillic)|tis-620"
)
_WIDER: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "utf-16": "utf-16-le",
}
_HEAD_BYTES: Final = 1024
_DECLARED: Final = re.compile(
    rb"""<meta[^>]+charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)|<\?xml[^>]+encoding\s*=\s*["']([A-Za-z0-9_:.-]+)""",
    re.IGNORECASE,
)


def decode(data: bytes, charset: str | None, *, has_declaration: bool) -> str:
    """Return the text of some bytes: a byte order mark goes before the header, the header before the page's own word.

    What cannot be decoded becomes a replacement character. Without any word it is UTF-8, or else Windows-1252.

    Args:
        data: the bytes; the last character may be cut.
        charset: what the header says.
        has_declaration: whether the page may say it itself, as HTML and XML do.
    """
    for mark, marked in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(marked, "replace")
    encoding = _known(charset) or (
        _declared(data[:_HEAD_BYTES]) if has_declaration else None
    )
    if encoding is not None:
        return data.decode(encoding, "replace")
    # An incremental decoder forgives a character that was cut at the end.
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _declared(head: bytes) -> str | None:
    match = _DECLARED.search(head)
    if match is None:
        return None
    encoding = _known((match[1] or match[2]).decode("ascii"))
    # Bytes in which the word could be read are not in an encoding of two bytes a character.
    if encoding is not None and encoding.startswith("utf-16"):
        return "utf-8"
    return encoding


def _known(label: str | None) -> str | None:
    try:
        name = ""
        if label:
            name = codecs.lookup(label.strip(" '\"")).name
    except (LookupError, ValueError):  # the latter for NUL
        return None
    name = _WIDER.get(name, name)
    if _KNOWN.fullmatch(name):
        return name
    return None
