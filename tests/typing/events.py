"""What typed events accept and refuse. Checked by mypy and pyright, never run."""

from __future__ import annotations

from typing import assert_type

from amplifier_sdk import Event, HookResult, Hooks, RunContext, on
from amplifier_sdk.events import PROMPT_SUBMIT, TOOL_PRE, PromptSubmit, ToolPre

assert_type(TOOL_PRE, Event[ToolPre])


@on(TOOL_PRE)
async def guard(event: str, data: ToolPre) -> HookResult:
    assert_type(data["tool_name"], str)
    return HookResult.deny(event)


@on(TOOL_PRE, priority=10, decides=True)
def guard_in_a_thread(event: str, data: ToolPre) -> HookResult | None:
    return None


@on(TOOL_PRE)
async def of_a_run(event: str, data: ToolPre, ctx: RunContext[int]) -> HookResult:
    assert_type(ctx.deps, int)
    return HookResult.deny(event)


@on(PROMPT_SUBMIT)  # error: arg-type
async def of_another_event(event: str, data: ToolPre, ctx: RunContext[int]) -> HookResult:
    return HookResult.deny(event)


class Hook:
    @on(TOOL_PRE)
    async def of_a_run(self, event: str, data: ToolPre, ctx: RunContext[int]) -> HookResult:
        return HookResult.deny(event)

    @on(TOOL_PRE)
    async def guard(self, event: str, data: ToolPre) -> HookResult:
        return HookResult.deny(event)

    @on(TOOL_PRE)  # error: arg-type
    async def wrong(self, event: str, data: PromptSubmit) -> HookResult:  # mypy error: misc
        return HookResult.deny(event)


@on(PROMPT_SUBMIT)  # error: arg-type
async def wrong_payload(event: str, data: ToolPre) -> HookResult:
    return HookResult.deny(event)


@on(TOOL_PRE)  # error: type-var
async def wrong_return(event: str, data: ToolPre) -> str:
    return event


@on("my:event")
async def untyped(event: str, data: dict[str, object]) -> HookResult:
    return HookResult.deny(event)


async def register(hooks: Hooks) -> None:
    hooks.register(TOOL_PRE, guard)
    hooks.register(PROMPT_SUBMIT, guard)  # error: arg-type
    hooks.register("my:event", untyped)
    await hooks.emit(TOOL_PRE, ToolPre(tool_name="read", tool_input={}))
    await hooks.emit(TOOL_PRE, ToolPre(tool_nam="read", tool_input={}))  # error: typeddict-item, typeddict-unknown-key
    (await hooks.emit(TOOL_PRE, ToolPre(tool_name="read", tool_input={}))).dennied  # error: attr-defined


def misspelt_key(data: ToolPre) -> object:
    return data["tool_nam"]  # error: typeddict-item
