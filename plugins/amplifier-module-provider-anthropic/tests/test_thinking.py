"""How long models think, and what is said when they cannot do what was asked."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from amplifier_kit.vendors import Outgoing
from amplifier_module_provider_anthropic import AnthropicConfig, Model
from amplifier_module_provider_anthropic.requests import write_request
from amplifier_sdk.chat import ChatRequest, ToolSpec
from amplifier_sdk.content import RedactedThinkingBlock, TextBlock, ThinkingBlock
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message

BUDGET = "claude-haiku-4-5"
ADAPTIVE = "claude-opus-4-8"
DEFAULT = "claude-sonnet-5"
BINDING = "claude-sonnet-5-5"
ALWAYS = "claude-opus-5-5"
ON: JSONObject = {"type": "adaptive"}
OFF: JSONObject = {"type": "disabled"}


def _sent(
    model: str,
    *,
    history: Sequence[Message] = (),
    effort: str | None = None,
    limit: int | None = None,
    forced: bool = False,
    **options: JSONValue,
) -> Outgoing:
    request = ChatRequest(
        messages=[*history, Message(role="user", content="Hello.")],
        reasoning_effort=effort,
        max_output_tokens=limit,
        tools=[ToolSpec(name="add", parameters={})] if forced else None,
        tool_choice="required" if forced else None,
    )
    return write_request(request, model, AnthropicConfig(**options))  # type: ignore[arg-type]  # as JSON has them


@pytest.mark.parametrize(
    ("model", "wanted", "thinking"),
    [
        pytest.param(BUDGET, None, None, id="budget"),
        pytest.param(
            BUDGET, True, {"type": "enabled", "budget_tokens": 16_000}, id="budget-on"
        ),
        pytest.param(BUDGET, False, None, id="budget-off"),
        pytest.param(ADAPTIVE, None, None, id="adaptive"),
        pytest.param(ADAPTIVE, True, ON, id="adaptive-on"),
        pytest.param(ADAPTIVE, False, None, id="adaptive-off"),
        pytest.param(DEFAULT, None, None, id="default"),
        pytest.param(DEFAULT, True, ON, id="default-on"),
        pytest.param(DEFAULT, False, OFF, id="default-off"),
        pytest.param(ALWAYS, None, None, id="always"),
        pytest.param(ALWAYS, True, ON, id="always-on"),
        pytest.param(ALWAYS, False, None, id="always-off"),
    ],
)
def test_each_model_is_asked_to_think_in_its_own_way(
    model: str, wanted: bool | None, thinking: JSONObject | None
) -> None:
    assert _sent(model, extended_thinking=wanted).body.get("thinking") == thinking


@pytest.mark.parametrize(
    ("model", "effort", "thinking", "output"),
    [
        pytest.param(
            BUDGET,
            "low",
            {"type": "enabled", "budget_tokens": 4_000},
            None,
            id="budget",
        ),
        pytest.param(BUDGET, "none", None, None, id="budget-none"),
        pytest.param(
            "claude-opus-4-5",
            "medium",
            {"type": "enabled", "budget_tokens": 10_000},
            "medium",
            id="both",
        ),
        pytest.param(ADAPTIVE, "xhigh", ON, "xhigh", id="adaptive"),
        pytest.param(ADAPTIVE, "none", None, None, id="adaptive-none"),
        pytest.param(DEFAULT, "max", ON, "max", id="default"),
        pytest.param(DEFAULT, "none", OFF, None, id="default-none"),
        pytest.param(ALWAYS, "medium", ON, "medium", id="always"),
        pytest.param(ALWAYS, "none", None, "low", id="always-none"),
    ],
)
def test_an_effort_becomes_what_the_model_takes(
    model: str, effort: str, thinking: JSONObject | None, output: str | None
) -> None:
    body = _sent(model, effort=effort).body

    assert body.get("thinking") == thinking
    assert body.get("output_config") == (None if output is None else {"effort": output})


def test_effort_of_configuration_is_of_requests_that_name_none() -> None:
    assert _sent(DEFAULT, reasoning_effort="low").body["output_config"] == {
        "effort": "low"
    }
    assert _sent(DEFAULT, effort="high", reasoning_effort="low").body[
        "output_config"
    ] == {"effort": "high"}


@pytest.mark.parametrize(
    ("model", "effort", "actual"),
    [
        pytest.param(DEFAULT, "minimal", "effort low", id="minimal"),
        pytest.param(DEFAULT, "heroic", "the model's own", id="unknown"),
        pytest.param("claude-opus-4-6", "xhigh", "effort high", id="not-of-this-model"),
        pytest.param(ALWAYS, "none", "an answer with thinking", id="always"),
    ],
)
def test_an_effort_that_cannot_be_had_is_said(
    model: str, effort: str, actual: str
) -> None:
    lost = _sent(model, effort=effort).degradation

    assert lost is not None
    assert lost.actual == actual


def test_a_budget_may_be_given() -> None:
    body = _sent(BUDGET, effort="low", thinking_budget_tokens=20_000).body

    assert body["thinking"] == {"type": "enabled", "budget_tokens": 20_000}


def test_a_budget_leaves_room_for_the_answer() -> None:
    models = {
        "small": Model(max_output_tokens=8_000),
        "large": Model(max_output_tokens=200_000),
    }
    request = ChatRequest(messages=[Message(role="user", content="Hello.")])
    config = AnthropicConfig(
        models=models,
        extended_thinking=True,
        thinking_budget_tokens=90_000,
        thinking_budget_buffer=1_000,
    )

    small, large = (write_request(request, name, config).body for name in models)

    assert (small["max_tokens"], small["thinking"]) == (
        8_000,
        {"type": "enabled", "budget_tokens": 7_999},
    )
    assert (large["max_tokens"], large["thinking"]) == (
        91_000,
        {"type": "enabled", "budget_tokens": 90_000},
    )


def test_answer_too_short_to_think_first_does_not_and_says_so() -> None:
    outgoing = _sent(BUDGET, effort="high", limit=1_000)

    assert "thinking" not in outgoing.body
    assert outgoing.degradation is not None
    assert (
        outgoing.degradation.reason
        == "it takes 1024 tokens at least and the answer may have 1000"
    )


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        pytest.param(
            BUDGET,
            {"type": "enabled", "budget_tokens": 16_000, "display": "summarized"},
            id="budget",
        ),
        pytest.param(
            ADAPTIVE, {"type": "adaptive", "display": "summarized"}, id="adaptive"
        ),
    ],
)
def test_thinking_can_be_shown(model: str, thinking: JSONObject) -> None:
    assert (
        _sent(model, extended_thinking=True, thinking_display="summarized").body[
            "thinking"
        ]
        == thinking
    )


@pytest.mark.parametrize("model", [DEFAULT, ALWAYS])
def test_thinking_that_nobody_asked_for_can_be_shown(model: str) -> None:
    assert _sent(model, thinking_display="summarized").body["thinking"] == {
        **ON,
        "display": "summarized",
    }


@pytest.mark.parametrize(
    ("model", "thinking"),
    [pytest.param(BUDGET, None, id="budget"), pytest.param(DEFAULT, OFF, id="default")],
)
def test_a_forced_call_is_not_thought_about_first(
    model: str, thinking: JSONObject | None
) -> None:
    outgoing = _sent(model, forced=True, extended_thinking=True)

    assert outgoing.body["tool_choice"] == {"type": "any"}
    assert outgoing.body.get("thinking") == thinking
    assert outgoing.degradation is not None
    assert (
        outgoing.degradation.reason
        == "a forced tool call cannot be thought about first"
    )


def test_effort_is_no_higher_than_model_takes_without_thinking() -> None:
    outgoing = _sent(DEFAULT, effort="max", extended_thinking=False)

    assert outgoing.body["output_config"] == {"effort": "high"}
    assert outgoing.degradation is not None


def test_a_model_that_does_not_think_need_not_be_told() -> None:
    config = AnthropicConfig(
        extended_thinking=False, models={"plain": Model(thinking="none")}
    )
    outgoing = write_request(
        ChatRequest(messages=[Message(role="user", content="Hello.")]), "plain", config
    )

    assert "thinking" not in outgoing.body
    assert outgoing.degradation is None


def test_a_model_that_does_not_think_says_so() -> None:
    models = {"plain": Model(thinking="none")}
    request = ChatRequest(
        messages=[Message(role="user", content="Hello.")], reasoning_effort="low"
    )
    outgoing = write_request(request, "plain", AnthropicConfig(models=models))

    assert outgoing.body.keys().isdisjoint({"thinking", "output_config"})
    assert outgoing.degradation is not None
    assert (
        outgoing.degradation.reason
        == "the model does not think; the model does not have this level"
    )


THOUGHT = (
    Message(role="user", content="Begin."),
    Message(
        role="assistant",
        content=[
            ThinkingBlock(thinking="Hm.", signature="sig"),
            RedactedThinkingBlock(data="x"),
            TextBlock(text="Yes."),
        ],
    ),
)
DROPS: JSONObject = {"prefix_mismatch_behavior": "drop_block"}


@pytest.mark.parametrize(
    "model",
    [BINDING, ALWAYS, "claude-haiku-5-5", "claude-fable-5-1", "claude-not-yet-made-9"],
)
def test_thoughts_whose_history_has_changed_are_left_out_by_api(model: str) -> None:
    outgoing = _sent(model, history=THOUGHT)

    assert outgoing.body["thinking"] == {**ON, "block_binding": DROPS}
    assert outgoing.headers == {
        "anthropic-beta": "thinking-binding-controls-2026-08-01"
    }


def test_thoughts_whose_history_has_changed_may_be_an_error() -> None:
    outgoing = _sent(BINDING, history=THOUGHT, changed_history="error")

    assert "thinking" not in outgoing.body
    assert outgoing.headers == {}


def test_how_thinking_is_shown_is_kept_beside_that() -> None:
    body = _sent(BINDING, history=THOUGHT, thinking_display="summarized").body

    assert body["thinking"] == {**ON, "display": "summarized", "block_binding": DROPS}


@pytest.mark.parametrize(
    "model", [BUDGET, ADAPTIVE, "claude-opus-5", DEFAULT, "smollm2"]
)
def test_models_that_do_not_bind_thoughts_are_told_nothing(model: str) -> None:
    outgoing = _sent(model, history=THOUGHT)

    assert "thinking" not in outgoing.body
    assert outgoing.headers == {}


def test_without_thoughts_nothing_is_said_of_them() -> None:
    assert "thinking" not in _sent(DEFAULT).body


def test_thoughts_skip_models_that_bind_them() -> None:
    body = _sent("claude-haiku-5-5", history=THOUGHT, effort="none").body

    assert body["thinking"] == OFF
    messages = body["messages"]
    assert isinstance(messages, list)
    assert [block["type"] for block in messages[1]["content"]] == ["text"]


def test_a_model_that_thinks_between_tools_only_is_told_so() -> None:
    outgoing = _sent(BINDING, history=THOUGHT, effort="none")

    assert outgoing.body["thinking"] == {"type": "between_tools"}
    assert outgoing.headers == {}
    messages = outgoing.body["messages"]
    assert isinstance(messages, list)
    assert [block["type"] for block in messages[1]["content"]] == [
        "thinking",
        "redacted_thinking",
        "text",
    ]


def test_between_tools_an_effort_is_no_higher_than_high() -> None:
    outgoing = _sent(BINDING, effort="max", extended_thinking=False)

    assert outgoing.body["output_config"] == {"effort": "high"}
    assert outgoing.degradation is not None
