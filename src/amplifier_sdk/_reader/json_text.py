"""JSON objects from text that a model wrote: strict reading, and the repairs that leave one reading only."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from json.decoder import JSONDecoder
from math import isfinite
from typing import Final, NoReturn

from amplifier_sdk._reader.problems import Path, path_text, type_text, value_text
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_REPAIRED",
    "RefusedJSONError",
    "UnreadableError",
    "object_of_text",
    "plain_object",
]

MAX_BYTES: Final = 10_000_000
"""The longest argument text that is read, in bytes for bytes and in characters for text."""

MAX_DEPTH: Final = 128
"""How deep arrays and objects may nest."""

MAX_REPAIRED: Final = 64_000
"""The longest text that is repaired, in characters."""

_TOO_DEEP: Final = f"they nest more than {MAX_DEPTH} deep"
_BOM: Final = "\ufeff"
_FENCE: Final = "```"
# Patterns stay text, compiled on first use. An escape that pairs with its other half is fine.
_SURROGATE: Final = (
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!(?<!\\)\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
# A string that nothing closes takes the rest of the text with it and leaves its quote.
_STRINGS: Final = (
    r"""(?s:"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+'|(["']).*)"""
)
# Every quantifier is possessive: no text makes them try the same twice.
_PIECE: Final = (
    # What is JSON already, in one piece as long as possible.
    r"""(?s:(?P<plain>(?:[^"',A-Za-z_$]++|"[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+"|,(?!\s*[}\]]))++)"""
    r"""|(?P<double>"[^"\\]*+(?:\\.[^"\\]*+)*+")"""
    r"""|(?P<single>'[^'\\]*+(?:\\.[^'\\]*+)*+')"""
    r"""|(?P<comma>,)"""
    r"""|(?P<key>[A-Za-z_$][\w$]*+)(?=\s*:)"""
    r"""|(?P<word>[A-Za-z_$][\w$]*+)"""
    r"""|(?P<loose>["']))"""
)
_WORDS: Final[Mapping[str, str]] = {"True": "true", "False": "false", "None": "null"}
_LITERALS: Final = frozenset({*_WORDS, *_WORDS.values()})
_CONTROL: Final = r"[\x00-\x1f]"
_ODD: Final = r'[\\"\x00-\x1f]'
_SINGLE_PARTS: Final = r"""(?s:\\.)|["]"""


class UnreadableError(Exception):
    """The text cannot be read; `problem` is the text for the model."""

    def __init__(self, detail: str) -> None:
        self.problem = (
            f"The arguments could not be read: {detail}. Send one JSON object."
        )
        super().__init__(self.problem)


class _LooseQuoteError(Exception):
    """A quote opens a string that nothing closes."""


class RefusedJSONError(ValueError):
    """Valid JSON that is refused all the same: a repair would not help."""


def object_of_text(raw: str | bytes) -> tuple[JSONObject, bool]:
    """Read the object that a text holds, and report whether it had to be repaired.

    Raises:
        UnreadableError: the text has no reading, or more than one.
    """
    if len(raw) > MAX_BYTES:
        raise UnreadableError(
            f"they are {len(raw):,} long, and at most {MAX_BYTES:,} are read"
        )
    text = _decoded(raw)
    if not text:
        return {}, False
    try:
        value = _strict(text)
    except json.JSONDecodeError as error:
        return _repaired(text, error), True
    return _object(value), isinstance(value, str)


def plain_object(
    value: Mapping[object, object] | Mapping[str, JSONValue], path: Path = ()
) -> JSONObject:
    """Copy an object as plain JSON data.

    Raises:
        RefusedError: something inside is not JSON, not storable as UTF-8, or nested too deep.
    """
    return {
        _key(key, path): _plain(item, (*path, str(key))) for key, item in value.items()
    }


def _decoded(raw: str | bytes) -> str:
    if isinstance(raw, str):
        return raw
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"byte {error.start} is not UTF-8") from None


def _object(value: JSONValue) -> JSONObject:
    """Return the object, or the one that a JSON string holds: some vendors encode twice."""
    if isinstance(value, str):
        try:
            value = _strict(value)
        except json.JSONDecodeError:
            raise UnreadableError("expected an object, got a string") from None
    if isinstance(value, dict):
        return value
    raise UnreadableError(f"expected an object, got {type_text(value)}")


def _strict(text: str) -> JSONValue:
    """Read strict JSON.

    Raises:
        JSONDecodeError: it is not JSON, so that a repair may be tried.
        UnreadableError: it is JSON, but refused.
    """
    try:
        value: JSONValue = _DECODER.decode(text)
        # to count brackets is cheap, and spares nearly every text the walk
        if text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(value):
            raise RefusedJSONError(_TOO_DEEP)
        # Python reads half of a pair, and fails where it is written down later
        if _may_hold_half_a_pair(text):
            value = _plain(value, ())
    except json.JSONDecodeError:
        # it is a ValueError as well, and would be taken for a large integer below
        raise
    except RecursionError:
        raise UnreadableError(_TOO_DEEP) from None
    except RefusedJSONError as error:
        raise UnreadableError(str(error)) from None
    except ValueError:  # Python refuses integers of thousands of digits
        raise UnreadableError("they hold an integer with too many digits") from None
    return value


def _may_hold_half_a_pair(text: str) -> bool:
    if "\\u" in text and re.search(_SURROGATE, text):
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _pairs(pairs: list[tuple[str, JSONValue]]) -> JSONObject:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # the idiom
        raise RefusedJSONError(f"the key {twice!r} stands twice in one object")
    return result


