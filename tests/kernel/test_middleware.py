"""Middleware: what surrounds turns, model calls, tool calls and typed answers, in its order."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Final, cast

import anyio
import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluggy import HookimplMarker

from amplifier import Agent, AmplifierSession, HookRegistry, Toolset
from amplifier_sdk import hook
from amplifier_sdk.chat import ChatRequest, ChatResponse
from amplifier_sdk.content import TextBlock
from amplifier_sdk.contracts import (
    ContextManager,
    Coordinator,
    Hooks,
    Provider,
    Tool,
)
from amplifier_sdk.errors import (
    ConfigError,
    LLMError,
    LLMTimeoutError,
    ModuleConfigError,
    ModuleValidationError,
    OutputMisfitError,
)
from amplifier_sdk.events import PROVIDER_RESPONSE, TOOL_POST, TOOL_PRE
from amplifier_sdk.hookspecs import Config, amplifier_tool
from amplifier_sdk.messages import Message
from amplifier_sdk.middleware import (
    ModelCall,
    OutputAttempt,
    Point,
    Proceed,
    ToolRun,
    TurnCall,
    amplifier_around_model,
    amplifier_around_output,
    amplifier_around_tool,
    amplifier_around_turn,
    around,
    event_of,
    placed,
)
from amplifier_sdk.results import HookResult, ToolResult
from amplifier_sdk.streaming import TextDelta
from tests.doubles import (
    EchoLoop,
    MemoryContext,
    PlainLoop,
    PlainProvider,
    Recorder,
    ScriptedProvider,
    Sentry,
    Worker,
    answer,
    build_loader,
    build_plan,
    build_session,
    call,
    calling,
    forever,
    mounted_context,
    only_result,
)

ASKED: Final = ChatRequest(messages=[Message(role="user", content="go")])


def agent(*steps: object, hooks: list[object], **options: object) -> Agent[None, str]:
    """Make an agent whose session has some middleware."""
    model = ScriptedProvider(*steps)  # type: ignore[arg-type]  # steps of any kind
    return Agent(model, hooks=hooks, **options)  # type: ignore[call-overload, no-any-return]


def surround(session: AmplifierSession, point: Point, function: object) -> None:
    """Register middleware as an application does."""
    handler = cast("Callable[..., None]", function)  # type: ignore[explicit-any]
    session.coordinator.hooks.register(event_of(point), handler)


# -- what each point sees and may do


async def test_a_turn_is_surrounded() -> None:
    @around("turn")
    async def twice(turn: TurnCall, proceed: Proceed[TurnCall, str]) -> str:
        text = await proceed(attrs.evolve(turn, prompt=f"{turn.prompt}, please"))
        return f"{text} {text}"

    model = ScriptedProvider("yes")
    result = await Agent(model, hooks=[twice]).run("Hi")

    assert result.output == "yes yes"
    assert model.requests[0].messages[-1].text == "Hi, please"


async def test_a_model_call_is_surrounded() -> None:
    seen: list[ModelCall] = []

    @around("model")
    async def again(
        made: ModelCall, proceed: Proceed[ModelCall, ChatResponse]
    ) -> ChatResponse:
        seen.append(made)
        try:
            return await proceed(made)
        except LLMError:
            cooler = attrs.evolve(made.request, temperature=0.0)
            return await proceed(attrs.evolve(made, request=cooler))

    model = ScriptedProvider(LLMError("down"), "up")
    result = await Agent(model, hooks=[again]).run("Hi")

    assert result.output == "up"
    assert [request.temperature for request in model.requests] == [None, 0.0]
    assert (seen[0].provider, seen[0].iteration) == (seen[0].provider, 0)
    assert result.session_id == seen[0].session_id


async def test_an_answer_that_middleware_gives_is_stored_as_the_models() -> None:
    @around("model")
    async def cached(
        made: ModelCall, proceed: Proceed[ModelCall, ChatResponse]
    ) -> ChatResponse:
        return ChatResponse(content=[TextBlock(text="from the cache")])

    model = ScriptedProvider()
    result = await Agent(model, hooks=[cached]).run("Hi")

    assert result.output == "from the cache"
    assert model.requests == []
    assert result.messages[-1]["role"] == "assistant"


async def test_a_tool_call_is_surrounded() -> None:
    seen: list[ToolRun] = []

    @around("tool")
    async def loud(run: ToolRun, proceed: Proceed[ToolRun, ToolResult]) -> ToolResult:
        seen.append(run)
        result = await proceed(run)
        return ToolResult(output=f"{result.output}!")

    worker = Worker()
    session = build_session(
        calling(call("work", {"a": 1}, id="c1")), "end", tools=[worker]
    )
    surround(session, "tool", loud)
    recorder = Recorder.of(session.coordinator.hooks, TOOL_POST)
    async with session:
        await session.execute("go")

        assert only_result(mounted_context(session.coordinator).messages) == "done!"
    assert (seen[0].call.id, seen[0].call.arguments) == ("c1", {"a": 1})
    # handlers of the call's end see what became of its result
    assert cast("ToolResult", recorder.one(TOOL_POST)["result"]).output == "done!"


@pytest.mark.parametrize("way", ["other arguments", "changed in place", "other name"])
async def test_another_call_than_was_decided_on_does_not_run(way: str) -> None:
    async def sly(run: ToolRun, proceed: Proceed[ToolRun, ToolResult]) -> ToolResult:
        if way == "changed in place":
            run.call.arguments["a"] = 2
            return await proceed(run)
        changed = attrs.evolve(run.call, arguments={"a": 2})
        if way == "other name":
            changed = attrs.evolve(run.call, name="other")
        return await proceed(attrs.evolve(run, call=changed))

    worker = Worker()
    session = build_session(calling(call("work", {"a": 1})), "end", tools=[worker])
    surround(session, "tool", sly)
    async with session:
        await session.execute("go")

        result = only_result(mounted_context(session.coordinator).messages)
    assert "another call than the one that was decided on" in result
    assert worker.inputs == []


async def test_a_denied_call_reaches_no_middleware() -> None:
    seen: list[ToolRun] = []

    async def watch(run: ToolRun, proceed: Proceed[ToolRun, ToolResult]) -> ToolResult:
        seen.append(run)
        return await proceed(run)

    session = build_session(calling(call("work")), "end", tools=[Worker()])
    surround(session, "tool", watch)
    session.coordinator.hooks.register(TOOL_PRE, Sentry([HookResult.deny("no")]))
    async with session:
        await session.execute("go")

    assert seen == []


async def test_the_reading_of_an_answer_is_surrounded() -> None:
    seen: list[int] = []

    @around("output")
    async def lenient(
        attempt: OutputAttempt, proceed: Proceed[OutputAttempt, object]
    ) -> object:
        seen.append(attempt.attempt)
        try:
            return await proceed(attempt)
        except OutputMisfitError:
            if attempt.attempt == 1:
                raise
            return await proceed(attrs.evolve(attempt, text='{"value": 7}'))

    model = ScriptedProvider("seven", "still seven")
    result = await Agent(model, output=int, hooks=[lenient]).run("Hi")

    assert result.output == 7
    assert seen == [1, 2]


# -- failures and deadlines


async def test_what_it_raises_is_the_failure_of_what_it_surrounds() -> None:
    async def broken(made: object, proceed: Proceed[object, object]) -> object:
        raise ZeroDivisionError

    session = build_session(calling(call("work")), "end", tools=[Worker()])
    surround(session, "tool", broken)
    async with session:
        assert await session.execute("go") == "end"

        result = only_result(mounted_context(session.coordinator).messages)
        assert "ZeroDivisionError" in result
        surround(session, "turn", broken)
        with pytest.raises(ZeroDivisionError):
            await session.execute("go")


@pytest.mark.parametrize("point", ["turn", "model", "tool"])
async def test_what_it_returns_is_checked(point: Point) -> None:
    async def wrong(made: object, proceed: Proceed[object, object]) -> object:
        return 3

    session = build_session(calling(call("work")), "end", tools=[Worker()])
    surround(session, point, wrong)
    async with session:
        if point == "tool":
            await session.execute("go")
            result = only_result(mounted_context(session.coordinator).messages)
            assert result.startswith("Error")
        else:
            with pytest.raises((ConfigError, LLMError), match="int"):
                await session.execute("go")


async def test_the_deadlines_hold_around_it_as_well() -> None:
    async def stuck(made: object, proceed: Proceed[object, object]) -> object:
        await proceed(made)
        await forever()
        return None

    limits = {"provider_timeout": 0.05, "tool_timeout": 0.05}
    session = build_session(
        calling(call("work")), "end", "late", tools=[Worker()], limits=limits
    )
    surround(session, "tool", stuck)
    with anyio.fail_after(5):
        async with session:
            assert await session.execute("go") == "end"
            surround(session, "model", stuck)
            with pytest.raises(LLMTimeoutError):
                await session.execute("go")


async def test_plain_provider_has_its_deadline_behind_one_that_waited() -> None:
    async def patient(made: object, proceed: Proceed[object, object]) -> object:
        await anyio.lowlevel.checkpoint()
        return await proceed(made)

    async def never(request: ChatRequest) -> ChatResponse:
        await forever()
        raise AssertionError

    session = build_session(
        provider=PlainProvider(never), limits={"provider_timeout": 0.05}
    )
    surround(session, "model", patient)
    with anyio.fail_after(5):
        async with session:
            with pytest.raises(LLMTimeoutError, match=r"took longer than 0.05 s"):
                await session.execute("go")


# -- who has it


async def test_a_hook_class_brings_it_along() -> None:
    @hook
    class Exclaiming:
        @around("turn")
        async def exclaim(self, turn: TurnCall, proceed: Proceed[TurnCall, str]) -> str:
            return f"{await proceed(turn)}!"

    result = await Agent(ScriptedProvider("yes"), hooks=[Exclaiming()]).run("Hi")

    assert result.output == "yes!"


def module_of(**functions: object) -> ModuleType:
    """Make a package with some functions."""
    made = ModuleType("shouting")
    vars(made).update(functions)
    return made


@amplifier_around_turn.impl
async def exclaim(call: TurnCall, proceed: Proceed[TurnCall, str]) -> str:
    return f"{await proceed(call)}!"


@amplifier_around_model.impl
async def larger(
    call: ModelCall, proceed: Proceed[ModelCall, ChatResponse]
) -> ChatResponse:
    response = await proceed(call)
    text = response.text.replace("-3", "-4")
    return attrs.evolve(response, content=[TextBlock(text=text)])


@amplifier_around_tool.impl
async def doubled(call: ToolRun, proceed: Proceed[ToolRun, ToolResult]) -> ToolResult:
    result = await proceed(call)
    return attrs.evolve(result, output=f"{result.output}, twice")


@amplifier_around_output.impl
async def positive(
    call: OutputAttempt, proceed: Proceed[OutputAttempt, object]
) -> object:
    value = await proceed(call)
    assert isinstance(value, int)
    return abs(value)


async def test_a_package_implements_the_hookspecs() -> None:
    package = module_of(larger=larger, doubled=doubled, positive=positive)
    model = ScriptedProvider(calling(call("work")), '{"value": -3}')
    tool = Toolset(Worker())
    result = await Agent(model, hooks=[package], tools=[tool], output=int).run("Hi")

    assert result.output == 4
    (content,) = [m["content"] for m in result.messages if m["role"] == "tool"]
    assert content == "done, twice"


async def test_a_module_of_any_type_may_surround() -> None:
    async def mount(coordinator: Coordinator, config: Config) -> object:
        return Worker()

    package = module_of(mount=amplifier_tool.impl(mount), exclaim=exclaim)
    session = build_session("yes", "yes", tools=[package])
    async with session:
        assert "work" in session.coordinator.tools
        assert await session.execute("go") == "yes!"
        session.coordinator.plugins.manager.unregister(package)
        assert await session.execute("go") == "yes"


async def test_two_entries_of_one_module_surround_once() -> None:
    package = module_of(exclaim=exclaim)
    plan = build_plan(
        providers=["provider"],
        hooks=["shout", {"module": "shout", "instance_id": "again"}],
    )
    modules = {
        "loop": EchoLoop(),
        "context": MemoryContext(),
        "provider": ScriptedProvider("yes"),
        "shout": package,
    }
    async with AmplifierSession(plan, build_loader(modules)) as session:
        assert await session.execute("go") == "yes!"


async def test_a_module_that_only_surrounds_takes_no_configuration() -> None:
    plan = build_plan(hooks=[{"module": "shout", "config": {"loud": True}}])
    modules = {
        "loop": EchoLoop(),
        "context": MemoryContext(),
        "shout": module_of(exclaim=exclaim),
    }
    with pytest.raises(ModuleConfigError, match=r"config\.loud: unknown key; this"):
        await AmplifierSession(plan, build_loader(modules)).initialize()


async def test_a_plugin_of_the_application_surrounds_its_children_too() -> None:
    session = build_session("from the child")
    session.coordinator.plugins.manager.register(module_of(exclaim=exclaim), "shout")
    async with session:
        child = await session.spawn(agent_name="self", instruction="go")

    assert child.output == "from the child!"


async def test_pluggys_order_and_names_place_it() -> None:
    def saying(
        word: str,
        *,
        place: tuple[str, ...] = (),
        first: bool = False,
        last: bool = False,
    ) -> object:
        async def say(call: TurnCall, proceed: Proceed[TurnCall, str]) -> str:
            return f"{word}({await proceed(call)})"

        marked = HookimplMarker("amplifier")(
            specname=amplifier_around_turn.name, tryfirst=first, trylast=last
        )
        return marked(placed(name=word, after=place)(say))

    package = module_of(
        a=saying("inner", last=True),
        b=saying("middle"),
        c=saying("outer", first=True),
        d=saying("last", place=("inner",)),
    )
    async with build_session("x", hooks=[package]) as session:
        assert await session.execute("go") == "outer(middle(inner(last(x))))"


async def test_two_packages_surround_one_another() -> None:
    async def ask(call: TurnCall, proceed: Proceed[TurnCall, str]) -> str:
        return f"{await proceed(call)}?"

    asking = module_of(ask=amplifier_around_turn.impl(ask))
    shouting = module_of(exclaim=exclaim)
    async with build_session("yes", hooks=[asking, shouting]) as session:
        assert await session.execute("go") == "yes!?"


async def test_an_implementation_that_does_not_fit_is_named() -> None:
    async def turned(proceed: object, call: object) -> str:
        return ""

    async def lonely(call: object) -> str:
        return ""

    for function, says in ((turned, "in this order"), (lonely, r"it takes \(call\)")):
        package = module_of(bad=amplifier_around_turn.impl(function))  # type: ignore[arg-type]
        with pytest.raises(ModuleValidationError, match=says):
            await build_session("x", hooks=[package]).initialize()


async def test_what_implements_nothing_continues() -> None:
    async def proceed(made: TurnCall) -> str:
        return made.prompt

    made = TurnCall(session_id="s", prompt="go")

    assert await amplifier_around_turn.function(made, proceed) == "go"


async def test_an_applications_own_surrounds_its_children_too() -> None:
    async def loud(turn: TurnCall, proceed: Proceed[TurnCall, str]) -> str:
        return (await proceed(turn)).upper()

    session = build_session("from the child")
    surround(session, "turn", loud)
    async with session:
        child = await session.spawn(agent_name="self", instruction="go")

    assert child.output == "FROM THE CHILD"


async def test_a_loop_written_by_hand_is_surrounded_as_any() -> None:
    async def steps(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        (provider,) = providers.values()
        assert not hasattr(provider, "stream")
        return (await provider.complete(ASKED)).text

    async def loud(
        made: ModelCall, proceed: Proceed[ModelCall, ChatResponse]
    ) -> ChatResponse:
        response = await proceed(made)
        return attrs.evolve(response, content=[TextBlock(text=response.text.upper())])

    session = build_session("hi", loop=PlainLoop(steps))
    surround(session, "model", loud)
    recorder = Recorder.of(session.coordinator.hooks, PROVIDER_RESPONSE)
    async with session:
        assert await session.execute("go") == "HI"

    assert (
        cast("ChatResponse", recorder.one(PROVIDER_RESPONSE)["response"]).text == "HI"
    )


async def test_whoever_hears_everything_is_no_middleware() -> None:
    session = build_session("hi")
    recorder = Recorder.of(session.coordinator.hooks, "*")
    async with session:
        assert await session.execute("go") == "hi"

    assert not [name for name in recorder.names if name.startswith("around:")]


async def test_an_answer_streams_through_it() -> None:
    async def watch(
        made: ModelCall, proceed: Proceed[ModelCall, ChatResponse]
    ) -> ChatResponse:
        return await proceed(made)

    session = build_session(answer("hello"))
    surround(session, "model", watch)
    async with session, session.stream("go") as events:
        texts = [event.text async for event in events if isinstance(event, TextDelta)]

    assert "".join(texts) == "hello"


# -- the order


def ordered(*functions: object) -> list[str]:
    """Return the names of middleware from the outside in."""
    hooks = HookRegistry()
    for function in functions:
        hooks.register(event_of("turn"), function)  # type: ignore[call-overload]
    chain = hooks.middleware(event_of("turn"))
    assert chain is not None
    seen: list[str] = []

    async def run() -> None:
        async def innermost(names: list[str]) -> None:
            seen.extend(names)

        await chain([], innermost)

    anyio.run(run)
    return seen


def named(
    name: str, *, before: tuple[str, ...] = (), after: tuple[str, ...] = ()
) -> object:
    """Make middleware that adds its name."""

    async def append(names: list[str], proceed: Proceed[list[str], None]) -> None:
        await proceed([*names, name])

    return around("turn", name=name, before=before, after=after)(append)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("functions", "names"),
    [
        ([named("a"), named("b")], "ab"),
        ([named("a"), named("b", before=("a",))], "ba"),
        ([named("a", after=("b",)), named("b")], "ba"),
        ([named("a", after=("c",)), named("b"), named("c")], "bca"),
        ([named("a", after=("missing",)), named("b", before=("missing",))], "ab"),
    ],
)
def test_it_stands_as_it_says(functions: list[object], names: str) -> None:
    assert "".join(ordered(*functions)) == names


def test_an_order_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="'a', 'b': before and after contradict"):
        ordered(named("a", before=("b",)), named("b", before=("a",)))


@given(st.permutations("abcd"), st.permutations("abcd"))
def test_any_order_that_can_be_is_kept(wanted: list[str], given_in: list[str]) -> None:
    functions = [
        named(name, before=tuple(wanted[wanted.index(name) + 1 :])) for name in given_in
    ]

    assert ordered(*functions) == wanted


def test_a_point_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="no point 'modle'; did you mean 'model'"):
        around("modle")  # type: ignore[call-overload]
