"""Answers of a type: read, asked for again, checked by the application, given up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypedDict

import attrs
import pytest

from amplifier import Agent, OutputError, OutputRejectedError
from amplifier.kernel.sessions.answers import OutputMode
from amplifier_kit import scripted
from amplifier_sdk import ProviderInfo, RunContext, tool
from amplifier_sdk.chat import ChatResponse, ToolCall
from amplifier_sdk.errors import InvalidRequestError, ToolError
from amplifier_sdk.history import open_calls
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.loops.events import STOPPING
from amplifier_sdk.output_schema import OutputSchema
from amplifier_sdk.streaming import TurnFinished
from tests.doubles import ScriptedProvider, call, calling


@attrs.frozen
class Line:
    text: str
    price: float


@attrs.frozen
class Invoice:
    lines: list[Line]
    total: float


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


class Row(TypedDict):
    name: str


GOOD = '{"lines": [{"text": "tea", "price": 2.5}], "total": 2.5}'


@pytest.mark.parametrize(
    ("wanted", "text", "value"),
    [
        (Invoice, GOOD, Invoice([Line("tea", 2.5)], 2.5)),
        (Invoice, f"```json\n{GOOD}\n```", Invoice([Line("tea", 2.5)], 2.5)),
        (Point, '{"x": 1}', Point(1)),
        (Row, '{"name": "a"}', {"name": "a"}),
        (int, '{"value": 3}', 3),
        (list[Point], '{"value": [{"x": 1, "y": 2}]}', [Point(1, 2)]),
        (int | None, '{"value": null}', None),
        ({"type": "object", "properties": {}}, '{"a": [1]}', {"a": [1]}),
        ({"type": "array"}, '{"value": [1]}', [1]),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_an_answer_becomes_a_value(
    wanted: object, text: str, value: object
) -> None:
    provider = ScriptedProvider(text)
    result = await Agent(provider, output=wanted).run("Hi")

    assert result.output == value
    assert result.text == text


async def test_what_does_not_fit_goes_back_with_its_paths() -> None:
    wrong = '{"lines": [{"text": "tea"}], "total": "two"}'
    provider = ScriptedProvider("Tea, 2.50.", wrong, GOOD)

    result = await Agent(provider, output=Invoice).run("Hi")

    assert result.output.total == 2.5
    prompts = [request.messages[-1].text for request in provider.requests]
    assert "not the JSON object that was asked for" in prompts[1]
    assert "lines[0].price: missing" in prompts[2]
    assert "total: expected a number" in prompts[2]
    assert result.usage is not None
    assert result.usage.output_tokens >= 3


async def test_it_is_given_up_after_the_retries() -> None:
    agent = Agent(ScriptedProvider("a", "b", "c"), output=int, output_retries=1)

    with pytest.raises(OutputError) as caught:
        await agent.run("Hi")

    assert caught.value.text == "b"
    assert len(caught.value.problems) == 2
    assert caught.value.usage is not None


async def test_the_attempts_share_the_limits_of_the_run() -> None:
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    work = calling(call("double", {"number": 1}))
    provider = ScriptedProvider(work, "a", work, work, "b")
    agent = Agent(provider, output=int, tools=[double], limits={"tool_calls": 2})

    with pytest.raises(OutputError) as caught:
        await agent.run("Hi")

    assert len(caught.value.problems) == 2


async def test_validators_see_the_run_and_may_change_or_reject_the_answer() -> None:
    attempts: list[int] = []

    def positive(ctx: RunContext[int], number: int) -> int:
        attempts.append(ctx.attempt)
        if number <= ctx.deps:
            raise OutputRejectedError(f"It has to be more than {ctx.deps}.")
        return number

    async def doubled(ctx: RunContext[int], number: int) -> int:
        return 2 * number

    provider = ScriptedProvider('{"value": 1}', '{"value": 6}')
    agent = Agent(provider, output=int, output_validators=[positive, doubled], deps=5)

    assert (await agent.run("Hi")).output == 12
    assert attempts == [1, 2]
    assert "It has to be more than 5." in provider.requests[1].messages[-1].text


async def test_a_validator_is_added_while_the_agent_is_described() -> None:
    provider = ScriptedProvider('{"value": 3}', '{"value": 4}', repeat=True)
    agent = Agent(provider, output=int, deps=2)

    @agent.output_validator
    async def divisible(ctx: RunContext[int], number: int) -> int:
        if number % ctx.deps:
            raise OutputRejectedError(f"It has to be divisible by {ctx.deps}.")
        return number

    assert (await agent.run("Hi")).output == 4
    with pytest.raises(RuntimeError, match=r"output_validators=\[divisible\]"):
        agent.output_validator(divisible)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        agent.output_validators = ()  # type: ignore[misc]


async def test_another_agents_tool_is_described_to_its_end() -> None:
    helper = Agent(ScriptedProvider("Hello."), name="helper")
    Agent(ScriptedProvider("Hello."), tools=[helper])

    with pytest.raises(RuntimeError, match="'helper' has been used"):
        helper.output_validator(lambda ctx, text: text)


async def test_a_validator_of_text_needs_no_output_type() -> None:
    def polite(ctx: RunContext[None], text: str) -> str:
        if "please" not in text:
            raise OutputRejectedError("Say please.")
        return text

    agent = Agent(ScriptedProvider("Go.", "Go, please."), output_validators=[polite])

    assert (await agent.run("Hi")).output == "Go, please."


async def test_what_a_validator_raises_otherwise_ends_the_run() -> None:
    def broken(ctx: RunContext[None], text: str) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await Agent(ScriptedProvider("a"), output_validators=[broken]).run("Hi")


async def test_what_a_sub_agents_validator_raises_fails_the_call() -> None:
    def broken(ctx: RunContext[None], text: str) -> str:
        raise ZeroDivisionError("no divisor")

    helper = Agent(ScriptedProvider("a"), name="helper", output_validators=[broken])
    above = ScriptedProvider(calling(call("helper", {"prompt": "1 / 0"})), "Sorry.")

    result = await Agent(above, tools=[helper]).run("Hi")

    (content,) = [m["content"] for m in result.messages if m["role"] == "tool"]
    assert "no divisor" in str(content)


async def test_a_stream_ends_once_whatever_was_rejected() -> None:
    agent = Agent(ScriptedProvider("a", '{"value": 1}'), output=int)
    async with agent.stream("Hi") as events:
        ends = [event async for event in events if isinstance(event, TurnFinished)]

    assert len(ends) == 1
    assert events.result.output == 1


async def test_a_sub_agent_is_asked_again_before_its_answer_counts() -> None:
    below = ScriptedProvider("nonsense", '{"value": 4}')
    helper = Agent(below, name="helper", output=int)
    above = ScriptedProvider(calling(call("helper", {"prompt": "2 * 2"})), "Four.")

    result = await Agent(above, tools=[helper]).run("Hi")

    (content,) = [m["content"] for m in result.messages if m["role"] == "tool"]
    assert content == '{"value": 4}'
    assert "not the JSON object" in below.requests[1].messages[-1].text


async def test_a_sub_agent_without_a_usable_answer_is_a_failed_call() -> None:
    helper = Agent(
        ScriptedProvider("a", "b"), name="helper", output=int, output_retries=1
    )
    above = ScriptedProvider(calling(call("helper", {"prompt": "2 * 2"})), "Sorry.")

    result = await Agent(above, tools=[helper]).run("Hi")

    (content,) = [m["content"] for m in result.messages if m["role"] == "tool"]
    assert "helper gave no usable answer" in str(content)


class Handle:
    def __init__(self, number: object) -> None: ...


@attrs.frozen
class Broken:
    handle: Handle


@attrs.frozen
class Size:
    width: int = attrs.field(validator=attrs.validators.ge(1))


@attrs.frozen
class Branch:
    kind: Literal["branch"]
    width: int = attrs.field(validator=attrs.validators.ge(1))
    children: Sequence[Branch | Leaf] = ()


@attrs.frozen
class Leaf:
    kind: Literal["leaf"]
    color: str = attrs.field(validator=attrs.validators.min_len(2))
    shoots: Sequence[Branch | Leaf] = ()


THIN: Final = '{"value": {"kind": "branch", "width": 0}}'


@pytest.mark.parametrize(
    ("wanted", "text", "problem"),
    [
        (Size, '{"width": 0}', "- width: must be >= 1: 0"),
        (list[Size], '{"value": [{"width": 0}]}', "- value[0].width: must be >= 1: 0"),
        (Branch | Leaf, THIN, "- value.width: must be >= 1: 0"),
        (dict[str, Leaf] | Branch, THIN, "- value.width: must be >= 1: 0"),
    ],
    ids=["alone", "item", "union", "table"],
)
async def test_what_a_class_itself_refuses_goes_back_too(
    wanted: object, text: str, problem: str
) -> None:
    provider = ScriptedProvider(text, text.replace("0", "1"))

    await Agent(provider, output=wanted).run("Hi")

    assert problem in provider.requests[1].messages[-1].text.splitlines()


def test_a_type_without_a_json_form_is_refused_by_its_field() -> None:
    with pytest.raises(
        TypeError, match=r"Handle \(at Broken.handle\) has no JSON form"
    ):
        Agent(ScriptedProvider(), output=Broken)


def test_a_schema_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="is not valid JSON Schema"):
        Agent(ScriptedProvider(), output={"type": 5})


class Able(ScriptedProvider):
    """A provider that says what it can."""

    able: ClassVar[tuple[str, ...]] = ()

    def get_info(self) -> ProviderInfo:
        return attrs.evolve(super().get_info(), capabilities=self.able)


class Formatting(Able):
    """A provider with a schema mode."""

    able: ClassVar[tuple[str, ...]] = ("json_mode",)


class Calling(Able):
    """A provider whose model calls tools."""

    able: ClassVar[tuple[str, ...]] = ("streaming", "tools")


@pytest.mark.parametrize(
    ("mode", "provider", "is_asked"),
    [
        ("auto", Formatting, True),
        ("auto", Able, False),
        ("schema", Able, True),
        ("text", Formatting, False),
        ("tool", Formatting, False),
    ],
)
async def test_the_vendor_is_asked_for_the_schema_where_it_can(
    mode: OutputMode, provider: type[ScriptedProvider], is_asked: bool
) -> None:
    model = provider('{"value": 1}')
    result = await Agent(model, output=int, output_mode=mode).run("Hi")

    assert result.output == 1
    asked = model.requests[0].response_format
    assert (asked is not None) is is_asked
    if asked is not None:
        assert asked["type"] == "json_schema"
        assert asked["name"] == "int"
        assert asked["schema"] == OutputSchema.of(int).schema


async def test_with_tools_only_a_full_schema_mode_is_used() -> None:
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    model = Formatting('{"value": 1}')
    await Agent(model, output=int, tools=[double]).run("Hi")

    assert model.requests[0].response_format is None


async def test_a_refused_schema_falls_back_to_text_and_says_so() -> None:
    model = Formatting(InvalidRequestError("schema too deep"), "no", '{"value": 1}')
    agent = Agent(model, output=int)
    async with agent.session() as session:
        result = await session.run("Hi")

    assert result.output == 1
    forms = [request.response_format for request in model.requests]
    assert [form is None for form in forms] == [False, True, True]
    (degradation,) = result.degradations
    assert degradation.actual == "text"
    assert "schema too deep" in degradation.reason
    assert [message["role"] for message in result.messages].count("user") == 2


async def test_what_is_refused_as_text_as_well_is_the_vendors_error() -> None:
    refused = InvalidRequestError("no such model")
    model = Formatting(refused, refused)

    with pytest.raises(InvalidRequestError, match="no such model"):
        await Agent(model, output=int).run("Hi")


async def test_without_another_way_the_schema_stands_in_words() -> None:
    model = Able('{"value": 1}')
    result = await Agent(model, output=int, instructions="Be brief.").run("Hi")

    first, *_, last = model.requests[0].messages
    assert first.text == "Be brief."
    assert last.text.startswith("Answer with nothing but a JSON object")
    assert str(OutputSchema.of(int).schema["required"]).replace("'", '"') in last.text
    # what is asked in words is no part of the conversation
    assert "Answer with nothing" not in str(result.messages)


# -- the output tool


def given(name: str = "final_answer", **arguments: JSONValue) -> ChatResponse:
    """Make an answer that calls the output tool."""
    return calling(call(name, arguments))


async def test_a_model_without_a_schema_mode_has_to_call_a_tool() -> None:
    model = Calling(given(value=3))
    result = await Agent(model, output=int).run("Hi")

    assert result.output == 3
    (request,) = model.requests
    (spec,) = request.tools or ()
    assert (spec.name, request.forced_tool) == ("final_answer", "final_answer")
    assert spec.parameters == OutputSchema.of(int).schema
    assert result.text == '{"value": 3}'
    assert [message["role"] for message in result.messages] == ["user", "assistant"]


async def test_tools_are_called_before_the_output_tool_counts() -> None:
    called: list[int] = []

    def double(number: int) -> int:
        """Double a number."""
        called.append(number)
        return 2 * number

    both = calling(call("double", {"number": 2}), call("final_answer", {"value": 0}))
    model = Calling(both, given(value=4))
    result = await Agent(model, output=int, tools=[double]).run("Hi")

    assert (result.output, called) == (4, [2])
    assert [request.tool_choice for request in model.requests] == ["required"] * 2
    assert not open_calls(result.messages)
    assert "final_answer" not in str(result.messages)


async def test_the_output_tool_has_a_name_of_its_own() -> None:
    def final_answer() -> str:
        """Be in the way."""
        return "no"

    model = Calling(given("final_answer"), given("final_answer_", value=1))
    result = await Agent(model, output=int, tools=[final_answer]).run("Hi")

    assert result.output == 1
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (given(value="three"), "value: expected an integer"),
        (
            calling(
                ToolCall(
                    id="1", name="final_answer", raw_arguments="{", problem="cut off"
                )
            ),
            "not the JSON object",
        ),
    ],
    ids=["misfit", "no JSON"],
)
async def test_what_the_tool_is_given_is_checked(
    answer: ChatResponse, said: str
) -> None:
    model = Calling(answer, given(value=3))
    result = await Agent(model, output=int).run("Hi")

    assert result.output == 3
    assert said in model.requests[1].messages[-1].text


async def test_a_model_that_writes_instead_of_calling_is_read_as_well() -> None:
    model = Calling('{"value": 3}')

    assert (await Agent(model, output=int).run("Hi")).output == 3


async def test_each_refused_way_is_followed_by_the_next() -> None:
    class All(Able):
        able: ClassVar[tuple[str, ...]] = ("json_schema", "tools")

    refused = [InvalidRequestError("no schema"), InvalidRequestError("no choice")]
    model = All(*refused, '{"value": 1}')
    result = await Agent(model, output=int).run("Hi")

    assert result.output == 1
    first, second, third = model.requests
    assert first.response_format is not None
    assert second.forced_tool == "final_answer"
    assert third.tools is None
    assert [
        (degradation.requested.rpartition(" ")[2], degradation.reason)
        for degradation in result.degradations
    ] == [("tool", "no choice"), ("schema", "no schema")]


# -- while it is written


async def _partials(agent: Agent[None, object]) -> list[JSONValue]:
    """Return the different partial values of a run, in their order."""
    seen: list[JSONValue] = []
    async with agent.stream("Hi") as events:
        async for _ in events:
            value = json.loads(json.dumps(events.partial))
            if not seen or seen[-1] != value:
                seen.append(value)
    return seen


async def test_an_answer_is_readable_while_it_is_written() -> None:
    pieces = ['{"name": "a', "b", '", "n": 1', "2}"]
    model = Able(scripted.answer(*pieces))

    assert await _partials(Agent(model, output={"type": "object"})) == [
        {"name": "a"},
        {"name": "ab"},
        {"name": "ab", "n": 12},
    ]


async def test_each_attempt_is_read_anew() -> None:
    model = Able('{"x": "one"', '{"x": 1, "y": 2}')

    partials = await _partials(Agent(model, output=Point))

    assert {"x": "one"} in partials
    assert partials[-1] == {"x": 1, "y": 2}


async def test_what_the_tool_is_given_is_readable_as_well() -> None:
    model = Calling(given(value="four"))

    assert (await _partials(Agent(model, output=str)))[-1] == "four"


async def test_the_end_of_a_fence_takes_nothing_back() -> None:
    model = Able(scripted.answer("```json\n", '{"x": 1}', "\n```"))

    assert (await _partials(Agent(model, output=Point)))[-1] == {"x": 1}


async def test_text_has_no_partial_value() -> None:
    assert await _partials(Agent(ScriptedProvider('{"a": 1}'))) == [None]


# -- functions


@pytest.mark.parametrize("made", [False, True], ids=["function", "tool"])
async def test_a_function_is_called_with_the_answer(made: bool) -> None:
    @attrs.frozen
    class Booking:
        seat: int
        name: str

    booked: list[Booking] = []

    async def book(ctx: RunContext[str], seat: int) -> Booking:
        """Book a seat."""
        if seat < 1:
            raise ToolError("Seats begin with 1.")
        booked.append(Booking(seat, ctx.deps))
        return booked[-1]

    model = Able('{"seat": 0}', '{"seat": "a"}', '{"seat": 4}')
    output = tool(book) if made else book
    result = await Agent(model, output=output, deps="Ada").run("Hi")

    assert result.output is booked[0]
    assert booked == [Booking(4, "Ada")]
    texts = [request.messages[-2].text for request in model.requests[1:]]
    assert "Seats begin with 1." in texts[0]
    assert "seat: expected an integer" in texts[1]


# -- a session's own turns


async def test_a_turn_of_any_session_may_have_an_answer_of_a_type() -> None:
    model = ScriptedProvider("no", '{"x": 1}', "as always")
    async with Agent(model).session() as opened:
        point = await opened.session.execute("Hi", output=Point)
        text = await opened.session.execute("Hi")

    assert (point, text) == (Point(1), "as always")


async def test_a_turn_without_such_an_answer_is_given_up() -> None:
    async with Agent(ScriptedProvider("a", "b")).session() as opened:
        with pytest.raises(OutputError):
            await opened.session.execute("Hi", output=Point, output_retries=1)

        handlers = opened.session.coordinator.hooks.list_handlers()
        assert STOPPING not in handlers


async def test_the_answers_of_a_child_are_its_own() -> None:
    helper = Agent(ScriptedProvider("Two."), name="helper")
    model = ScriptedProvider(calling(call("helper", {"prompt": "x?"})), '{"x": 2}')
    async with Agent(model, tools=[helper]).session() as opened:
        assert await opened.session.execute("Hi", output=Point) == Point(2)
