"""What tools and handlers answer, and what a whole event's handlers decided."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_sdk.content import TextBlock
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import (
    CONTINUE,
    ContextInjection,
    Decision,
    Emission,
    HookAction,
    HookResult,
    MessageLevel,
    ToolResult,
    UserMessage,
)
from tests.sdk.values import json_values


@given(
    json_values().filter(lambda value: value is not None and not isinstance(value, str))
)
def test_a_structured_output_goes_into_the_history_as_json(output: JSONValue) -> None:
    assert json.loads(ToolResult(output=output).get_serialized_output()) == output


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (ToolResult(output="plain é"), "plain é"),
        (ToolResult(output={"a": "é"}), '{"a": "é"}'),
        (ToolResult(), "Success"),
        (ToolResult(output=""), ""),
        (ToolResult(output=False), "false"),
        (ToolResult.failure("broken"), "Error: broken"),
        (ToolResult.failure("broken", code=3), 'Error: broken\n{"code": 3}'),
        (ToolResult(success=False, error={"type": "Odd"}), "Error: the tool failed"),
        (ToolResult(success=False, output={"a": 1}), 'Error: {"a": 1}'),
        (ToolResult(success=False), "Error: the tool failed"),
    ],
    ids=str,
)
def test_a_result_has_a_text_for_the_history(result: ToolResult, text: str) -> None:
    assert result.get_serialized_output() == text
    assert str(result) == text


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ({"p": Path("a/b")}, '{"p": "a/b"}'),
        ({"n": Decimal("1.50")}, '{"n": "1.50"}'),
        (
            {"t": datetime(2030, 1, 31, tzinfo=UTC)},
            '{"t": "2030-01-31T00:00:00+00:00"}',
        ),
        ({"s": {"a"}}, '{"s": ["a"]}'),
        ({"m": MappingProxyType({"a": 1})}, '{"m": {"a": 1}}'),
        ({"b": b"x"}, '{"b": "b\'x\'"}'),
        ({(1, 2): 3}, "{(1, 2): 3}"),
    ],
    ids=str,
)
def test_an_output_that_json_lacks_is_written_all_the_same(
    output: JSONValue, text: str
) -> None:
    assert ToolResult(output=output).get_serialized_output() == text


def test_an_output_that_holds_itself_has_a_text() -> None:
    loop: list[JSONValue] = []
    loop.append(loop)

    assert ToolResult(output=loop).get_serialized_output() == "[[...]]"


def test_a_result_may_be_built_from_is_error() -> None:
    assert ToolResult(is_error=True, output="x") == ToolResult(
        success=False, output="x"
    )
    assert ToolResult(is_error=False).success
    assert ToolResult.failure("x").is_error
    assert not ToolResult().is_error


def test_a_results_blocks_are_frozen() -> None:
    assert ToolResult(content=[TextBlock(text="x")]).content == (TextBlock(text="x"),)


def test_a_constructor_says_which_fields_belong_to_its_action() -> None:
    assert HookResult.proceed() is CONTINUE
    assert HookResult.proceed().action == "continue"
    assert HookResult.deny("no") == HookResult(action="deny", reason="no")
    assert HookResult.modify({"a": 1}) == HookResult(action="modify", data={"a": 1})
    assert HookResult.inject(
        "t",
        role="user",
        ephemeral=True,
        append_to_last_tool_result=True,
        user_message="m",
    ) == (
        HookResult(
            action="inject_context",
            context_injection="t",
            context_injection_role="user",
            ephemeral=True,
            append_to_last_tool_result=True,
            user_message="m",
        )
    )
    assert HookResult.ask(
        "sure?", options=["y", "n"], timeout=1, default="allow"
    ) == HookResult(
        action="ask_user",
        approval_prompt="sure?",
        approval_options=("y", "n"),
        approval_timeout=1,
        approval_default="allow",
    )
    assert HookResult.ask("sure?").approval_options is None


def test_an_unknown_action_is_refused() -> None:
    with pytest.raises(ValueError, match="'action' must be in"):
        HookResult(action="explode")  # type: ignore[arg-type]  # that is the point


ORDER: list[HookAction] = ["deny", "ask_user", "inject_context", "modify", "continue"]


@given(st.lists(st.sampled_from(ORDER), max_size=6))
def test_weightiest_action_counts_and_first_handler_of_it(
    actions: list[HookAction],
) -> None:
    decisions = [
        Decision(f"h{i}", HookResult(action=action, reason=f"r{i}"))
        for i, action in enumerate(actions)
    ]

    emission = Emission(data={}, decisions=decisions)

    expected = min(actions, key=ORDER.index, default="continue")
    assert emission.action == expected
    assert emission.denied is (expected == "deny")
    assert emission.decided_by == (f"h{actions.index(expected)}" if actions else None)
    assert emission.reason == (f"r{actions.index(expected)}" if actions else None)


def test_an_emission_keeps_every_injection_question_and_message() -> None:
    emission = Emission(
        data={"a": 1},
        decisions=[
            Decision(
                "first",
                HookResult.inject(
                    "one", role="user", ephemeral=True, user_message="hello"
                ),
            ),
            Decision("second", HookResult.ask("sure?"), 0.5),
            Decision(
                "third", HookResult.inject("two", append_to_last_tool_result=True)
            ),
            Decision("fourth", HookResult.inject("")),
            Decision(
                "fifth",
                HookResult(
                    user_message="bye",
                    user_message_level="error",
                    user_message_source="me",
                ),
            ),
            Decision("sixth", HookResult.ask("really?")),
        ],
    )

    assert emission.injections == (
        ContextInjection(content="one", role="user", ephemeral=True, hook_name="first"),
        ContextInjection(
            content="two", append_to_last_tool_result=True, hook_name="third"
        ),
    )
    assert emission.question == HookResult.ask("sure?")
    assert emission.user_messages == (
        UserMessage(text="hello", source="first"),
        UserMessage(text="bye", level="error", source="me"),
    )
    assert emission.context_injection == "one\n\ntwo"
    assert emission.context_injection_role == "user"
    assert not emission.ephemeral
    assert emission.action == "ask_user"


def test_an_emission_without_decisions_lets_the_operation_go_on() -> None:
    emission = Emission(data={})

    assert (emission.action, emission.denied, emission.question, emission.reason) == (
        "continue",
        False,
        None,
        None,
    )
    assert (emission.injections, emission.context_injection, emission.ephemeral) == (
        (),
        None,
        False,
    )
    assert emission.context_injection_role == "system"


def _said(emission: Emission | HookResult) -> list[object]:
    """Return the fields of a result that an emission reads like."""
    return [
        getattr(emission, field.name)
        for field in attrs.fields(HookResult)
        if hasattr(Emission, field.name) and field.name != "data"
    ]


@pytest.mark.parametrize(
    "result",
    [
        HookResult(),
        HookResult.deny("no"),
        HookResult.inject("x", append_to_last_tool_result=True, suppress_output=True),
        HookResult(
            action="ask_user",
            approval_prompt="sure?",
            approval_options=("Yes", "No"),
            approval_timeout=5.0,
            approval_default="allow",
        ),
        HookResult(
            user_message="look",
            user_message_level="warning",
            user_message_source="me",
        ),
    ],
    ids=["nothing", "deny", "inject", "ask", "message"],
)
def test_an_emission_of_one_answer_reads_like_it(result: HookResult) -> None:
    assert _said(Emission(data={}, decisions=[Decision("h", result)])) == _said(result)


def test_the_most_serious_message_gives_an_emission_its_level() -> None:
    levels: list[MessageLevel] = ["info", "error", "warning"]
    emission = Emission(
        data={},
        decisions=[
            Decision(level, HookResult(user_message=level, user_message_level=level))
            for level in levels
        ],
    )

    assert emission.user_message_level == "error"
    assert emission.user_message_source == "info"


def test_an_emission_is_ephemeral_when_all_its_injections_are() -> None:
    assert Emission(
        data={}, decisions=[Decision("h", HookResult.inject("x", ephemeral=True))]
    ).ephemeral
