"""Prompts that show media: what handlers see of them, and what the model gets."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Final

import anyio
import pytest

from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.content import (
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    block_to_dict,
)
from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool
from amplifier_sdk.errors import MediaError
from amplifier_sdk.events import PROMPT_SUBMIT
from amplifier_sdk.media import Prompt, image_block
from amplifier_sdk.messages import Message
from amplifier_sdk.results import HookResult
from tests.doubles import (
    EchoLoop,
    PlainLoop,
    ScriptedProvider,
    Sentry,
    build_session,
    mounted_context,
)

DATA: Final = b"\x89PNG\r\n\x1a\n" + bytes(20)
PNG: Final = image_block("image/png", base64.b64encode(DATA).decode())
NOTES: Final = DocumentBlock(
    source={
        "type": "text",
        "media_type": "text/plain",
        "data": "key: secret",
        "name": "n",
    }
)


async def by_hand(
    prompt: str,
    context: ContextManager,
    providers: dict[str, Provider],
    tools: dict[str, Tool],
    hooks: Hooks,
) -> str:
    """Answer as a loop does that knows of no media."""
    emission = await hooks.emit(PROMPT_SUBMIT, {"prompt": prompt})
    if emission.denied:
        return "denied"
    await context.add_message({"role": "user", "content": str(emission.data["prompt"])})
    (provider,) = providers.values()
    answer = await provider.complete(
        ChatRequest(
            messages=[
                Message.from_dict(message) for message in await context.get_messages()
            ]
        )
    )
    return answer.text


LOOPS: Final[Mapping[str, Callable[[], object]]] = {
    "the SDK's": EchoLoop,
    "by hand": lambda: PlainLoop(by_hand),
}


async def seen(
    loop: str, prompt: Prompt, *changes: HookResult
) -> tuple[tuple[ContentBlock, ...], dict[str, object]]:
    """Ask with a handler of `prompt:submit`; return what the model and the handler see."""
    provider, handler = ScriptedProvider("end"), Sentry([*changes])
    with anyio.fail_after(5):
        async with build_session(provider=provider, loop=LOOPS[loop]()) as session:
            session.coordinator.hooks.register(PROMPT_SUBMIT, handler, name="handler")
            await session.execute(prompt)
    if not provider.requests:
        return (), handler.seen[0]
    (message,) = provider.requests[0].messages
    return message.blocks, handler.seen[0]


@pytest.mark.parametrize("loop", LOOPS)
async def test_model_gets_texts_and_media_in_their_order(loop: str) -> None:
    blocks, data = await seen(loop, ["Compare", PNG, "with", NOTES])

    assert blocks == (
        TextBlock(text="Compare"),
        PNG,
        TextBlock(text="with"),
        NOTES,
    )
    assert data["prompt"] == "Compare\nwith"


@pytest.mark.parametrize("loop", LOOPS)
async def test_handlers_see_type_size_and_digest_but_no_data(loop: str) -> None:
    _, data = await seen(loop, ["Look", PNG, NOTES])

    assert data["media"] == (
        {
            "type": "image",
            "media_type": "image/png",
            "bytes": len(DATA),
            "sha256": sha256(DATA).hexdigest(),
        },
        {
            "type": "document",
            "media_type": "text/plain",
            "name": "n",
            "text": "key: secret",
            "bytes": 11,
            "sha256": sha256(b"key: secret").hexdigest(),
        },
    )


@pytest.mark.parametrize("loop", LOOPS)
async def test_changed_texts_are_what_the_model_reads(loop: str) -> None:
    change = HookResult.modify(
        {"prompt": "Look!", "media": [{}, {"text": "key: [redacted]"}]}
    )

    blocks, _ = await seen(loop, [PNG, "Look", NOTES], change)

    shown = DocumentBlock(source={**NOTES.source, "data": "key: [redacted]"})
    assert blocks == (TextBlock(text="Look!"), PNG, shown)


async def test_what_a_loop_stores_besides_the_prompt_stays_as_it_is() -> None:
    async def run(
        prompt: str,
        context: ContextManager,
        providers: dict[str, Provider],
        tools: dict[str, Tool],
        hooks: Hooks,
    ) -> str:
        await context.add_message({"role": "developer", "content": "Be brief."})
        await context.add_message({"role": "user", "content": prompt})
        await context.add_message({"role": "user", "content": "Go on."})
        return "end"

    async with build_session(loop=PlainLoop(run)) as session:
        await session.execute([PNG, "Look"])
        messages = mounted_context(session.coordinator).messages

    assert [message["content"] for message in messages] == [
        "Be brief.",
        [block_to_dict(PNG), {"type": "text", "text": "Look"}],
        "Go on.",
    ]


@pytest.mark.parametrize("loop", LOOPS)
async def test_a_denied_prompt_shows_nothing(loop: str) -> None:
    blocks, _ = await seen(loop, ["Look", PNG], HookResult.deny("no images"))

    assert blocks == ()


@pytest.mark.parametrize("loop", LOOPS)
async def test_a_handler_that_drops_media_ends_the_turn(loop: str) -> None:
    with pytest.raises(MediaError, match="left 0 of 1 media"):
        await seen(loop, ["Look", PNG], HookResult.modify({"media": []}))


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        (["Look", 3], "Part 2 of the prompt is int; expected a text, Image"),
        (
            [ImageBlock(source={"data": "AAAA"})],
            "Part 1 of the prompt: an image is not shown: it is not PNG",
        ),
        (
            [DocumentBlock(source=PNG.source)],
            "a document is not shown: image/png is not PDF or text",
        ),
    ],
    ids=["no part", "no image", "no document"],
)
async def test_what_is_no_prompt_is_refused_before_a_turn(
    prompt: Prompt, problem: str
) -> None:
    provider = ScriptedProvider("end")
    async with build_session(provider=provider) as session:
        with pytest.raises((TypeError, MediaError), match=problem):
            await session.execute(prompt)
        assert await session.execute("go") == "end"  # the session is free again


async def test_stream_takes_the_same_prompts() -> None:
    provider = ScriptedProvider("end")
    async with (
        build_session(provider=provider) as session,
        session.stream(["Look", PNG]) as events,
    ):
        async for _ in events:
            pass

    (message,) = provider.requests[0].messages
    assert message.blocks == (TextBlock(text="Look"), PNG)
