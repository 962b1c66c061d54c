"""Request ids: the events of one request of a provider to its vendor carry one id.

`llm:request` gets an id, or keeps its own; retries, throttling, the answer and the error that belong to it carry
the same. The id is held by a context variable, so that requests beside each other keep theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from random import getrandbits
from typing import Final

from amplifier_sdk.events import (
    LLM_REQUEST,
    LLM_RESPONSE,
    PROVIDER_ERROR,
    PROVIDER_RETRY,
    PROVIDER_THROTTLE,
)

__all__ = ["REQUEST_EVENTS", "request_fields"]

_CLOSING: Final = frozenset({str(LLM_RESPONSE), str(PROVIDER_ERROR)})
REQUEST_EVENTS: Final = frozenset(
    {*_CLOSING, str(LLM_REQUEST), str(PROVIDER_RETRY), str(PROVIDER_THROTTLE)}
)
"""The events that carry the id of a request."""

_NONE: Final[dict[str, object]] = {}
_current: Final[ContextVar[str | None]] = ContextVar(
    "amplifier_request_id", default=None
)


def request_fields(event: str, data: Mapping[str, object]) -> dict[str, object]:
    """Return the id that an event adds to its data, and open or close the request that it is about."""
    given = data.get("request_id")
    if event == LLM_REQUEST:
        _current.set(str(given) if given else f"{getrandbits(128):032x}")
    request_id = _current.get()
    if event in _CLOSING:
        _current.set(None)
    if request_id is None or given is not None:
        return _NONE
    return {"request_id": request_id}
