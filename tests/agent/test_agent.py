"""An agent becomes a plan and a session: models, tools, hooks, instructions, limits, and what guards them."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import entry_points

import anyio
import pytest

from amplifier import Agent, ModuleLoader, Toolset
from amplifier_kit.installation import install_command
from amplifier_sdk import HookResult, RunContext, tool
from amplifier_sdk.errors import ConfigError, ModuleNotFoundError, TurnCancelled
from amplifier_sdk.events import TOOL_PRE, ToolPre
from amplifier_sdk.handlers import on
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.streaming import TextDelta, TurnFinished
from tests.doubles import ScriptedProvider, Worker, call, calling, ended_early


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@tool
def half(number: int) -> int:
    """Halve a number."""
    return number // 2


async def test_a_run_answers_in_a_session_of_its_own() -> None:
    provider = ScriptedProvider("Hello.", "Hello again.")
    agent = Agent(provider, instructions="Be brief.")

    first = await agent.run("Hi")
    second = await agent.run("Hi")

    assert (first.output, second.output) == ("Hello.", "Hello again.")
    assert first.session_id != second.session_id
    assert [message["role"] for message in second.messages] == [
        "system",
        "user",
        "assistant",
    ]
    assert second.messages[0]["content"] == "Be brief."
    assert first.usage is not None


async def test_a_session_continues_the_conversation() -> None:
    agent = Agent(ScriptedProvider("One.", "Two."), instructions="Count.")
    async with agent.session(session_id="a-session") as session:
        await session.run("first")
        result = await session.run("second")

    assert result.session_id == "a-session"
    texts = [message["content"] for message in result.messages]
    assert texts[0] == "Count."
    assert texts.count("Count.") == 1
    assert "first" in texts


async def test_tools_may_be_functions_tools_and_plan_entries() -> None:
    steps = calling(call("double", {"number": 4}), call("half", {"number": 4}))
    agent = Agent(ScriptedProvider(steps, "Done."), tools=[double, half])

    result = await agent.run("Count.")

    contents = [m["content"] for m in result.messages if m["role"] == "tool"]
    assert contents == ["8", "2"]
    entry: JSONObject = {"module": "tool-x", "config": {"a": 1}}
    plan = Agent(ScriptedProvider(), tools=["tool-y", entry]).plan()
    assert plan["tools"] == [{"module": "tool-y"}, entry]


async def test_a_stream_has_the_events_and_then_the_result() -> None:
    agent = Agent(ScriptedProvider("Hello."))
    async with agent.stream("Hi") as events:
        with pytest.raises(RuntimeError, match="has not ended"):
            _ = events.result
        seen = [event async for event in events]

    assert "".join(e.text for e in seen if isinstance(e, TextDelta)) == "Hello."
    assert isinstance(seen[-1], TurnFinished)
    assert events.result.output == "Hello."


async def test_leaving_a_stream_cancels_the_run() -> None:
    ended = anyio.Event()

    async def work(_: JSONObject) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    worker = Worker(function=work)
    agent = Agent(ScriptedProvider(calling(call("work"))), tools=[Toolset(worker)])
    with anyio.fail_after(5):
        async with agent.stream("Hi") as events:
            async for _ in events:
                break
        assert ended.is_set() or not worker.inputs


async def test_what_a_run_raises_reaches_the_reader_of_its_stream() -> None:
    agent = Agent(ScriptedProvider(OSError("no line")))
    with pytest.raises(OSError, match="no line"):
        async with agent.stream("Hi") as events:
            async for _ in events:
                pass


async def test_limits_hold_for_each_run_and_cost_is_in_dollars() -> None:
    agent = Agent(
        ScriptedProvider(calling(call("double", {"number": 1})), "Enough."),
        tools=[double],
        limits={"iterations": 2, "cost": "0.10"},
    )

    assert agent.plan()["session"]["limits"] == {"iterations": 2, "cost_usd": "0.10"}  # type: ignore[index, call-overload]  # a plan is JSON
    result = await agent.run("Work.")

    assert result.limit == "iterations"
    assert result.output == ended_early("Enough.", "iterations", 2)


async def test_a_hook_of_the_application_denies() -> None:
    @on(TOOL_PRE)
    async def deny(event: str, data: ToolPre) -> HookResult:
        return HookResult.deny("not today")

    provider = ScriptedProvider(calling(call("double", {"number": 1})), "Denied.")
    result = await Agent(provider, tools=[double], hooks=[deny]).run("Work.")

    (content,) = [m["content"] for m in result.messages if m["role"] == "tool"]
    assert "not today" in str(content)


async def test_an_object_with_handlers_is_a_hook_and_guards_sub_agents() -> None:
    class Guard:
        @on(TOOL_PRE)
        async def deny(self, event: str, data: ToolPre) -> HookResult | None:
            if data["tool_name"] == "double":
                return HookResult.deny("not below either")
            return None

    below = ScriptedProvider(calling(call("double", {"number": 1})), "Denied below.")
    helper = Agent(below, name="helper", tools=[double])
    above = ScriptedProvider(calling(call("helper", {"prompt": "double 1"})), "End.")

    result = await Agent(above, tools=[helper], hooks=[Guard()]).run("Work.")

    (content,) = [m["content"] for m in result.messages if m["role"] == "tool"]
    assert content == "Denied below."
    assert "not below either" in str(below.requests[1].messages[-1])


async def test_a_sub_agent_has_its_own_tools_instructions_and_limits() -> None:
    below = ScriptedProvider(calling(call("double", {"number": 1})), "Two.")
    helper = Agent(
        below,
        name="helper",
        description="Doubles numbers.",
        instructions="You double.",
        tools=[double],
        limits={"iterations": 2},
    )
    above = ScriptedProvider(calling(call("helper", {"prompt": "double 1"})), "End.")

    result = await Agent(above, tools=[helper, half]).run("Work.")

    specs = {spec.name: spec.description for spec in above.requests[0].tools or ()}
    assert specs["helper"] == "Doubles numbers."
    assert sorted(specs) == ["half", "helper"]
    assert [spec.name for spec in below.requests[0].tools or ()] == ["double"]
    assert below.requests[0].messages[0].text == "You double."
    (content,) = [m["content"] for m in result.messages if m["role"] == "tool"]
    assert "iterations" in str(content)


async def test_instructions_are_asked_in_each_turn_and_told_when_they_are_new() -> None:
    words = ["It is Monday.", "It is Monday.", "It is Tuesday."]

    def day(ctx: RunContext[None]) -> str:
        return words.pop(0)

    async def nothing(ctx: RunContext[None]) -> str | None:
        return None

    provider = ScriptedProvider("1", "2", "3")
    agent = Agent(provider, instructions=["Be brief.", day, nothing])
    async with agent.session() as session:
        await session.run("a")
        await session.run("b")
        result = await session.run("c")

    reported = [str(m["content"]) for m in result.messages]
    assert reported == [
        "Be brief.",
        "It is Monday.",
        "a",
        reported[3],
        "b",
        reported[5],
        *reported[6:],
    ]
    assert reported[6:8] == ["It is Tuesday.", "c"]


@pytest.mark.parametrize("says", ["raises", "says no text"])
async def test_instructions_that_fail_end_the_turn_unasked(says: str) -> None:
    def broken(ctx: RunContext[None]) -> str:
        if says == "raises":
            raise ZeroDivisionError
        return 3  # type: ignore[return-value]

    provider = ScriptedProvider("never")
    error = ZeroDivisionError if says == "raises" else TypeError

    with pytest.raises(error):
        await Agent(provider, instructions=broken).run("Hi")
    assert provider.requests == []


async def test_a_tool_that_is_not_there_is_an_error() -> None:
    agent = Agent(ScriptedProvider("never"), tools=["tool-of-nobody"])

    with pytest.raises(ModuleNotFoundError, match="tool-of-nobody"):
        await agent.run("Hi")


async def test_a_tool_of_a_sub_agent_that_is_not_there_is_an_error() -> None:
    helper = Agent(ScriptedProvider("never"), name="helper", tools=["tool-filsystem"])
    agent = Agent(ScriptedProvider("never"), tools=[helper])

    with pytest.raises(ConfigError) as caught:
        await agent.run("Hi")

    (problem,) = caught.value.problems
    assert problem.path == "agents.helper.tools[0]"
    assert "did you mean 'tool-filesystem'?" in problem.message


async def test_an_override_holds_for_the_sessions_in_the_block() -> None:
    agent = Agent("local", deps="real")
    with agent.override(model=ScriptedProvider("Scripted."), deps="double"):
        async with agent.session() as session:
            assert session.deps == "double"
            assert (await session.run("Hi")).output == "Scripted."
    assert agent.deps == "real"


def test_a_script_runs_an_agent_without_an_event_loop() -> None:
    for backend in ("asyncio", "trio"):
        agent = Agent(ScriptedProvider("Hello."))
        assert agent.run_sync("Hi", backend=backend).output == "Hello."


async def test_in_an_event_loop_the_error_has_the_line_to_write() -> None:
    with pytest.raises(RuntimeError, match=r"write `result = await agent\.run"):
        Agent(ScriptedProvider("Hello.")).run_sync("Hi")


async def test_cancelling_a_session_stops_the_run() -> None:
    reached = anyio.Event()

    async def work(_: JSONObject) -> str:
        reached.set()
        await anyio.sleep_forever()
        raise AssertionError

    agent = Agent(
        ScriptedProvider(calling(call("work"))),
        tools=[Toolset(Worker(function=work))],
    )
    async with agent.session() as session:

        async def run() -> None:
            with pytest.raises(TurnCancelled):
                await session.run("Hi")

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await reached.wait()
                await session.session.cancel(immediate=True)


async def test_what_needs_approval_is_denied_where_nobody_can_be_asked() -> None:
    @on(TOOL_PRE)
    async def ask(event: str, data: ToolPre) -> HookResult:
        return HookResult.ask("Double it?")

    provider = ScriptedProvider(calling(call("double", {"number": 1})), "End.")
    result = await Agent(provider, tools=[double], hooks=[ask]).run("Work.")

    (content,) = [m["content"] for m in result.messages if m["role"] == "tool"]
    assert "denied" in str(content).lower()


def test_a_plan_is_laid_over_what_the_rest_comes_to() -> None:
    agent = Agent(ScriptedProvider(), plan={"session": {"metadata": {"a": 1}}})

    session = agent.plan()["session"]

    assert isinstance(session, dict)
    assert session["metadata"] == {"a": 1}
    assert session["context"] == {"module": "context-simple"}


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Agent("anthropc:x").plan(), "did you mean 'anthropic'"),
        (lambda: Agent("anthropic:"), "expected vendor:model"),
        (lambda: Agent(3), "model: expected vendor:model"),  # type: ignore[call-overload]
        (lambda: Agent("zzz").plan(), "no such provider is installed; there are"),
        (lambda: Agent(name="no spaces"), "expected letters, digits"),
        (lambda: Agent(tools=[3]), "expected a function, a tool"),  # type: ignore[list-item]
        (lambda: Agent(tools=[int]), "what a decorator of the SDK made a tool"),
        (lambda: Agent(tools="tool-x"), "tools: expected a list"),
        (lambda: Agent(tools=[double, double]), "one tool of each name; got 'double'"),
        (lambda: Agent(hooks=[3]), "expected a handler marked with @on"),
        (lambda: Agent(limits={"costs": 1}), "limits.costs: unknown"),  # type: ignore[call-overload]
        (lambda: Agent(limits={"cost": -1}), "limits.cost: A limit of cost"),
        (lambda: Agent(limits=3), "limits: expected a mapping"),  # type: ignore[call-overload]
        (lambda: Agent(instructions=3), "instructions: expected a text or a function"),  # type: ignore[call-overload]
        (lambda: Agent(instructions=["a", 3]), "instructions[1]: expected a text"),  # type: ignore[list-item]
        (lambda: Agent(output_retries=-1), "output_retries: expected a whole number"),
        (lambda: Agent(output_mode="tol"), "did you mean 'tool'"),  # type: ignore[call-overload]
        (lambda: Agent(output_validators=[3]), "output_validators[0]: expected a"),  # type: ignore[list-item]
        (lambda: Agent(output_validators=3), "output_validators: expected a list"),  # type: ignore[call-overload]
        (lambda: Agent(plan={"toools": []}), "toools: unknown key; did you mean"),
        (lambda: Agent(plan={"tools": [3]}), "tools[0]: a module id or a mapping"),
        (lambda: Agent(plan=3), "plan: expected a plan or the path of one"),  # type: ignore[call-overload]
        (lambda: Agent(loop={"modul": "x"}), "loop.modul: unknown key"),
    ],
)
def test_what_an_agent_cannot_be_made_of_is_named(
    make: Callable[[], object], says: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        make()

    assert says in str(caught.value)


async def test_the_vendor_and_the_model_are_what_the_loop_asks() -> None:
    plan = Agent("anthropic:a-model:latest").plan()

    assert plan["providers"] == [{"module": "provider-anthropic"}]
    assert plan["orchestrator"] == {"config": {"model": "a-model:latest"}}


def test_a_vendor_is_called_what_its_provider_calls_itself() -> None:
    """The table of vendors is that of modules, which nothing has to be imported for."""
    found = {
        entry.name.removeprefix("provider-"): entry.load().name
        for entry in entry_points(group="amplifier.modules")
        if entry.name.startswith("provider-")
    }

    assert len(found) >= 7
    assert {vendor: vendor for vendor in found} == found


def test_a_vendor_of_ours_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ModuleLoader, "discover", lambda _: [])

    with pytest.raises(
        ConfigError, match=re.escape(install_command("amplifier[anthropic]"))
    ):
        Agent("anthropic:x").plan()
    with pytest.raises(ConfigError, match="there are none"):
        Agent("keyring").plan()
