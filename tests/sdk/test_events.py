"""Events are strings that know their payload's type."""

from __future__ import annotations

import ast
import copy
import inspect
import json
import pickle
from typing import get_args

import pytest

from amplifier_sdk import events
from amplifier_sdk.events import ALL_EVENTS, TOOL_PRE, Event, EventFields, ToolPre


def constants() -> dict[str, Event[EventFields]]:
    return {
        name: value for name, value in vars(events).items() if isinstance(value, Event)
    }


def payload_names() -> dict[str, str]:
    """Return the payload that stands behind each constant in the source."""
    names: dict[str, str] = {}
    for node in ast.parse(inspect.getsource(events)).body:
        match node:
            case ast.AnnAssign(
                target=ast.Name(id=name),
                value=ast.Call(func=ast.Subscript(slice=ast.Name(id=payload))),
            ):
                names[name] = payload
            case _:
                continue
    return names


def test_there_are_43_events_each_once() -> None:
    assert len(ALL_EVENTS) == 43
    assert len(set(ALL_EVENTS)) == 43
    assert set(ALL_EVENTS) == set(constants().values())


@pytest.mark.parametrize("name", sorted(constants()))
def test_event_named_after_constant_and_typed_by_payload_of_own(
    name: str,
) -> None:
    event = constants()[name]
    payload = getattr(events, payload_names()[name])

    assert event.replace(":", "_").upper() == name
    assert set(EventFields.__annotations__) <= set(payload.__annotations__)
    assert payload.__doc__
    assert {name, payload.__name__} <= set(events.__all__)


def test_no_two_events_share_a_payload() -> None:
    payloads = list(payload_names().values())

    assert sorted(set(payloads)) == sorted(payloads)
    assert len(payloads) == 43


def test_an_event_is_its_string() -> None:
    table: dict[str, int] = {TOOL_PRE: 1}

    assert TOOL_PRE == "tool:pre"
    assert table["tool:pre"] == 1
    assert hash(TOOL_PRE) == hash("tool:pre")
    assert json.dumps({TOOL_PRE: TOOL_PRE}) == '{"tool:pre": "tool:pre"}'
    assert f"{TOOL_PRE}" == "tool:pre"
    assert pickle.loads(pickle.dumps(TOOL_PRE)) == TOOL_PRE
    assert copy.deepcopy(TOOL_PRE) == TOOL_PRE
    assert not hasattr(TOOL_PRE, "__dict__")


def test_a_payload_is_a_plain_dict() -> None:
    payload = ToolPre(tool_name="t", tool_input={"a": 1}, session_id="s")

    assert type(payload) is dict
    assert payload == {"tool_name": "t", "tool_input": {"a": 1}, "session_id": "s"}


def test_a_payload_type_is_told_apart_by_the_type_checker_only() -> None:
    assert get_args(Event[ToolPre]) == (ToolPre,)
    assert type(TOOL_PRE) is Event
