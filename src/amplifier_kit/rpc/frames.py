"""One message of JSON-RPC on one line: read within bounds, written in ASCII."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, NoReturn

from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "RpcError",
    "read_frame",
    "values_in",
    "write_frame",
]

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

_TEXT: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)


class RpcError(AmplifierError):
    """A request failed; the message is for whoever sent it.

    Args:
        code: one of the protocol's numbers.
        message: what is wrong, and what helps.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def read_frame(line: bytes, *, max_values: int) -> JSONObject:
    """Read a message.

    Args:
        line: what stands on its line.
        max_values: how many values it may hold.

    Raises:
        RpcError: it is no JSON object, or holds too many values.
    """
    # Counted before parsing: a few megabytes of brackets become gigabytes of objects.
    if values_in(line) > max_values:
        raise RpcError(
            INVALID_REQUEST, f"the message holds more than {max_values} values"
        )
    try:
        message: JSONValue = json.loads(line, parse_constant=_refuse)
    except RecursionError:
        raise RpcError(PARSE_ERROR, "the message is nested too deep") from None
    except ValueError as error:
        raise RpcError(PARSE_ERROR, f"the message is no JSON: {error}") from None
    if isinstance(message, list):
        raise RpcError(INVALID_REQUEST, "batches are not supported")
    if not isinstance(message, dict):
        raise RpcError(INVALID_REQUEST, "the message is no JSON object")
    return message


def values_in(data: bytes) -> int:
    """Return at least how many values a text in JSON holds, without making them."""
    marks = _TEXT.sub(b"", data)
    # Each value follows one of these.
    return marks.count(b",") + marks.count(b"[") + marks.count(b"{")


def write_frame(message: Mapping[str, JSONValue]) -> bytes:
    """Write a message on one line; ASCII, since half a surrogate pair has no UTF-8.

    Raises:
        ValueError: it holds a number that JSON has not.
    """
    text = json.dumps(message, allow_nan=False, separators=(",", ":"))
    return text.encode("ascii") + b"\n"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
