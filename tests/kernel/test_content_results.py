"""Results with content blocks: what the model gets of them, whatever handlers do."""

from __future__ import annotations

import base64

import anyio
import pytest

from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.content import ContentBlock, TextBlock
from amplifier_sdk.errors import TurnCancelled
from amplifier_sdk.events import PROVIDER_REQUEST, TOOL_POST
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.media import image_block
from amplifier_sdk.results import HookResult, ToolResult
from tests.doubles import (
    Blocking,
    MemoryContext,
    ScriptedProvider,
    Sentry,
    Worker,
    build_session,
    call,
    calling,
    mounted_context,
)

PNG = image_block(
    "image/png", base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
)
SHOWN = ToolResult(
    output={"page": "secret"}, content=[TextBlock(text="page: secret"), PNG]
)


async def seen(
    *changes: HookResult, event: str = TOOL_POST, result: ToolResult = SHOWN
) -> tuple[ContentBlock, ...]:
    """Let a model call a tool with a handler that answers an event; return what it reads of the result."""

    async def function(_: JSONObject) -> ToolResult:
        return result

    provider = ScriptedProvider(calling(call("look")), "end")
    with anyio.fail_after(5):
        async with build_session(
            provider=provider, tools=[Worker("look", function)]
        ) as session:
            session.coordinator.hooks.register(
                event, Sentry([*changes]), name="handler"
            )
            assert await session.execute("go") == "end"
    request: ChatRequest = provider.requests[1]
    (message,) = (message for message in request.messages if message.role == "tool")
    return message.blocks


async def test_the_model_sees_the_images_of_a_result() -> None:
    assert await seen() == (TextBlock(text="page: secret"), PNG)


async def test_handler_changing_only_text_changes_models_view() -> None:
    change = HookResult.modify(
        {"result": ToolResult(output="[withheld]", content=SHOWN.content)}
    )

    assert await seen(change) == (TextBlock(text="[withheld]"), PNG)


async def test_handler_changing_only_error_changes_models_view() -> None:
    failed = ToolResult(
        success=False,
        error={"message": "secret"},
        content=[TextBlock(text="the secret page"), PNG],
    )
    change = HookResult.modify({"result": ToolResult.failure("[withheld]")})
    saved = HookResult.modify(
        {
            "result": ToolResult(
                success=False, error={"message": "[withheld]"}, content=failed.content
            )
        }
    )

    assert await seen(change, result=failed) == (TextBlock(text="Error: [withheld]"),)
    assert await seen(saved, result=failed) == (
        TextBlock(text="Error: [withheld]"),
        PNG,
    )


async def test_a_handler_may_change_the_content() -> None:
    change = HookResult.modify(
        {"result": ToolResult(output="x", content=[TextBlock(text="no pictures")])}
    )

    assert await seen(change) == (TextBlock(text="no pictures"),)


async def test_a_withheld_result_has_no_images() -> None:
    (block,) = await seen(HookResult.deny("private"))

    assert isinstance(block, TextBlock)
    assert "Withheld by handler: private" in block.text


async def test_a_text_that_is_added_to_the_result_leaves_its_images() -> None:
    added = HookResult.inject(
        "Mind the time.", ephemeral=True, append_to_last_tool_result=True
    )

    blocks = await seen(HookResult.proceed(), added, event=PROVIDER_REQUEST)

    assert blocks == (
        TextBlock(text="page: secret"),
        PNG,
        TextBlock(text="\n\nMind the time."),
    )


async def test_a_turn_that_ends_early_keeps_the_images_it_has() -> None:
    async def function(_: JSONObject) -> ToolResult:
        return SHOWN

    slow = Blocking()
    with anyio.fail_after(5):
        async with (
            build_session(
                calling(call("look"), call("block")),
                tools=[Worker("look", function), slow],
            ) as session,
            anyio.create_task_group() as turn,
        ):

            async def stop() -> None:
                await slow.started.wait()
                await anyio.wait_all_tasks_blocked()
                await session.coordinator.request_cancel(immediate=True)

            turn.start_soon(stop)
            with pytest.raises(TurnCancelled):
                await session.execute("go")
        context = mounted_context(session.coordinator)
    assert isinstance(context, MemoryContext)
    stored = {
        str(message.get("name")): message["content"]
        for message in context.messages
        if message["role"] == "tool"
    }
    assert stored["look"] == [
        {"type": "text", "text": "page: secret"},
        {"type": "image", "source": dict(PNG.source)},
    ]
