"""Providers that break what holds of providers: each entry fails at least the behaviour it stands under."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager
from typing import Final, TypeAlias

import anyio
import anyio.lowlevel
import attrs

from amplifier.validation.behaviors import Case, ProviderSamples, Subject
from amplifier_sdk import (
    ChatRequest,
    ChatResponse,
    Coordinator,
    ModelInfo,
    ProviderInfo,
)
from amplifier_sdk.chat import ConfigField, ToolCall, Usage
from amplifier_sdk.content import TextBlock, ThinkingBlock
from amplifier_sdk.errors import LLMError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message, MessageDict
from amplifier_sdk.streaming import Delta, TextDelta, ThinkingDelta, ToolCallDelta
from tests.validation.behaviors.sound import PROVIDER_SAMPLES, Parrot, mounting

__all__ = ["FAULTY"]

Items: TypeAlias = AsyncGenerator[Delta | ChatResponse, None]
Change: TypeAlias = Callable[[ChatResponse], ChatResponse]

INFO: Final = Parrot().get_info()
MODEL: Final = ModelInfo(
    id="parrot-1", display_name="Parrot", context_window=9_000, max_output_tokens=1_000
)


def _made(
    build: Callable[[], object], samples: ProviderSamples = PROVIDER_SAMPLES
) -> Subject:
    return Subject(kind="provider", module=mounting(build), samples=samples)


def _saying(**changes: object) -> Subject:
    """Make a sound provider that says other things of itself."""

    class Saying(Parrot):
        def get_info(self) -> ProviderInfo:
            return attrs.evolve(INFO, **changes)  # type: ignore[arg-type]  # some are wrong on purpose

    return _made(Saying)


def _listing(*models: object) -> Subject:
    class Listing(Parrot):
        async def list_models(self) -> list[ModelInfo]:
            return list(models)  # type: ignore[arg-type]

    return _made(Listing)


def _answering(change: Change) -> Subject:
    """Make a sound provider whose whole answers are changed."""

    class Answering(Parrot):
        async def deltas(self, request: ChatRequest) -> Items:
            async with aclosing(super().deltas(request)) as items:
                async for item in items:
                    yield change(item) if isinstance(item, ChatResponse) else item

    return _made(Answering)


def _changing(**changes: object) -> Subject:
    return _answering(lambda response: attrs.evolve(response, **changes))  # type: ignore[arg-type]  # likewise


def _streaming(
    generate: Callable[[ChatRequest, Items], Items],
    samples: ProviderSamples = PROVIDER_SAMPLES,
) -> Subject:
    """Make a provider that streams something else than the sound one."""

    class Streaming(Parrot):
        async def deltas(self, request: ChatRequest) -> Items:
            async with (
                aclosing(super().deltas(request)) as items,
                aclosing(generate(request, items)) as others,
            ):
                async for item in others:
                    yield item

    return _made(Streaming, samples)


def _refusing(
    condition: Callable[[ChatRequest], object], error: type[Exception] = TypeError
) -> Subject:
    """Make a provider that raises on some requests."""

    async def generate(request: ChatRequest, items: Items) -> Items:
        if condition(request):
            raise error("cannot read that")
        async for item in items:
            yield item

    return _streaming(generate)


class AsyncInfo(Parrot):
    """Says what it is when it is awaited."""

    async def get_info(self) -> ProviderInfo:  # type: ignore[override]
        return INFO


class Fickle(Parrot):
    """Says something else each time."""

    def __init__(self) -> None:
        self.asked = 0

    def get_info(self) -> ProviderInfo:
        self.asked += 1
        return attrs.evolve(INFO, display_name=f"Parrot {self.asked}")

    async def list_models(self) -> list[ModelInfo]:
        self.asked += 1
        return [attrs.evolve(MODEL, id=f"parrot-{self.asked}")]


class Eager(Parrot):
    """Reads calls from every answer."""

    priority = "first"

    def parse_tool_calls(self, response: ChatResponse, /) -> list[ToolCall]:
        return [ToolCall(id="call_0", name="work")]


async def _mount_elsewhere(
    coordinator: Coordinator, config: Mapping[str, object]
) -> None:
    await coordinator.mount("providers", Parrot(), name="cockatoo")


def _mutate(request: ChatRequest) -> bool:
    if isinstance(request.metadata, dict):
        request.metadata["seen"] = True
    return False


def _last(request: ChatRequest) -> str:
    return request.messages[-1].text


def _blocks_of(request: ChatRequest, role: str | None = None) -> set[str]:
    messages = (message for message in request.messages if role in (None, message.role))
    return {block.type for message in messages for block in message.blocks}


def _second_time(
    step: Callable[[ChatRequest], object],
) -> Callable[[ChatRequest], object]:
    """Return a condition that holds from the second request on, in all sessions."""
    asked: list[ChatRequest] = []

    def condition(request: ChatRequest) -> object:
        asked.append(request)
        return len(asked) > 1 and step(request)

    return condition


def _crowded() -> Subject:
    inside: list[ChatRequest] = []

    async def generate(request: ChatRequest, items: Items) -> Items:
        inside.append(request)
        try:
            async for item in items:
                await anyio.lowlevel.checkpoint()
                if len(inside) > 1:
                    raise RuntimeError("too crowded")
                yield item
        finally:
            inside.remove(request)

    return _streaming(generate)


async def _more_after_the_end(request: ChatRequest, items: Items) -> Items:
    async for item in items:
        yield item
    yield TextDelta(text="and then")


async def _nothing_before(request: ChatRequest, items: Items) -> Items:
    async for item in items:
        if isinstance(item, ChatResponse):
            yield item


async def _other_pieces(request: ChatRequest, items: Items) -> Items:
    async for item in items:
        match item:
            case TextDelta():
                yield TextDelta(text=item.text.upper(), index=item.index)
            case ThinkingDelta():
                yield ThinkingDelta(text="Something else.")
            case ToolCallDelta():
                yield attrs.evolve(item, arguments="{}")
            case _:
                yield item


async def _back_and_forth(request: ChatRequest, items: Items) -> Items:
    index = 3
    async for item in items:
        index -= 1
        yield (
            item
            if isinstance(item, (ChatResponse, ToolCallDelta))
            else attrs.evolve(item, index=index)
        )


async def _under_a_shield(request: ChatRequest, items: Items) -> Items:
    with anyio.CancelScope(shield=True):
        await anyio.sleep(0.3)
    async for item in items:
        yield item


class Lingering(Parrot):
    """Takes its time to close a stream, and lets nobody hurry it."""

    @asynccontextmanager
    async def stream(
        self, request: ChatRequest, /
    ) -> AsyncIterator[AsyncIterator[Delta | ChatResponse]]:
        async with super().stream(request) as items:
            try:
                yield items
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(0.3)


class TwoMinds(Parrot):
    """Completes otherwise than it streams."""

    async def complete(
        self,
        request: ChatRequest | Sequence[Message] | Sequence[MessageDict],
        /,
        **options: JSONValue,
    ) -> ChatResponse:
        return ChatResponse(
            content=[ThinkingBlock(thinking="Hm."), TextBlock(text="No.")],
            finish_reason="length",
        )


class Deaf(Parrot):
    """Hears of no cancel."""

    async def complete(
        self,
        request: ChatRequest | Sequence[Message] | Sequence[MessageDict],
        /,
        **options: JSONValue,
    ) -> ChatResponse:
        assert isinstance(request, ChatRequest)
        if _last(request) != "wait":
            return await super().complete(request)
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.3)
        return ChatResponse()


class Nameless(Parrot):
    """Raises errors that say nothing."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def deltas(self, request: ChatRequest) -> Items:
        if _last(request) == "fail":
            raise self.error
        async with aclosing(super().deltas(request)) as items:
            async for item in items:
                yield item


