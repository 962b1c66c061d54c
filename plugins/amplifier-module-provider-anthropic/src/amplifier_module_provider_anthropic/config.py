"""The module's configuration: what all vendors' providers have, and what is Anthropic's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import attrs

from amplifier_kit.vendors import VendorConfig
from amplifier_module_provider_anthropic.models import Effort, Model
from amplifier_sdk.bounds import amount, integer, number
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["LEAST_THINKING", "AnthropicConfig"]

LEAST_THINKING: Final = 1024
"""The smallest number of tokens that the API takes for thinking."""


@attrs.frozen(kw_only=True)
class AnthropicConfig(VendorConfig):
    """What `config` of the plan may hold besides the options of every vendor.

    Args:
        auth: how the key is sent: `key` as `x-api-key`, `bearer` as an `Authorization` header, for gateways.
        reasoning_effort: of requests that name none; default the model's own.
        extended_thinking: let the model think before it answers, or not; default the model's own habit.
        thinking_budget_tokens: tokens to think with, for the models that take a number; default by the effort.
        thinking_budget_buffer: tokens left for the answer when a request names no limit and the default one is
            smaller than what thinking needs.
        thinking_display: `summarized` shows the thinking, `omitted` hides it; default the model's own habit.
        changed_history: what becomes of earlier thoughts when what was before them has changed, as by a compaction or
            an injection, for the models that notice: `drop` leaves them out, `error` refuses the request.
        enable_prompt_caching: let the API keep the beginning of a request for the next one.
        cache_ttl: how long it lasts.
        enable_1m_context: ask for a window of a million tokens, for the models of `models` that need to be asked.
        beta_headers: values of the `anthropic-beta` header.
        server_tools: the API's own tools, as the API takes them; offered with every request, before the session's.
        disable_parallel_tool_use: let the model call one tool at a time.
        overloaded_delay_multiplier: how much longer the waits are when the API is overloaded.
        max_continuations: how often an answer that the API paused is continued.
        models: what is to be known of models that the table lacks, or has wrong, by id.
    """

    auth: Literal["key", "bearer"] = "key"
    reasoning_effort: Literal["none"] | Effort | None = None
    extended_thinking: bool | None = None
    thinking_budget_tokens: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(integer(LEAST_THINKING))
    )
    thinking_budget_buffer: int = attrs.field(default=4_096, validator=amount)
    thinking_display: Literal["summarized", "omitted"] | None = None
    changed_history: Literal["drop", "error"] = "drop"
    enable_prompt_caching: bool = True
    cache_ttl: Literal["5m", "1h"] = "5m"
    enable_1m_context: bool = False
    beta_headers: tuple[str, ...] = ()
    server_tools: tuple[Mapping[str, JSONValue], ...] = ()
    disable_parallel_tool_use: bool = False
    overloaded_delay_multiplier: float = attrs.field(default=10.0, validator=number(1))
    max_continuations: int = attrs.field(default=5, validator=amount)
    models: Mapping[str, Model] = attrs.field(factory=dict)
