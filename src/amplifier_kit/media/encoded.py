"""Media in base64 among other texts: recognized by their beginning, and described where nobody needs the data."""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.media import MEDIA_HEAD, media_type

__all__ = ["described_media", "is_encoded_media", "without_media"]

_STARTS: Final = (
    "iVBORw0KGg[o-r]|/9j/|R0lGOD|UklGR|JVBERi0|SUQz|ZkxhQ|T2dnU|GkXfo"
    "|//[M-Ps-v]|AAAA[A-Za-z0-9+/][GWm2]Z0eX"
)
_ENCODED: Final = re.compile(
    rf"(?:data:[a-z]{{1,12}}/[a-z0-9.+\-]{{1,40}};base64,)?(?:{_STARTS})[A-Za-z0-9+/]{{64,}}+={{0,2}}\Z"
)


def is_encoded_media(text: str) -> bool:
    """Return whether a text is media in base64, perhaps as a `data:` address, and nothing else."""
    return _ENCODED.match(text) is not None


def described_media(text: str) -> str | None:
    """Return the type, size and digest of media in base64; `None` for any other text."""
    if not is_encoded_media(text):
        return None
    try:
        data = binascii.a2b_base64(text.rpartition(",")[2])
    except ValueError:
        return None
    found = media_type(data[:MEDIA_HEAD])
    if found is None:
        return None
    return f"({found}, {len(data)} bytes, sha256 {sha256(data).hexdigest()})"


def without_media(value: JSONValue) -> JSONValue:
    """Return JSON data with descriptions in place of media in base64."""
    match value:
        case str():
            return described_media(value) or value
        case Mapping():
            return {key: without_media(item) for key, item in value.items()}
        case list() | tuple():
            return [without_media(item) for item in value]
        case _:
            return value
