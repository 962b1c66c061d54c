"""One request in a vendor's words."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

import attrs

from amplifier_sdk.chat import Degradation
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["Outgoing", "cache_key_of"]

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
