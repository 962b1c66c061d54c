"""The model without a script, the values it makes, and tests that reach no vendor."""

from __future__ import annotations

import socket
from contextlib import suppress
from enum import Enum
from typing import ClassVar, Literal

import anyio
import attrs
import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amplifier import Agent
from amplifier.agent.modules import Toolset
from amplifier.testing import AutoModel, NetworkReachedError, no_network
from amplifier.testing.schema_values import make_value
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.output_schema import OutputSchema


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@attrs.frozen
class Tree:
    name: str
    children: list[Tree]
    parent: Tree | None = None


@attrs.frozen
class Order:
    name: str
    colour: Colour
    size: Literal["s", "m"]
    amount: int
    price: float
    tags: frozenset[str]
    pair: tuple[int, str]
    notes: dict[str, int]
    gift: bool | None = None


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_values_fit_the_schema_that_they_are_made_of(seed: int) -> None:
    for wanted in (Order, Tree, int, list[Order], dict[str, float], Order | int):
        described = OutputSchema.of(wanted)
        value = make_value(described.schema, seed=seed)
        assert isinstance(value, dict)
        described.take(value)
        assert make_value(described.schema, seed=seed) == value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 3, "maximum": 3},
        {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5},
        {"type": "integer", "minimum": 1, "multipleOf": 7},
        {"type": "integer", "maximum": -4},
        {"type": "number", "exclusiveMinimum": 1, "maximum": 2},
        {"type": "string", "minLength": 30, "maxLength": 31},
        {"type": "string", "format": "date-time"},
        {"type": ["null", "string"]},
        {
            "type": "array",
            "minItems": 3,
            "uniqueItems": True,
            "items": {"type": "integer"},
        },
        {
            "type": "array",
            "prefixItems": [{"const": 1}, {"enum": ["a"]}],
            "maxItems": 2,
        },
        {
            "allOf": [
                {"properties": {"a": {"const": 1}}, "required": ["a"]},
                {"properties": {"b": True}, "required": ["b"]},
            ]
        },
        {
            "oneOf": [{"type": "null"}, {"$ref": "#/$defs/x"}],
            "$defs": {"x": {"const": 2}},
        },
    ],
    ids=str,
)
def test_the_words_of_schemas_count(schema: dict[str, object]) -> None:
    for seed in range(20):
        value = make_value(schema, seed=seed)  # type: ignore[arg-type]  # JSON data
        assert jsonschema_rs.is_valid(schema, value), value


def test_what_nothing_can_be_made_of_is_named() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}
    with pytest.raises(ValueError, match=r"'pattern' \(at \.a\)"):
        make_value(schema)  # type: ignore[arg-type]  # JSON data


async def test_each_tool_is_called_once_and_then_it_answers() -> None:
    seen: list[tuple[object, ...]] = []

    def order(item: Order, count: int = 1) -> str:
        """Order something."""
        seen.append((item, count))
        return "ordered"

    async def look(place: Literal["here", "there"]) -> None:
        """Look around."""
        seen.append((place,))

    agent = Agent(AutoModel(), tools=[order, look], output=Order)
    result = await agent.run("Buy it.")

    assert len(seen) == 2
    assert {type(first) for first, *_ in seen} == {Order, str}
    assert isinstance(result.output, Order)
    assert (await agent.run("Buy it.")).output == result.output


async def test_it_replaces_the_model_of_an_agent_and_says_its_text() -> None:
    agent = Agent("local")
    with agent.override(model=AutoModel(text="Fine.")), no_network():
        assert (await agent.run("Hi")).output == "Fine."


async def test_a_tool_that_it_cannot_call_is_named() -> None:
    class Strict:
        name = "strict"
        description = "Takes a code."
        input_schema: ClassVar[JSONObject] = {
            "type": "object",
            "properties": {"code": {"type": "string", "pattern": "^A"}},
        }

        async def execute(self, input: object) -> object:
            raise AssertionError

    with pytest.raises((ValueError, AmplifierError), match="cannot call 'strict'"):
        await Agent(AutoModel(), tools=[Toolset(Strict())]).run("Hi")


def test_another_machine_is_out_of_reach() -> None:
    with pytest.raises(NetworkReachedError, match=r"example\.org"), no_network():
        socket.create_connection(("example.org", 80))
    with (
        pytest.raises(NetworkReachedError, match=r"203\.0\.113\.1"),
        no_network(),
        socket.socket() as used,
    ):
        used.connect_ex(("203.0.113.1", 80))


def test_what_was_refused_and_hidden_fails_at_the_end() -> None:
    def hide() -> None:
        with suppress(AssertionError):
            socket.create_connection(("203.0.113.1", 80))

    with pytest.raises(NetworkReachedError, match=r"203\.0\.113\.1"), no_network():
        hide()


async def test_both_event_loops_are_refused_and_this_machine_is_not() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        with no_network():
            async with await anyio.connect_tcp("127.0.0.1", port):
                pass
    with pytest.raises(BaseException) as caught, no_network():  # noqa: PT011
        await anyio.connect_tcp("203.0.113.1", 80)
    assert "203.0.113.1" in repr(caught.value) or "203.0.113.1" in str(caught.value)
