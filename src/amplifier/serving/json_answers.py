"""JSON as every answer and every event is written: in ASCII, so that any text of a model has a form."""

from __future__ import annotations

import json
from math import isfinite
from typing import Final

from starlette.responses import Response
from starlette.types import Message

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["JSONAnswer", "json_bytes", "with_private_headers"]

# `json.dumps` with separators makes an encoder for each call
_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def json_bytes(value: JSONValue) -> bytes:
    """Write JSON without a line end; half of a surrogate pair stays an escape, and no number is `null`.

    UTF-8 has no form for the former, which a model may send; a page's `JSON.parse` refuses the latter.
    """
    try:
        text = _ENCODER.encode(value)
    except ValueError:
        text = _ENCODER.encode(_finite(value))
    return text.encode("ascii")


class JSONAnswer(Response):
    """An answer in JSON."""

    media_type: str | None = "application/json"

    def render(self, content: JSONValue) -> bytes:
        """Write the answer's body."""
        return json_bytes(content)


def _finite(value: JSONValue) -> JSONValue:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value


def with_private_headers(message: Message) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer: what is private is stored by nobody, and no browser guesses what it is."""
    headers = list(message["headers"])
    known = {name for name, _ in headers}
    headers += [(name, value) for name, value in _HEADERS if name not in known]
    return headers
