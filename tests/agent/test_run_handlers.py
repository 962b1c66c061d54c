"""Handlers and middleware of an application find what the run was given."""

from __future__ import annotations

import pytest

from amplifier import Agent, Toolset
from amplifier_sdk import HookResult, RunContext, hook
from amplifier_sdk.errors import ModuleError
from amplifier_sdk.events import PROMPT_SUBMIT, TOOL_PRE, PromptSubmit, ToolPre
from amplifier_sdk.handlers import on, register_handlers
from amplifier_sdk.middleware import OutputAttempt, Proceed, ToolRun, around
from amplifier_sdk.results import ToolResult
from tests.doubles import ScriptedProvider, Worker, build_session, call, calling


@on(TOOL_PRE)
async def deny(event: str, data: ToolPre, ctx: RunContext[str]) -> HookResult:
    return HookResult.deny(f"{ctx.deps} may not {data['tool_name']} in {ctx.call_id}")


@hook
class Denying:
    @on(TOOL_PRE)
    async def deny(self, event: str, data: ToolPre, ctx: RunContext[str]) -> HookResult:
        return await deny(event, data, ctx)


class Guard:
    @on(TOOL_PRE)
    def deny(self, event: str, data: ToolPre, ctx: RunContext[str]) -> HookResult:
        return HookResult.deny(
            f"{ctx.deps} may not {data['tool_name']} in {ctx.call_id}"
        )


@pytest.mark.parametrize("handler", [deny, Denying, Guard()], ids=["f", "class", "o"])
async def test_a_handler_finds_what_the_run_was_given(handler: object) -> None:
    script = calling(call("work", id="one")), "End."
    agent = Agent(
        ScriptedProvider(*script),
        tools=[Toolset(Worker())],
        hooks=[handler],
        deps="Ada",
    )
    result = await agent.run("Hi", deps="Bob")

    (content,) = [m["content"] for m in result.messages if m["role"] == "tool"]
    assert "Bob may not work in one" in str(content)


async def test_the_handlers_of_a_sub_agents_session_see_that_session() -> None:
    seen: list[RunContext[str]] = []

    @on(PROMPT_SUBMIT)
    def look(event: str, data: PromptSubmit, ctx: RunContext[str]) -> None:
        seen.append(ctx)

    helper = Agent[str, str](ScriptedProvider("Seven."), name="helper", hooks=[look])
    above = ScriptedProvider(calling(call("helper", {"prompt": "a"})), "End.")
    result = await Agent(above, tools=[helper], deps="Ada").run("Hi")

    assert [ctx.deps for ctx in seen] == ["Ada"]
    assert seen[0].session_id.startswith(f"{result.session_id}-")


async def test_middleware_finds_what_the_run_was_given() -> None:
    seen: list[tuple[str, str, int]] = []

    class Looking:
        @around("tool")
        async def tool(
            self,
            made: ToolRun,
            proceed: Proceed[ToolRun, ToolResult],
            ctx: RunContext[str],
        ) -> ToolResult:
            seen.append((ctx.deps, ctx.call_id, ctx.attempt))
            return await proceed(made)

    @around("output")
    async def output(
        made: OutputAttempt,
        proceed: Proceed[OutputAttempt, object],
        ctx: RunContext[str],
    ) -> object:
        seen.append((ctx.deps, ctx.call_id, ctx.attempt))
        return await proceed(made)

    script = calling(call("work", id="one")), "no", '{"value": 1}'
    agent = Agent(
        ScriptedProvider(*script),
        tools=[Toolset(Worker())],
        hooks=[Looking(), output],
        deps="Ada",
        output=int,
    )

    assert (await agent.run("Hi")).output == 1
    assert seen == [("Ada", "one", 1), ("Ada", "", 1), ("Ada", "", 2)]


async def test_without_an_agent_the_session_does_not_begin() -> None:
    with pytest.raises(ModuleError, match="deny takes a RunContext, which a session"):
        await build_session("x", hooks=[Denying]).initialize()


async def test_hooks_alone_have_no_context_to_give() -> None:
    session = build_session("x")

    with pytest.raises(Exception, match="deny takes a RunContext"):
        list(register_handlers(session.coordinator.hooks, deny))


async def test_another_third_parameter_is_the_handlers_own() -> None:
    steps: list[object] = []

    @on(PROMPT_SUBMIT)
    def counting(event: str, data: PromptSubmit, step: int = 1) -> None:
        steps.append(step)

    @on(PROMPT_SUBMIT)
    def untyped(event: str, data: PromptSubmit, step=2) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        steps.append(step)

    await Agent(ScriptedProvider("x"), hooks=[counting, untyped]).run("Hi")

    assert steps == [1, 2]
