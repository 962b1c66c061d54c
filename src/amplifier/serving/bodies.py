"""The bodies of requests: bounded in size and time, and checked against a class."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Final, TypeVar

import anyio
from starlette.requests import ClientDisconnect, Request

from amplifier.serving.errors import RequestError
from amplifier.serving.limits import ServerLimits
from amplifier_sdk.convert import from_json
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["read_body"]

T = TypeVar("T")

_JSON: Final = "application/json"


async def read_body(request: Request, cls: type[T], limits: ServerLimits) -> T:
    """Read a request's JSON object as a value of a class; no body at all is an empty object.

    Raises:
        RequestError: it is too large or too slow, no JSON, or does not fit.
    """
    raw = await _bytes(request, limits)
    data = _json(request, raw) if raw else {}
    try:
        return from_json(data, cls)
    except ValueError as error:
        raise RequestError(422, "invalid_request", str(error)) from None


async def _bytes(request: Request, limits: ServerLimits) -> bytes:
    announced = request.headers.get("content-length", "0")
    # so many digits that Python does not read them are too large as well
    if not announced.isdecimal() or int(announced[:20]) > limits.max_body_bytes:
        raise _too_large(limits)
    try:
        with anyio.fail_after(limits.body_timeout):
            return await _collected(request, limits)
    except TimeoutError:
        seconds = f"{limits.body_timeout:g}"
        raise RequestError(
            408, "body_too_slow", f"A body has {seconds} seconds to arrive"
        ) from None
    except ClientDisconnect:
        raise RequestError(400, "disconnected", "The body is incomplete") from None


async def _collected(incoming: Request, limits: ServerLimits) -> bytes:
    body = bytearray()
    async with aclosing(incoming.stream()) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > limits.max_body_bytes:
                raise _too_large(limits)
    return bytes(body)


def _too_large(limits: ServerLimits) -> RequestError:
    return RequestError(
        413, "body_too_large", f"A body has at most {limits.max_body_bytes:,} bytes"
    )


def _json(request: Request, raw: bytes) -> JSONValue:
    # a page of another site can send any other type without asking first
    if request.headers.get("content-type", "").partition(";")[0].strip() != _JSON:
        raise RequestError(415, "unsupported_media_type", f"A body is {_JSON}")
    try:
        data: JSONValue = json.loads(raw.decode("utf-8"))
        # half of a surrogate pair has no UTF-8 form, and fails where it is stored
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        reason = (
            "it nests too deep" if isinstance(error, RecursionError) else str(error)
        )
        raise RequestError(
            400, "malformed_json", f"The body is no JSON: {reason:.200}"
        ) from None
    return data