def _constant(name: str) -> NoReturn:
    raise RefusedJSONError(f"{name} is not JSON; numbers are finite")


def _finite(text: str) -> float:
    value = float(text)
    if isfinite(value):
        return value
    raise RefusedJSONError(f"the number {text:.40} is beyond what a float holds")


_DECODER: Final = JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_finite
)


def _is_deep(value: JSONValue) -> bool:
    """Tell whether containers nest deeper than the limit, going down level by level."""
    # no recursion, which would end at Python's own limit
    level: list[JSONValue] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for container in level
            for child in (
                container.values() if isinstance(container, dict) else _items(container)
            )
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return False
    return True


def _items(value: JSONValue) -> list[JSONValue]:
    if isinstance(value, list):
        return value
    return []


def _plain(value: object, path: Path) -> JSONValue:
    """Copy a value as plain JSON data.

    Raises:
        RefusedError: something inside is not JSON, not storable as UTF-8, or nested too deep.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _storable(value, path)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if isfinite(value):
            return float(value)
        raise RefusedJSONError(f"{_at(path)} is {value}, and JSON's numbers are finite")
    if len(path) >= MAX_DEPTH and isinstance(value, (Mapping, list, tuple)):
        raise RefusedJSONError(_TOO_DEEP)
    if isinstance(value, Mapping):
        return plain_object(value, path)
    if isinstance(value, (list, tuple)):
        return [_plain(item, (*path, index)) for index, item in enumerate(value)]
    raise RefusedJSONError(
        f"{_at(path)} is {value_text(value)}, which JSON cannot hold"
    )


def _key(key: object, path: Path) -> str:
    if isinstance(key, str):
        return _storable(key, path)
    raise RefusedJSONError(
        f"{_at(path)} has the key {key!r:.40}, and JSON's keys are strings"
    )


def _storable(text: str, path: Path) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(text[error.start]):04x}"
            raise RefusedJSONError(
                f"{_at(path)} holds half of a surrogate pair, {half}; write the character whole"
            ) from None
    if type(text) is str:
        return text
    return str.__str__(text)


def _at(path: Path) -> str:
    return path_text(path) or "the object"


def _repaired(text: str, error: json.JSONDecodeError) -> JSONObject:
    """Read text that is not JSON but has one reading.

    Raises:
        UnreadableError: it has none, or was cut off.
    """
    body = _unwrapped(text)
    if body != text:
        try:
            return _object(_strict(body))
        except json.JSONDecodeError as inner:
            error = inner
    if len(body) > MAX_REPAIRED:
        raise _cut(body) if _ends_inside(body, error) else _not_json(body, error)
    try:
        # a repair that went wrong is not JSON either: it is refused, and never runs
        return _object(_strict(re.sub(_PIECE, _respell, body)))
    except (json.JSONDecodeError, _LooseQuoteError):
        raise _cut(body) if _is_cut(body, error) else _not_json(body, error) from None


def _unwrapped(text: str) -> str:
    """Take a byte order mark and a Markdown fence away."""
    body = text.removeprefix(_BOM).strip()
    if not body.startswith(_FENCE):
        return body
    opening, _, rest = body.partition("\n")
    language = opening.removeprefix(_FENCE).strip()
    if not language or language.isalnum():
        return rest.removesuffix(_FENCE).strip()
    return body


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Tell whether the text ends inside a bracket or a string that opened."""
    bare = re.sub(_STRINGS, r"\1", text)
    if bare.endswith(('"', "'")):
        # Either the last string was cut off, or some quote before it was not escaped.
        return _ends_inside(text, error) or not text.endswith("}")
    return bare.count("{") + bare.count("[") > bare.count("}") + bare.count("]")


def _ends_inside(text: str, error: json.JSONDecodeError) -> bool:
    """Tell whether the strict reader ran into the text's end."""
    return error.msg.startswith("Unterminated") or 0 < len(text) <= error.pos


def _cut(text: str) -> UnreadableError:
    return UnreadableError(
        f"the text was cut off: it ends after {len(text):,} characters, before the object is closed; "
        "if it was too long, split the work into smaller calls"
    )


def _respell(token: re.Match[str]) -> str:
    """Rewrite a token that JSON spells otherwise; a token has one spelling, so the text has one reading."""
    text = token[0]
    match token.lastgroup:
        case "double":
            return re.sub(_CONTROL, _escaped, text)
        case "single":
            if not re.search(_ODD, text):
                return f'"{text[1:-1]}"'
            requoted = re.sub(_SINGLE_PARTS, _requoted, text[1:-1])
            return f'"{re.sub(_CONTROL, _escaped, requoted)}"'
        case "comma":
            return ""
        case "key" if text not in _LITERALS:
            return f'"{text}"'
        case "loose":
            raise _LooseQuoteError
        case _:
            return _WORDS.get(text, text)


def _escaped(control: re.Match[str]) -> str:
    return f"\\u{ord(control[0]):04x}"


def _requoted(part: re.Match[str]) -> str:
    """Turn a single-quoted string's escapes into a double-quoted one's."""
    match part[0]:
        case "\\'":
            return "'"
        case '"':
            return '\\"'
        case other:
            return other


def _not_json(text: str, error: json.JSONDecodeError) -> UnreadableError:
    if not text:
        return UnreadableError("they are blank")
    near = text[max(0, error.pos - 20) : error.pos + 20]
    detail = error.msg[:1].lower() + error.msg[1:]
    return UnreadableError(
        f"{detail} at line {error.lineno} column {error.colno}, near {json.dumps(near)}"
    )
