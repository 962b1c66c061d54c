"""How long the model thinks and how long it may answer: one decision, because thinking counts as output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, cast, get_args

import attrs

from amplifier_module_provider_anthropic.config import LEAST_THINKING, AnthropicConfig
from amplifier_module_provider_anthropic.losses import Losses
from amplifier_module_provider_anthropic.models import Effort, Model, default_max_tokens
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["Thought", "decide_thinking"]

_EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)
_BUDGETS: Final[Mapping[Effort, int]] = {
    "low": 4_000,
    "medium": 10_000,
    "high": 16_000,
    "xhigh": 32_000,
    "max": 48_000,
}


@attrs.frozen(kw_only=True)
class Thought:
    """What was decided.

    Args:
        max_tokens: the longest answer, thinking included.
        thinking: the request's `thinking`; `None` leaves it out.
        effort: the request's level of effort; `None` leaves it out.
    """

    max_tokens: int
    thinking: JSONObject | None = None
    effort: Effort | None = None

    def binding(self, behavior: Literal["drop", "error"]) -> Thought:
        """Return what was decided with what becomes of earlier thoughts when what was before them has changed.

        The models that notice think by themselves, so that to say so changes nothing; `error` is what they do unasked.
        """
        # a request that turns thinking off has no place for the binding
        if behavior == "error" or (self.thinking is not None and not self.is_on):
            return self
        thinking = self.thinking or {"type": "adaptive"}
        return attrs.evolve(
            self,
            thinking={
                **thinking,
                "block_binding": {"prefix_mismatch_behavior": "drop_block"},
            },
        )

    @property
    def is_off(self) -> bool:
        """Whether the request turns all thinking off."""
        return self.thinking is not None and self.thinking["type"] == "disabled"

    @property
    def is_on(self) -> bool:
        """Whether the request turns thinking on."""
        return self.thinking is not None and self.thinking["type"] in (
            "adaptive",
            "enabled",
        )


def decide_thinking(
    request: ChatRequest,
    config: AnthropicConfig,
    model: Model,
    *,
    is_forced: bool,
    losses: Losses,
) -> Thought:
    """Decide how the model thinks about a request.

    Args:
        request: the request.
        config: the defaults for what it leaves open.
        model: the model that is asked.
        is_forced: whether `tool_choice` forces a call, which cannot be thought about first.
        losses: what cannot be given is noted here.
    """
    effort = _read_effort(request.reasoning_effort or config.reasoning_effort, losses)
    wanted = _is_wanted(config, effort)
    # the API refuses a forced tool choice together with thinking
    if is_forced and model.thinking != "always":
        if wanted:
            losses.add(
                "thinking", "none", "a forced tool call cannot be thought about first"
            )
        wanted = False
    level = None
    if effort != "none":
        level = effort
    if model.thinking == "budget":
        return _with_budget(
            request, config, model, level=level, is_wanted=bool(wanted), losses=losses
        )
    thinking = _adaptive(config, model, wanted, losses)
    if effort == "none" and model.thinking == "always":
        # the nearest to no thinking that such a model has
        level = "low"
    if (
        # The API refuses the two highest levels where thinking is turned off.
        level in ("xhigh", "max")
        and thinking is not None
        and thinking["type"] == model.thinking_off
    ):
        losses.add(
            f"effort {level}", "effort high", "without thinking it is the highest"
        )
        level = "high"
    return Thought(
        max_tokens=_max_tokens(request, config, model, losses),
        thinking=thinking,
        effort=_nearest(level, model, losses),
    )


def _read_effort(text: str | None, losses: Losses) -> Effort | Literal["none"] | None:
    if text is None or text == "none" or text in _EFFORTS:
        # the type checker does not narrow by `in`
        return cast("Effort | Literal['none'] | None", text)
    if text == "minimal":
        losses.add("effort minimal", "effort low", "the API's levels begin with low")
        return "low"
    losses.add(
        f"effort {text}",
        "the model's own",
        f"the API's levels are {', '.join(_EFFORTS)}",
    )
    return None


def _is_wanted(config: AnthropicConfig, effort: str | None) -> bool | None:
    """Tell whether thinking is asked for, asked not to be, or left to the model."""
    if effort == "none":
        return False
    if config.extended_thinking is not None:
        return config.extended_thinking
    if effort is None:
        return None
    return True


def _adaptive(
    config: AnthropicConfig, model: Model, wanted: bool | None, losses: Losses
) -> JSONObject | None:
    if model.thinking == "none":
        if wanted:
            losses.add("thinking", "none", "the model does not think")
        return None
    if wanted is False:
        if model.thinking == "always":
            losses.add(
                "an answer without thinking",
                "an answer with thinking",
                "the model always thinks",
            )
        if model.thinking == "default":
            return {"type": model.thinking_off}
        return None
    if wanted or (
        config.thinking_display is not None and model.thinking in ("default", "always")
    ):
        return _displayed({"type": "adaptive"}, config)
    return None


def _displayed(thinking: JSONObject, config: AnthropicConfig) -> JSONObject:
    if config.thinking_display is None:
        return thinking
    return {**thinking, "display": config.thinking_display}


def _nearest(level: Effort | None, model: Model, losses: Losses) -> Effort | None:
    """Return the level, or the highest below it that the model has."""
    if level is None or level in model.efforts:
        return level
    lower = [
        known
        for known in model.efforts
        if _EFFORTS.index(known) < _EFFORTS.index(level)
    ]
    losses.add(
        f"effort {level}",
        f"effort {lower[-1]}" if lower else "the model's own",
        "the model does not have this level",
    )
    if lower:
        return lower[-1]
    return None


def _with_budget(
    request: ChatRequest,
    config: AnthropicConfig,
    model: Model,
    *,
    level: Effort | None,
    is_wanted: bool,
    losses: Losses,
) -> Thought:
    effort = None
    if model.efforts:
        effort = _nearest(level, model, losses)
    max_tokens = _max_tokens(request, config, model, losses)
    if not is_wanted:
        return Thought(max_tokens=max_tokens, effort=effort)
    budget = config.thinking_budget_tokens or _BUDGETS[level or "high"]
    # a limit that somebody set stays; only our own default makes room for thoughts
    if request.max_output_tokens is None and config.max_tokens is None:
        max_tokens = min(
            model.max_output_tokens,
            max(max_tokens, budget + config.thinking_budget_buffer),
        )
    # the API takes a budget only if it is below the length of the answer
    budget = min(budget, max_tokens - 1)
    if budget < LEAST_THINKING:
        losses.add(
            "thinking",
            "none",
            f"it takes {LEAST_THINKING} tokens at least and the answer may have {max_tokens}",
        )
        return Thought(max_tokens=max_tokens, effort=effort)
    thinking = _displayed({"type": "enabled", "budget_tokens": budget}, config)
    return Thought(max_tokens=max_tokens, thinking=thinking, effort=effort)


def _max_tokens(
    request: ChatRequest, config: AnthropicConfig, model: Model, losses: Losses
) -> int:
    asked = request.max_output_tokens or config.max_tokens
    if asked is None:
        return default_max_tokens(model)
    if asked > model.max_output_tokens:
        losses.add(
            f"{asked} output tokens",
            f"{model.max_output_tokens} output tokens",
            "the model's answers are no longer",
        )
        return model.max_output_tokens
    return asked
