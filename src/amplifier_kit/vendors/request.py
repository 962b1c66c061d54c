"""One request in a vendor's words, and what reads its answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final, Protocol

import attrs

from amplifier_kit.http.sse import ServerEvent
from amplifier_sdk.chat import ChatResponse, Degradation
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.streaming import Delta

__all__ = ["AnswerReader", "Outgoing", "cache_key_of"]

_MAX_CACHE_KEY: Final = 64
"""Characters; OpenAI refuses a request whose `prompt_cache_key` has more."""


@attrs.frozen(kw_only=True)
class Outgoing:
    """What is sent for one `ChatRequest`.

    Args:
        path: relative to the vendor's address, for example `chat/completions`; may have a query.
        body: the JSON object that is posted; `extra_request_params` of the configuration are added to it.
        headers: further headers; credentials and `extra_headers` of the configuration are added to them.
        degradation: what was asked for and cannot be given; it goes into the answer, unless the reader puts one
            of its own there.
    """

    path: str
    body: JSONObject
    headers: Mapping[str, str] = attrs.field(factory=dict)
    degradation: Degradation | None = None


def cache_key_of(conversation_id: str | None) -> str | None:
    """Return the `prompt_cache_key` of a conversation: its id, or a digest of one that is too long, as a child's is."""
    if conversation_id is None or len(conversation_id) <= _MAX_CACHE_KEY:
        return conversation_id
    return sha256(conversation_id.encode("utf-8", "surrogatepass")).hexdigest()


class AnswerReader(Protocol):
    """Turns one answer's events into deltas and, at the end, the whole answer; it does no I/O."""

    def feed(self, event: ServerEvent) -> Iterable[Delta]:
        """Take the next event and return what it adds; unknown events and blocks add nothing.

        The result is read to its end before the next call, unless the answer is abandoned.

        Raises:
            LLMError: the vendor reports one in the stream, or the event cannot be read.
        """

    @property
    def is_ended(self) -> bool:
        """Whether the vendor's end marker came; no event after it is fed."""

    def finish(self) -> ChatResponse:
        """Return the whole answer, without the cost, which is added to its `usage` afterwards.

        `usage.input_tokens` counts all that was read, with what came from a cache and what was written to one.

        Raises:
            StreamError: the stream ended without its end marker.
        """
