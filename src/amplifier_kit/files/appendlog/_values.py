r"""Values as JSON text, and back without a difference.

What JSON has is written as JSON. What Python has beyond it is written as an object with the one key `$log`:

* NaN and the infinities: `{"$log": "NaN"}`, `{"$log": "Infinity"}`, `{"$log": "-Infinity"}`;
* a text in which the two halves of a surrogate pair stand beside each other, which JSON's escapes would join:
  `{"$log": ["one half and what is before", "the other half and what follows"]}`;
* an object that has the key `$log` itself, or a key with such halves: `{"$log": {"items": [[key, value], …]}}`.

A lone half is JSON's own escape, `\ud83d`. All other text is UTF-8. Tuples come back as lists.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Final

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["decode", "encode"]

MARK: Final = "$log"

_QUOTED_MARK: Final = f'"{MARK}"'
_HALVES: Final = "(?<=[\ud800-\udbff])(?=[\udc00-\udfff])"
_NUMBERS: Final[Mapping[str, float]] = {
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
}
_WRITER: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
)
_READER: Final = json.JSONDecoder()


def encode(value: JSONValue) -> bytes:
    """Write a value as JSON in UTF-8, without a line break.

    Raises:
        ValueError: something in it has no JSON form, it holds itself, or it nests too deep.
    """
    try:
        return _encode(value)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"It cannot be written as JSON: {error}") from None


def _encode(value: JSONValue) -> bytes:
    try:
        text = _WRITER.encode(value)
        if _QUOTED_MARK not in text:
            return text.encode()
    except ValueError:
        # a number that is not finite, half a character, or nothing that can be written
        pass
    return _WRITER.encode(_marked(value)).encode("utf-8", "backslashreplace")


def decode(data: bytes) -> JSONValue:
    """Read what `encode` wrote.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        text = data.decode()
        value: JSONValue = _READER.decode(text)
        if _QUOTED_MARK in text:
            return _unmarked(value)
        return value
    except (RecursionError, TypeError, KeyError) as error:
        raise ValueError(f"It cannot be read: {type(error).__name__}") from None


def _marked(value: JSONValue) -> JSONValue:
    match value:
        case str():
            return _marked_text(value)
        case float() if not math.isfinite(value):
            return {
                MARK: "NaN"
                if math.isnan(value)
                else "Infinity"
                if value > 0
                else "-Infinity"
            }
        case Mapping():
            if MARK in value or any(re.search(_HALVES, key) for key in value):
                return {
                    MARK: {
                        "items": [
                            [_marked_text(key), _marked(item)]
                            for key, item in value.items()
                        ]
                    }
                }
            return {key: _marked(item) for key, item in value.items()}
        case list() | tuple():
            return [_marked(item) for item in value]
        case _:
            return value


def _marked_text(text: str) -> JSONValue:
    parts = re.split(_HALVES, text)
    if len(parts) == 1:
        return text
    return {MARK: parts}


def _unmarked(value: JSONValue) -> JSONValue:
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    if not isinstance(value, dict):
        return value
    if MARK not in value:
        return {key: _unmarked(item) for key, item in value.items()}
    match value[MARK]:
        case str() as name:
            return _NUMBERS[name]
        case list() as parts:
            return "".join(map(str, parts))
        case {"items": list() as items}:
            return {str(_unmarked(key)): _unmarked(item) for key, item in items}
        case _:
            raise ValueError(f"The object under {MARK!r} is none that a log writes")
