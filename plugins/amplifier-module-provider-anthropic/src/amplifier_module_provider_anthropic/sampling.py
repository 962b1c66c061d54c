"""How the model picks its words: what a request asks for, where the model takes it."""

from __future__ import annotations

from typing import Final

from amplifier_module_provider_anthropic.config import AnthropicConfig
from amplifier_module_provider_anthropic.losses import Losses
from amplifier_module_provider_anthropic.models import Model
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["sampling"]

_GONE: Final = "this model has no sampling parameters"


def sampling(
    request: ChatRequest,
    config: AnthropicConfig,
    model: Model,
    *,
    is_thinking: bool,
    losses: Losses,
) -> JSONObject:
    """Return `temperature` or `top_p`, whichever is asked for and may be set."""
    temperature = config.temperature
    if request.temperature is not None:
        temperature = request.temperature
    fields: JSONObject = {}
    if temperature is not None:
        reason = _refused_temperature(temperature, model, is_thinking=is_thinking)
        if reason is None:
            # Other vendors go up to 2: what was meant is "as varied as possible".
            fields["temperature"] = min(temperature, 1.0)
        if reason is not None or temperature > 1:
            given = "temperature 1"
            if reason is not None:
                given = "the model's own"
            losses.add(
                f"temperature {temperature:g}",
                given,
                reason or "temperatures are from 0 to 1",
            )
    if request.top_p is not None:
        reason = _refused_top_p(request.top_p, model, is_thinking=is_thinking)
        if reason is None and fields:
            reason = "the model takes a temperature or a top_p, not both"
        if reason is None:
            fields["top_p"] = request.top_p
        else:
            losses.add(f"top_p {request.top_p:g}", "the model's own", reason)
    return fields


def _refused_temperature(
    temperature: float, model: Model, *, is_thinking: bool
) -> str | None:
    if not model.takes_temperature:
        return _GONE
    if is_thinking and temperature != 1:
        return "a model that thinks has a temperature of 1"
    return None


def _refused_top_p(top_p: float, model: Model, *, is_thinking: bool) -> str | None:
    if not model.takes_temperature:
        return _GONE
    if is_thinking and not 0.95 <= top_p <= 1:
        return "a model that thinks takes a top_p from 0.95 to 1"
    return None
