"""JSON as it goes to a vendor and comes back."""

from __future__ import annotations

import json
from typing import Final, NoReturn

from amplifier_kit.open_data import as_object
from amplifier_sdk.errors import InvalidRequestError, StreamError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["read_json", "read_object", "read_tokens", "storable", "write_json"]


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


# Made once: `json.loads` with a hook of its own makes a decoder for every text.
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


def write_json(body: JSONValue) -> bytes:
    """Write a request's body; half of a surrogate pair, which no server can read, becomes a question mark.

    Raises:
        InvalidRequestError: it holds what is not JSON, such as NaN.
    """
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode(
            "utf-8", "replace"
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequestError(
            f"The request cannot be written as JSON: {error}"
        ) from error


def read_json(text: str | bytes) -> JSONValue:
    """Read JSON of the vendor's.

    Raises:
        StreamError: it is none.
    """
    try:
        value: JSONValue = _DECODER.decode(
            text if isinstance(text, str) else text.decode("utf-8-sig", "replace")
        )
    except (ValueError, RecursionError) as error:
        raise StreamError(
            f"The vendor sent what is not JSON: {text[:200]!r}"
        ) from error
    return value


def read_object(text: str) -> JSONObject:
    """Read the JSON object that an event carries.

    Raises:
        StreamError: it is not one.
    """
    value = read_json(text)
    if not isinstance(value, dict):
        raise StreamError(f"The vendor sent what is no JSON object: {text[:200]!r}")
    return value


def read_tokens(counts: JSONValue, key: str) -> int | None:
    """Return a count out of the vendor's figures; `None` where there is none, or something else."""
    value = as_object(counts).get(key)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def storable(text: str) -> str:
    """Return a vendor's text as UTF-8 can write it: half of a surrogate pair becomes a replacement character.

    Two halves that came apart become the character that they are.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
