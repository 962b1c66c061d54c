"""Values become JSON data and come back as they were."""

from __future__ import annotations

import dataclasses
import enum
import json
import re
import uuid
from collections import UserList
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

import attrs
import pytest
from cattrs.gen import make_dict_structure_fn
from hypothesis import given
from hypothesis import strategies as st

from amplifier_sdk.chat import (
    ChatRequest,
    ChatResponse,
    ModelInfo,
    Pricing,
    ProviderInfo,
    ToolCall,
    ToolSpec,
    Usage,
)
from amplifier_sdk.content import TextBlock, VendorBlock
from amplifier_sdk.convert import converter, from_json, to_json
from amplifier_sdk.events import TOOL_PRE, Event, ToolPre
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message
from amplifier_sdk.results import HookResult, ToolResult
from tests.sdk.values import messages, tool_calls, usages

CALL = ToolCall(id="1", name="t", arguments={"a": [1]}, extras={"vendor": True})
VALUES = [
    ChatRequest(messages=[]),
    ChatRequest(
        messages=[
            Message(role="user", content="hi", extras={"seen": 1}),
            Message(
                role="assistant",
                content=[
                    TextBlock(text="x"),
                    VendorBlock(type="odd", extras={"k": [1]}),
                ],
            ),
        ],
        tools=[
            ToolSpec(name="t", parameters={"type": "object"}, extras={"strict": True})
        ],
        tool_choice={"type": "tool", "name": "t"},
        response_format={"type": "json"},
        stop=["END"],
        temperature=0.5,
        timeout=3.0,
        extras={"vendor": {"x": 1}},
    ),
    ChatResponse(
        content=[TextBlock(text="x")],
        tool_calls=[CALL],
        finish_reason="tool_calls",
        extras={"id": "r"},
    ),
    Message(role="tool", content="out", tool_call_id="1", metadata={"a": None}),
    CALL,
    Usage(
        input_tokens=1,
        output_tokens=2,
        total_tokens=3,
        cost_usd=Decimal("0.00012"),
        extras={"tier": "x"},
    ),
    HookResult(),
    HookResult.deny("no"),
    HookResult.modify({"tool_input": {"a": 1}}),
    HookResult.ask("sure?", options=["yes", "no"], timeout=3),
    HookResult.inject("text", role="user", ephemeral=True),
    ToolResult(output={"a": [1, None]}),
    ToolResult.failure("broken", code=3),
    ToolResult(content=[TextBlock(text="x")]),
    ModelInfo(
        id="m",
        display_name="M",
        context_window=1,
        max_output_tokens=1,
        capabilities=("tools",),
        pricing=Pricing(
            input_per_million=Decimal("1.5"), output_per_million=Decimal(2)
        ),
    ),
    ProviderInfo(id="p", display_name="P", credential_env_vars=("KEY",)),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_comes_back_from_json_as_it_was(value: object) -> None:
    text = json.dumps(to_json(value), allow_nan=False)

    assert from_json(json.loads(text), type(value)) == value


@given(
    st.lists(messages(), max_size=4),
    st.lists(tool_calls(), max_size=2),
    st.none() | usages(),
)
def test_requests_and_responses_round_trip_through_json(
    history: list[Message], calls: list[ToolCall], usage: Usage | None
) -> None:
    request = ChatRequest(messages=history)
    response = ChatResponse(
        content=[b for m in history for b in m.blocks], tool_calls=calls, usage=usage
    )

    assert from_json(to_json(request), ChatRequest) == request
    assert from_json(to_json(response), ChatResponse) == response


def test_nothing_is_left_out_but_none_where_it_is_the_default() -> None:
    usage = Usage(
        input_tokens=1,
        output_tokens=2,
        total_tokens=3,
        cost_usd=Decimal("0.10"),
        extras={"tier": "x"},
    )

    assert to_json(usage) == {
        "input_tokens": 1,
        "output_tokens": 2,
        "total_tokens": 3,
        "cost_usd": "0.10",
        "tier": "x",
    }


def test_a_field_wins_over_an_extra_of_its_name() -> None:
    assert to_json(ToolSpec(name="t", parameters={}, extras={"name": "other"})) == {
        "name": "t",
        "parameters": {},
    }


class Color(enum.Enum):
    RED = "red"


class Level(enum.StrEnum):
    HIGH = "high"


class Bits(enum.IntFlag):
    TWO = 2


@attrs.frozen
class Pair:
    left: int
    _right: Path = Path("r")
    made: int = attrs.field(init=False, default=1)


@dataclasses.dataclass
class Window:
    width: int
    made: int = dataclasses.field(init=False, default=1)


class Stamp(datetime):
    """A kind of datetime."""


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (1.5, 1.5),
        ("x", "x"),
        (TOOL_PRE, "tool:pre"),
        (Level.HIGH, "high"),
        (Bits.TWO, 2),
        (Color.RED, "red"),
        ({Color.RED: 1, TOOL_PRE: 2}, {"red": 1, "tool:pre": 2}),
        (MappingProxyType({"a": (1, 2)}), {"a": [1, 2]}),
        (UserList([1]), [1]),
        pytest.param({"b", "a"}, ["a", "b"], id="texts-in-order"),
        (frozenset([2, 1]), [1, 2]),
        (Decimal("1.50"), "1.50"),
        (Path("a/b"), "a/b"),
        (datetime(2030, 1, 31, tzinfo=UTC), "2030-01-31T00:00:00+00:00"),
        (timedelta(days=1, seconds=2.5), "P1DT2.5S"),
        (-timedelta(seconds=90), "-PT90S"),
        (timedelta(days=2), "P2D"),
        (timedelta(0), "PT0S"),
        (Stamp(2030, 1, 31, tzinfo=UTC), "2030-01-31T00:00:00+00:00"),
        (date(2030, 1, 31), "2030-01-31"),
        (time(9, 30), "09:30:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Pair(1), {"left": 1, "right": "r"}),
        (Window(3), {"width": 3}),
        ([Pair(1, Path("x"))], [{"left": 1, "right": "x"}]),
        (TextBlock(text="x"), {"type": "text", "text": "x"}),
        (Message(role="user", content="x"), {"role": "user", "content": "x"}),
    ],
    ids=str,
)
def test_what_a_tool_returns_becomes_json(value: object, data: JSONValue) -> None:
    written = to_json(value)

    assert written == data
    assert type(written) is type(data)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (object(), TypeError, "The value is a builtins.object, which has no JSON form"),
        (
            {"a": [b"x"]},
            TypeError,
            r"a\[0\] is a builtins.bytes, which has no JSON form",
        ),
        (
            bytearray(b"x"),
            TypeError,
            "The value is a builtins.bytearray, which has no JSON form",
        ),
        (Pair(1, b"x"), TypeError, "right is a builtins.bytes, which has no JSON form"),  # type: ignore[arg-type]
        (ToolSpec(name="t", parameters={"x": nan}), ValueError, "parameters.x is nan"),
        (
            ToolSpec(name="t", parameters={}, extras={"x": [inf]}),
            ValueError,
            r"x\[0\] is inf",
        ),
        (Message(role="user", extras={"x": {"y": nan}}), ValueError, "x.y is nan"),
        (TextBlock(text="x", extras={"x": nan}), ValueError, "x is nan"),
        ({"a": {1: 2}}, TypeError, "a has the key 1, and JSON's keys are strings"),
        ({"a": float("inf")}, ValueError, "a is inf, and JSON's numbers are finite"),
    ],
)
def test_what_has_no_json_form_is_named(
    value: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        to_json(value)


def test_a_value_that_holds_itself_has_no_json_form() -> None:
    loop: list[object] = []
    loop.append(loop)

    with pytest.raises(
        ValueError,
        match="A list that holds itself, or nests too deep, has no JSON form",
    ):
        to_json(loop)


def test_what_does_not_fit_is_named_with_every_path() -> None:
    data: JSONValue = {
        "messages": [
            {"role": "nobody"},
            {"role": "user", "content": [{"type": "text"}]},
            3,
        ],
        "tools": 3,
        "stream": "yes",
    }

    with pytest.raises(ValueError, match="This is no ChatRequest") as caught:
        from_json(data, ChatRequest)

    assert str(caught.value) == (
        "This is no ChatRequest: messages[0]: A message's role is one of assistant, developer, system, tool, user; "
        "got 'nobody'; messages[1]: Content block of type 'text': text: missing; expected a string; "
        "messages[2]: expected an object, got an integer (3); "
        "tools: expected an array or null, got an integer (3); "
        'stream: expected a boolean, got a string ("yes")'
    )


def test_what_is_no_object_is_named() -> None:
    with pytest.raises(
        ValueError,
        match=r"This is no Usage: the value: expected an object, got an array with 0 items",
    ):
        from_json([], Usage)


def test_a_ready_value_is_taken_as_it_is() -> None:
    request = from_json({"messages": [VALUES[3]]}, ChatRequest)  # type: ignore[list-item]  # a program's own value

    assert request.messages == [VALUES[3]]


@attrs.frozen
class Page:
    first: TextBlock
    either: TextBlock | VendorBlock | None = None
    rest: list[TextBlock] = attrs.field(factory=list)


def test_a_block_of_one_type_is_read_as_that_type_only() -> None:
    text: JSONValue = {"type": "text", "text": "x"}
    odd: JSONValue = {"type": "odd"}

    page = from_json({"first": text, "either": odd}, Page)

    assert page == Page(TextBlock(text="x"), VendorBlock(type="odd"))
    with pytest.raises(
        ValueError,
        match="first: expected a content block of type text, got an object with 1 key",
    ):
        from_json({"first": odd}, Page)
    with pytest.raises(
        ValueError,
        match=r"either: expected a content block or null, got an integer \(3\)",
    ):
        from_json({"first": text, "either": 3}, Page)


@attrs.frozen
class Subscription:
    event: Event[ToolPre]
    other: Event  # type: ignore[type-arg]  # of any payload
    messages: list[Message | None]
    block: TextBlock | None = None


def test_events_and_messages_inside_other_values_come_back() -> None:
    value = Subscription(
        TOOL_PRE,
        TOOL_PRE,
        [Message(role="user", content="x"), None],
        TextBlock(text="x"),
    )

    read = from_json(to_json(value), Subscription)

    assert read == value
    assert isinstance(read.event, Event)
    assert isinstance(read.other, Event)
    assert from_json(to_json(value), Subscription).messages == value.messages
    assert (
        from_json({"event": TOOL_PRE, "other": "x", "messages": []}, Subscription).event
        is TOOL_PRE
    )
    with pytest.raises(
        ValueError, match=r"event: expected an event's name, got an integer \(3\)"
    ):
        from_json({"event": 3, "other": "x", "messages": []}, Subscription)


def test_a_block_that_is_missing_is_named_with_its_type() -> None:
    with pytest.raises(
        ValueError, match=r"first: missing; expected a content block of type text$"
    ):
        from_json({}, Page)
    with pytest.raises(
        ValueError,
        match=r"it: missing; expected a content block of type text or a string$",
    ):
        from_json(
            {},
            attrs.make_class("Other", {"it": attrs.field(type=TextBlock | str)}),  # type: ignore[arg-type]
        )


@attrs.frozen
class Money:
    text: str


class Amount:
    """A class that the converter does not know."""

    def __init__(self, cents: int) -> None:
        self.cents = cents


@attrs.frozen
class Bill:
    total: Amount
    parts: list[Amount | None] = attrs.field(factory=list)


def _amount(value: object, _: object) -> Amount:
    if not isinstance(value, str):
        raise TypeError(f"an amount is a text such as '1.50'; got {value!r}")
    return Amount(int(Decimal(value) * 100))


def test_an_author_adds_hooks_to_a_converter_of_their_own() -> None:
    own = converter()
    own.register_structure_hook(Amount, _amount)
    own.register_unstructure_hook(Amount, lambda amount: f"{amount.cents / 100:.2f}")

    bill = own.structure({"total": "1.50", "parts": ["0.25", None]}, Bill)

    assert bill.total.cents == 150
    assert own.unstructure(bill) == {"total": "1.50", "parts": ["0.25", None]}
    with pytest.raises(
        ValueError, match=r"total: an amount is a text such as '1.50'; got 3"
    ):
        own.structure({"total": 3}, Bill)
    with pytest.raises(ValueError, match="total: missing; expected a value for Amount"):
        own.structure({}, Bill)
    with pytest.raises(TypeError, match=r"Amount \(at Bill\.total\) has no JSON form"):
        from_json({"total": "1.50"}, Bill)


def test_a_hook_that_cattrs_made_tells_its_problems() -> None:
    own = converter()
    own.register_structure_hook(Money, make_dict_structure_fn(Money, own))

    with pytest.raises(ValueError, match=r"\[0\]: required field missing @ \$\.text"):
        own.structure([{}], list[Money])


def test_a_hook_that_breaks_is_no_problem_of_the_data() -> None:
    own = converter()
    own.register_structure_hook(Amount, lambda value, _: Amount({}[value]))

    with pytest.raises(KeyError, match=r"'1\.50'"):
        own.structure({"total": "1.50"}, Bill)


def test_a_ready_value_needs_no_hook_of_an_author() -> None:
    own = converter()

    assert own.structure(
        {"messages": [{"role": "user", "content": "x"}]}, ChatRequest
    ).messages == [Message(role="user", content="x")]
    assert own.structure({"rest": [], "first": TextBlock(text="x")}, Page) == Page(
        TextBlock(text="x")
    )
    with pytest.raises(TypeError, match=r"Amount \(at Bill\.total\) has no JSON form"):
        own.structure({"total": 3}, Bill)
    with pytest.raises(
        ValueError,
        match=r"first: expected a content block of type text, got an object with 1 key",
    ):
        own.structure({"first": {"type": "odd"}}, Page)


@attrs.frozen
class Written:
    type: Literal["text"]
    text: str


@attrs.frozen
class Shown:
    type: Literal["image", "video"]
    source: str


@attrs.frozen
class Said:
    part: Written | Shown
    more: Annotated[Written, "with a note"] | dict[str, int] | None = None


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"part": {"type": "text"}}, "part.text: missing; expected a string"),
        ({"part": {"type": "video"}}, "part.source: missing; expected a string"),
        ({"part": {"type": "none"}}, "part: expected an object, got an object with"),
        (
            {"part": {"type": "text", "text": "a"}, "more": {"type": "text"}},
            "more: expected an object or null, got an object with 1 key",
        ),
    ],
)
def test_a_member_of_a_union_is_known_by_what_it_must_have(
    data: JSONValue, says: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        from_json(data, Said)