class Sulking(Parrot):
    """Answers nothing any more once it failed."""

    def __init__(self) -> None:
        self.failed = False

    async def deltas(self, request: ChatRequest) -> Items:
        if self.failed:
            raise LLMError("Never again", provider="parrot")
        self.failed = _last(request) == "fail"
        async with aclosing(super().deltas(request)) as items:
            async for item in items:
                yield item


class Careless(Parrot):
    """Runs what it could not read, and whatever was cut off."""

    def calls(self, wanted: str) -> list[ToolCall]:
        return [ToolCall(id="call_1", name="work")]


KEY: Final = "sk-not-for-everybody"


async def _mount_with_key(
    coordinator: Coordinator, config: Mapping[str, object]
) -> object:
    return Nameless(
        LLMError(f"The key {config['api_key']} is wrong", provider="parrot")
    )


def _calling(*calls: ToolCall) -> Subject:
    return _answering(
        lambda response: (
            attrs.evolve(response, tool_calls=calls)
            if response.tool_calls
            else response
        )
    )


CALL: Final = ToolCall(id="call_1", name="work", arguments={"text": "a"})
FIELD: Final = ConfigField(
    id="model", display_name="Model", prompt="Which model?", field_type="choice"
)

FAULTY: Final[Mapping[str, Subject]] = {
    "provider.says-what-it-is": _made(AsyncInfo),
    "provider.names-itself": _saying(display_name=" "),
    "provider.is-mounted-under-its-name": Subject(
        kind="provider", module=_mount_elsewhere
    ),
    "provider.says-the-same-each-time": _made(Fickle),
    "provider.can-be-shown-as-json": _saying(defaults={"model": object()}),
    "provider.names-its-window": _saying(defaults={}),
    "provider.names-its-default-model": _saying(defaults={"context_window": 9_000}),
    "provider.streams-if-it-says-so": _saying(capabilities=()),
    "provider.names-its-credentials": _saying(credential_env_vars=("sk-123456",)),
    "provider.asks-for-each-setting-once": _saying(config_fields=(FIELD,)),
    "provider.has-a-number-as-priority": _made(Eager),
    "provider.lists-models": _listing("parrot-1"),
    "provider.lists-each-model-once": _listing(MODEL, MODEL),
    "provider.lists-models-with-windows": _listing(
        attrs.evolve(MODEL, max_output_tokens=10_000)
    ),
    "provider.lists-its-default-model": _listing(attrs.evolve(MODEL, id="cockatoo-1")),
    "provider.lists-the-same-models-twice": _made(Fickle),
    "provider.reads-no-calls-from-a-plain-answer": _made(Eager),
    "provider.reads-the-calls-of-an-answer": _made(Eager),
    "provider.answers-with-text": _changing(content=()),
    "provider.says-why-it-stopped": _changing(finish_reason="end_turn"),
    "provider.ends-a-plain-answer-as-whole": _changing(finish_reason="length"),
    "provider.counts-what-it-used": _changing(usage=None),
    "provider.adds-up-what-it-used": _changing(
        usage=Usage(input_tokens=3, output_tokens=3, total_tokens=3)
    ),
    "provider.answers-with-plain-data": _changing(metadata={"raw": object()}),
    "provider.answers-with-what-can-be-stored": _changing(metadata={"raw": object()}),
    "provider.leaves-the-request-alone": _refusing(_mutate),
    "provider.reads-a-history-with-tool-calls": _refusing(
        lambda request: "tool_call" in _blocks_of(request), LLMError
    ),
    "provider.reads-developer-messages": _refusing(
        lambda r: "developer" in {m.role for m in r.messages}, LLMError
    ),
    "provider.survives-unknown-blocks": _refusing(
        lambda request: "other_vendor" in _blocks_of(request)
    ),
    "provider.survives-images": _refusing(
        lambda request: "image" in _blocks_of(request)
    ),
    "provider.survives-images-in-results": _refusing(
        lambda request: "image" in _blocks_of(request, "tool")
    ),
    "provider.survives-empty-messages": _refusing(
        lambda request: not all(m.content for m in request.messages)
    ),
    "provider.survives-broken-characters": _refusing(
        lambda r: [m.text.encode() for m in r.messages] and False
    ),
    "provider.reads-a-request-with-an-empty-list-of-tools": _refusing(
        lambda request: request.tools == []
    ),
    "provider.reads-messages-from-a-view": _refusing(
        lambda request: not isinstance(request.messages, list)
    ),
    "provider.answers-again": _refusing(_second_time(lambda request: True)),
    "provider.answers-several-at-once": _crowded(),
    "provider.serves-turns": _refusing(lambda request: len(request.messages) > 1),
    "provider.calls-tools": _changing(finish_reason="stop"),
    "provider.gives-every-call-an-id": _calling(CALL, CALL),
    "provider.calls-what-is-offered": _calling(attrs.evolve(CALL, name="play")),
    "provider.reads-the-arguments-of-calls": _calling(
        attrs.evolve(CALL, arguments="{}")  # type: ignore[arg-type]
    ),
    "provider.reads-its-own-calls": _made(Eager),
    "provider.keeps-unreadable-arguments": _made(Careless),
    "provider.says-that-an-answer-is-cut": _changing(finish_reason="tool_calls"),
    "provider.lets-nothing-of-a-cut-answer-run": _changing(finish_reason="tool_calls"),
    "provider.fails-with-an-llm-error": _made(lambda: Nameless(OSError("no network"))),
    "provider.names-itself-in-errors": _made(lambda: Nameless(LLMError("no network"))),
    "provider.says-what-went-wrong": _made(
        lambda: Nameless(LLMError(" ", provider="parrot"))
    ),
    "provider.hides-secrets-from-its-errors": Subject(
        kind="provider",
        module=_mount_with_key,
        config={"api_key": KEY},
        samples=PROVIDER_SAMPLES,
    ),
    "provider.answers-after-an-error": _made(Sulking),
    "provider.streams-one-whole-answer-at-the-end": _streaming(_more_after_the_end),
    "provider.streams-deltas": _streaming(_nothing_before),
    "provider.streams-the-text-of-its-answer": _streaming(_other_pieces),
    "provider.streams-the-thinking-of-its-answer": _streaming(_other_pieces),
    "provider.streams-the-calls-of-its-answer": _streaming(_other_pieces),
    "provider.streams-blocks-in-their-order": _streaming(_back_and_forth),
    "provider.completes-like-it-streams": _made(TwoMinds),
    "provider.streams-into-a-turn": _streaming(_other_pieces),
    "provider.fails-alike-when-it-streams": _made(
        lambda: Nameless(LLMError("no network"))
    ),
    "provider.may-be-left-in-the-middle": _made(Lingering),
    "provider.ends-when-its-stream-is-cancelled": _made(Lingering),
    "provider.ends-when-its-request-is-cancelled": _streaming(_under_a_shield),
    "provider.ends-while-the-vendor-is-silent": _made(
        Deaf, ProviderSamples(waits=Case(prompt="wait"))
    ),
}
