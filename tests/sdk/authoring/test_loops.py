"""The loop base: what a turn owes however it ends, and the two steps a loop is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio
import attrs
import pytest

from amplifier.kernel.budgets.ledger import Ledger
from amplifier.kernel.turn.registry import HookRegistry
from amplifier.kernel.turn.services import SessionServices
from amplifier.kernel.turn.turn import RunningTurn
from amplifier.testing import EventRecorder
from amplifier_sdk import (
    HookResult,
    Limits,
    Loop,
    Provider,
    Tool,
    ToolResult,
    Turn,
    tool,
)
from amplifier_sdk.chat import ChatResponse, ToolCall
from amplifier_sdk.errors import ConfigError, LLMError
from amplifier_sdk.events import (
    EXECUTION_END,
    EXECUTION_START,
    ORCHESTRATOR_COMPLETE,
    PROMPT_SUBMIT,
    PromptSubmit,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops import choose_provider, schema_of, tool_spec
from tests.sdk.authoring.doubles import Answers, PlainContext, answer, calling

OWED = [
    "execution:start",
    "prompt:submit",
    "prompt:complete",
    "orchestrator:complete",
    "execution:end",
]


@tool
async def double(number: int) -> int:
    """Double a number."""
    return 2 * number


class Once(Loop):
    """Asks once; keeps the turn."""

    name = "once"
    turn: Turn

    async def run(self, turn: Turn) -> str:
        self.turn = turn
        return (await turn.complete()).text


class UntilDone(Loop):
    """Runs tools until the model calls none."""

    name = "until-done"
    turn: Turn

    async def run(self, turn: Turn) -> str:
        self.turn = turn
        while True:
            response = await turn.complete()
            if not response.tool_calls:
                return response.text
            await turn.run_tools(response.tool_calls)


class Waits(Loop):
    """Never answers."""

    def __init__(self) -> None:
        self.waits = anyio.Event()

    async def run(self, turn: Turn) -> str:
        self.waits.set()
        await anyio.sleep_forever()
        raise AssertionError


@attrs.define(eq=False)
class Stage:
    """What a turn needs, put together by hand."""

    hooks: HookRegistry = attrs.field(factory=HookRegistry)
    context: PlainContext = attrs.field(factory=PlainContext)
    tools: dict[str, Tool] = attrs.field(factory=lambda: {"double": double})

    def limit(self, limits: Limits) -> None:
        self.hooks.host = RunningTurn(
            SessionServices(self.hooks, limits=limits), Ledger(limits).open_turn(None)
        )

    async def run(
        self, loop: Loop, *answers: ChatResponse | Exception, prompt: str = "Hello"
    ) -> str:
        self.provider = Answers(*answers)
        return await loop.execute(
            prompt, self.context, {"answers": self.provider}, self.tools, self.hooks
        )

    provider: Answers = attrs.field(factory=Answers)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def call(number: int, name: str = "double") -> ToolCall:
    return ToolCall(id=f"call_{number}", name=name, arguments={"number": number})


def statuses(ear: EventRecorder) -> tuple[object, object]:
    return ear.one(ORCHESTRATOR_COMPLETE)["status"], ear.one(EXECUTION_END)["status"]


async def test_a_turn_stores_the_prompt_and_the_answer(stage: Stage) -> None:
    assert await stage.run(Once(), answer("Hi")) == "Hi"

    assert stage.context.messages == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]},
    ]


async def test_a_turn_announces_its_steps_in_order(stage: Stage) -> None:
    ear = EventRecorder.of(stage.hooks)

    await stage.run(Once(), answer("Hi"))

    assert [name for name in ear.names if name in OWED] == OWED
    assert ear.one("prompt:complete") | {"timestamp": ""} == {
        "prompt": "Hello",
        "response": "Hi",
        "response_preview": "Hi",
        "length": 2,
        "timestamp": "",
    }
    assert ear.one(ORCHESTRATOR_COMPLETE)["orchestrator"] == "once"
    assert ear.one(ORCHESTRATOR_COMPLETE)["turn_count"] == 1
    assert ear.one(EXECUTION_END)["response"] == "Hi"
    assert statuses(ear) == ("success", "success")


async def test_denied_prompt_ends_turn_before_model_is_asked(
    stage: Stage,
) -> None:
    stage.hooks.register(
        PROMPT_SUBMIT, lambda event, data: HookResult.deny("not today")
    )
    ear = EventRecorder.of(stage.hooks)

    assert await stage.run(Once()) == "Operation denied: not today"

    assert stage.provider.requests == []
    assert stage.context.messages == []
    assert [name for name in ear.names if name in OWED] == OWED
    assert statuses(ear) == ("denied", "denied")


async def test_a_handler_may_change_the_prompt_to_another_text(stage: Stage) -> None:
    def change(event: str, data: PromptSubmit) -> HookResult:
        return HookResult.modify({"prompt": "Bye"})

    stage.hooks.register(PROMPT_SUBMIT, change)

    await stage.run(Once(), answer("Hi"))

    assert stage.context.messages[0]["content"] == "Bye"


async def test_a_prompt_that_a_handler_makes_no_text_is_denied(stage: Stage) -> None:
    def change(event: str, data: PromptSubmit) -> HookResult:
        return HookResult.modify({"prompt": 7})

    stage.hooks.register(PROMPT_SUBMIT, change)

    await stage.run(Once(), answer("Hi"))

    assert stage.provider.requests == []
    assert stage.context.messages == []


async def test_an_error_is_raised_after_the_turn_was_closed(stage: Stage) -> None:
    ear = EventRecorder.of(stage.hooks)

    with pytest.raises(LLMError, match="down"):
        await stage.run(Once(), LLMError("down"))

    assert statuses(ear) == ("error", "error")
    assert "prompt:complete" not in ear.names


async def test_a_cancelled_turn_is_closed_too(stage: Stage) -> None:
    ear, loop = EventRecorder.of(stage.hooks), Waits()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(stage.run, loop)
            await loop.waits.wait()
            group.cancel_scope.cancel()

    assert statuses(ear) == ("cancelled", "cancelled")


async def test_a_turn_cancelled_while_it_is_announced_is_closed_too(
    stage: Stage,
) -> None:
    announced = anyio.Event()

    async def wait(event: str, data: object) -> None:
        announced.set()
        await anyio.sleep_forever()

    stage.hooks.register(EXECUTION_START, wait)
    ear = EventRecorder.of(stage.hooks)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(stage.run, Once())
            await announced.wait()
            group.cancel_scope.cancel()

    assert statuses(ear) == ("cancelled", "cancelled")


@pytest.mark.parametrize("event", [ORCHESTRATOR_COMPLETE, EXECUTION_END])
async def test_one_listener_of_the_end_is_enough_to_hear_it(
    stage: Stage, event: str
) -> None:
    heard: list[str] = []
    stage.hooks.register(event, lambda name, data: heard.append(name))

    await stage.run(Once(), answer("Hi"))

    assert heard == [event]


async def test_the_model_sees_the_tools(stage: Stage) -> None:
    await stage.run(Once(), answer("Hi"))

    (request,) = stage.provider.requests
    assert request.tools == (tool_spec(double),)


async def test_without_tools_the_model_is_offered_none(stage: Stage) -> None:
    stage.tools = {}

    await stage.run(Once(), answer("Hi"))

    assert stage.provider.requests[0].tools is None


async def test_tool_that_joins_between_two_turns_is_seen_in_second(
    stage: Stage,
) -> None:
    loop = Once()
    await stage.run(loop, answer("Hi"))
    stage.tools = {"double": double, "handmade": Handmade()}

    await stage.run(loop, answer("Hi"))

    assert stage.provider.requests[0].tools == (
        tool_spec(double),
        tool_spec(Handmade()),
    )


async def test_what_a_loop_asks_for_reaches_the_provider(stage: Stage) -> None:
    class Asks(Loop):
        async def run(self, turn: Turn) -> str:
            response = await turn.complete(
                tool_choice="required",
                model="m",
                temperature=0.5,
                top_p=0.9,
                max_output_tokens=9,
                stop=["END"],
                response_format={"type": "json"},
                reasoning_effort="low",
            )
            return response.text

    await stage.run(Asks(), answer("Hi"))

    (request,) = stage.provider.requests
    assert (request.tool_choice, request.model, request.temperature) == (
        "required",
        "m",
        0.5,
    )
    assert (request.max_output_tokens, request.reasoning_effort) == (9, "low")
    assert (request.top_p, request.stop) == (0.9, ["END"])
    assert request.response_format == {"type": "json"}


async def test_results_are_stored_in_the_order_of_the_calls(stage: Stage) -> None:
    await stage.run(UntilDone(), calling(call(3), call(1)), answer("Done"))

    assert [
        (m["tool_call_id"], m["content"])
        for m in stage.context.messages
        if m["role"] == "tool"
    ] == [
        ("call_3", "6"),
        ("call_1", "2"),
    ]


async def test_a_turn_counts_what_it_spent(stage: Stage) -> None:
    loop = UntilDone()

    await stage.run(
        loop,
        calling(call(1)),
        attrs.evolve(calling(call(2)), usage=answer("", tokens=5).usage),
        answer(""),
    )

    assert (loop.turn.iteration, loop.turn.calls_made) == (3, 2)
    assert loop.turn.usage is not None
    assert loop.turn.usage.total_tokens == 7


async def test_last_iteration_gets_no_tools_and_its_calls_are_dropped(
    stage: Stage,
) -> None:
    stage.limit(Limits(iterations=2))

    assert (
        await stage.run(UntilDone(), calling(call(1)), calling(call(2), text="So far."))
        == "So far."
    )

    last = stage.provider.requests[-1]
    assert last.tools is None
    assert "answer now" in last.messages[-1].text
    assert "tool_calls" not in stage.context.messages[-1]


async def test_calls_beyond_the_limit_are_answered_without_being_run(
    stage: Stage,
) -> None:
    stage.limit(Limits(tool_calls=1))

    await stage.run(UntilDone(), calling(call(1), call(2)), answer("Done"))

    results = [
        message["content"]
        for message in stage.context.messages
        if message["role"] == "tool"
    ]
    assert results == [
        "2",
        "Error: Not run: the turn's limit of 1 tool calls is reached",
    ]
    assert stage.provider.requests[-1].tools is None


async def test_a_turn_may_be_limited_by_its_tokens(stage: Stage) -> None:
    stage.limit(Limits(tokens=10))
    costly = attrs.evolve(calling(call(1)), usage=answer("", tokens=10).usage)

    await stage.run(UntilDone(), calling(call(1)), costly, answer("Done"))

    assert [request.tools is None for request in stage.provider.requests] == [
        False,
        False,
        True,
    ]


async def test_another_provider_may_be_asked_by_name(stage: Stage) -> None:
    class AsksOther(Loop):
        async def run(self, turn: Turn) -> str:
            return (await turn.complete(provider="other")).text

    other = Answers(answer("From the other"), name="other")
    providers: dict[str, Provider] = {"answers": Answers(), "other": other}

    assert (
        await AsksOther().execute("Hello", stage.context, providers, {}, stage.hooks)
        == "From the other"
    )


async def test_provider_not_mounted_is_error_that_names_nearest(
    stage: Stage,
) -> None:
    class AsksWrong(Loop):
        async def run(self, turn: Turn) -> str:
            return (await turn.complete(provider="answer")).text

    with pytest.raises(
        ConfigError,
        match=r"no provider 'answer' is mounted; mounted: answers; did you mean 'answers'",
    ):
        await stage.run(AsksWrong())


async def test_a_loop_may_choose_the_turns_provider(stage: Stage) -> None:
    class Last(Once):
        def provider_name(self, providers: Mapping[str, Provider]) -> str:
            return list(providers)[-1]

    providers: dict[str, Provider] = {"a": Answers(), "b": Answers(answer("From b"))}

    assert (
        await Last().execute("Hello", stage.context, providers, {}, stage.hooks)
        == "From b"
    )


def test_lowest_priority_is_chosen_and_first_among_equals() -> None:
    first, second, third = Answers(), Answers(), Answers()
    second.priority = 10  # type: ignore[attr-defined]  # providers may have one
    third.config = {"priority": 5}  # type: ignore[attr-defined]  # or a configuration with one

    assert choose_provider({"a": first}) == "a"
    assert choose_provider({"a": first, "b": Answers()}) == "a"
    assert choose_provider({"a": first, "b": second}) == "b"
    assert choose_provider({"a": first, "b": second, "c": third}) == "c"


def test_a_priority_that_is_no_number_counts_as_none() -> None:
    odd, other = Answers(), Answers()
    odd.priority = "high"  # type: ignore[attr-defined]  # what is no number
    other.config = "mine"  # type: ignore[attr-defined]  # what is no mapping

    assert choose_provider({"a": other, "b": odd}) == "a"


def test_without_a_provider_there_is_nothing_to_choose() -> None:
    with pytest.raises(ConfigError, match="name one in the plan's 'providers'"):
        choose_provider({})


class Handmade:
    """A tool without a schema."""

    name = "handmade"
    description = "Anything"

    async def execute(self, input: JSONObject, /) -> ToolResult:
        return ToolResult()


class OlderSpelling(Handmade):
    """A tool whose schema is a method's answer."""

    def get_schema(self) -> Mapping[str, JSONValue]:
        return {"type": "object", "required": ["x"]}


class NoSchema(Handmade):
    """A tool whose schema is no object."""

    input_schema: Sequence[str] = ("x",)


def test_schema_spellings_and_missing_schema_are_accepted() -> None:
    assert schema_of(double) == double.input_schema
    assert schema_of(OlderSpelling()) == {"type": "object", "required": ["x"]}
    assert schema_of(Handmade()) == {"type": "object"}
    assert schema_of(NoSchema()) == {"type": "object"}


def test_a_tool_is_described_to_the_model() -> None:
    spec = tool_spec(Handmade())

    assert (spec.name, spec.description, spec.parameters) == (
        "handmade",
        "Anything",
        {"type": "object"},
    )
