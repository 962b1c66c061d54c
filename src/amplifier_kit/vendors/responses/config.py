"""The options that every provider of the Responses API has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import attrs

from amplifier_kit.vendors.config import VendorConfig
from amplifier_sdk.bounds import count, integer
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Effort", "ResponsesConfig"]

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model reasons before it answers; not every model takes each."""

_MAX_CONTINUATIONS: Final = 5


@attrs.frozen(kw_only=True)
class ResponsesConfig(VendorConfig):
    """What `config` of the plan may hold beside what all vendors have.

    Args:
        reasoning_effort: of requests that name none; default the model's.
        reasoning_summary: how the model's reasoning is summed up; `None` asks for no summary.
        verbosity: how long answers are; default the model's.
        truncation: `auto` lets the vendor drop the beginning of a conversation that is too long.
        store: whether the vendor keeps the answers; default only with `enable_response_chaining`.
        enable_response_chaining: send what is new since the last answer, and go on from that one at the vendor's.
        parallel_tool_calls: whether one answer may have several calls; default the vendor's.
        server_tools: the vendor's own tools that requests offer beside the session's, as the API writes them.
        service_tier: how requests are processed and paid for; default the project's.
        prompt_cache_key: what brings like requests to one cache; default the request's `conversation_id`.
        prompt_cache_retention: how long the vendor keeps prompts in its cache; default the vendor's.
        max_continuations: how often an answer that was cut at the model's limit is continued, 0 to 5.
        context_window: tokens that a request and its answer may have; default as the model has.
        enable_long_context: use all of a model's context where long prompts cost more; else at most 400,000 tokens.

    Raises:
        ValueError: a value is out of its range, or chaining is asked for without storing.
    """

    reasoning_effort: Effort | None = None
    reasoning_summary: Literal["auto", "concise", "detailed"] | None = "auto"
    verbosity: Literal["low", "medium", "high"] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    store: bool | None = None
    enable_response_chaining: bool = False
    parallel_tool_calls: bool | None = None
    server_tools: tuple[Mapping[str, JSONValue], ...] = ()
    service_tier: (
        Literal["auto", "default", "flex", "scale", "priority", "fast", "ultrafast"]
        | None
    ) = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    max_continuations: int = attrs.field(
        default=_MAX_CONTINUATIONS, validator=integer(0, _MAX_CONTINUATIONS)
    )
    context_window: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(count)
    )
    enable_long_context: bool = False

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.enable_response_chaining and self.store is False:
            raise ValueError(
                "enable_response_chaining goes on from answers that the vendor stores: do not set store to false"
            )

    @property
    def is_stored(self) -> bool:
        """Whether the vendor keeps the answers."""
        if self.store is None:
            return self.enable_response_chaining
        return self.store
