"""Tools of an application: what they are given, and who may have them."""

from __future__ import annotations

import attrs

from amplifier import Agent, Toolset
from amplifier_sdk import RunContext, tool, toolset
from amplifier_sdk.progress import ToolProgress
from tests.doubles import ScriptedProvider, build_session, call, calling


@attrs.define
class Bank:
    accounts: dict[str, int]
    asked: list[RunContext[object]] = attrs.field(factory=list)


@tool
async def balance(ctx: RunContext[Bank], account: str) -> int:
    """Say what is on an account."""
    ctx.deps.asked.append(ctx)
    ctx.progress("reading", done=1, total=1)
    return ctx.deps.accounts[account]


@tool
def balance_in_a_thread(ctx: RunContext[Bank], account: str) -> int:
    """Say what is on an account."""
    return ctx.deps.accounts[account]


def results(result: object) -> list[object]:
    messages = getattr(result, "messages", ())
    return [m["content"] for m in messages if m["role"] == "tool"]


async def test_a_tool_finds_what_the_run_was_given() -> None:
    steps = calling(
        call("balance", {"account": "a"}, id="one"),
        call("balance_in_a_thread", {"account": "b"}, id="two"),
    )
    bank = Bank({"a": 7, "b": 8})
    agent = Agent(
        ScriptedProvider(steps, "Seven."),
        tools=[balance, balance_in_a_thread],
        deps=Bank({}),
        limits={"tool_calls": 5},
    )
    result = await agent.run("How much?", deps=bank)

    assert results(result) == ["7", "8"]
    (context,) = bank.asked
    assert context.call_id == "one"
    assert context.session_id == result.session_id
    assert context.limits.tool_calls == 5
    assert context.attempt == 1


async def test_a_tool_reads_the_conversation_and_cannot_change_it() -> None:
    read: list[object] = []

    @tool
    async def recall(ctx: RunContext[None]) -> int:
        """Count the messages."""
        messages = await ctx.messages()
        read.extend(dict(message) for message in messages)
        messages[0]["content"] = "changed"
        return len(messages)

    provider = ScriptedProvider(calling(call("recall")), "End.")
    result = await Agent(provider, tools=[recall]).run("Hi")

    assert results(result) == ["2"]
    assert result.messages[0]["content"] == "Hi"


async def test_progress_reaches_the_reader_of_the_stream() -> None:
    provider = ScriptedProvider(calling(call("balance", {"account": "a"})), "End.")
    agent = Agent(provider, tools=[balance], deps=Bank({"a": 1}))
    async with agent.stream("Hi") as events:
        seen = {type(event) async for event in events}

    assert ToolProgress in seen


async def test_the_tools_of_a_sub_agent_find_the_same_dependencies() -> None:
    below = ScriptedProvider(calling(call("balance", {"account": "a"})), "Seven.")
    helper = Agent[Bank, str](below, name="helper", tools=[balance])
    above = ScriptedProvider(calling(call("helper", {"prompt": "a"})), "End.")
    bank = Bank({"a": 7})

    result = await Agent(above, tools=[helper], deps=bank).run("Hi")

    assert results(result) == ["Seven."]
    (context,) = bank.asked
    assert context.session_id != result.session_id


async def test_without_an_agent_the_call_fails_and_says_why() -> None:
    session = build_session(
        calling(call("balance", {"account": "a"})), "End.", tools=[balance]
    )
    async with session:
        await session.execute("Hi")
        messages = await session.coordinator.context.get_messages()

    (content,) = [m["content"] for m in messages if m["role"] == "tool"]
    assert "balance takes a RunContext, which a session of an amplifier.Agent" in str(
        content
    )


async def test_toolsets_are_classes_objects_and_tools() -> None:
    @toolset
    class Notes:
        @tool
        def read(self, title: str) -> str:
            """Read a note."""
            return f"note {title}"

    class Drawer:
        def __init__(self, name: str) -> None:
            self.name = name

        @tool
        def look(self) -> str:
            """Look into it."""
            return self.name

    steps = calling(call("read", {"title": "x"}), call("look"))
    agent = Agent(
        ScriptedProvider(steps, "End."), tools=[Notes, Toolset(Drawer("socks"))]
    )

    assert results(await agent.run("Hi")) == ["note x", "socks"]


async def test_a_context_of_no_run_has_no_messages_and_reports_nowhere() -> None:
    context = RunContext(deps=None, session_id="s")

    context.progress("working")

    assert await context.messages() == ()
