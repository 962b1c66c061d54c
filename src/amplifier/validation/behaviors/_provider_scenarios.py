"""What is asked of a provider, and what came of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TypeAlias

import attrs

from amplifier.validation.behaviors._doubles import RecordingTool
from amplifier.validation.behaviors.behavior import (
    BehaviorFailed,
    NotApplicable,
    expect,
    require,
    scenario,
    skip_unless,
)
from amplifier.validation.behaviors.harness import Harness, SessionSetup, open_harness
from amplifier.validation.behaviors.subject import Case, ProviderSamples, Subject
from amplifier_sdk.chat import ChatRequest, ChatResponse, ModelInfo, ProviderInfo
from amplifier_sdk.contracts import Provider
from amplifier_sdk.errors import LLMError
from amplifier_sdk.messages import Message
from amplifier_sdk.streaming import Delta

_Items: TypeAlias = AbstractAsyncContextManager[AsyncIterator[Delta | ChatResponse]]


@attrs.frozen(kw_only=True)
class Asked:
    """A provider in an open session, and the case that it is asked about."""

    harness: Harness
    case: Case

    @property
    def provider(self) -> Provider:
        return self.harness.provider

    @property
    def stream(self) -> Callable[[ChatRequest], _Items]:
        stream: Callable[[ChatRequest], _Items] | None = getattr(
            self.provider, "stream", None
        )
        # skipped and not failed: whether it must stream is a behaviour of its own
        if stream is None:
            raise NotApplicable("it does not stream")
        return stream

    async def complete(self, request: ChatRequest | None = None) -> ChatResponse:
        response = await self.provider.complete(
            self.case.build() if request is None else request
        )
        return expect(response, ChatResponse, "What complete returns")

    async def require_answer(self) -> None:
        response = await self.complete()
        require(response.text, f"The answer is {response!r:.300}")


@attrs.frozen(kw_only=True)
class Streamed:
    """What a stream yielded, and what complete returns for the same request."""

    deltas: list[Delta]
    response: ChatResponse
    count: int


def case_of(subject: Subject, name: str) -> Case:
    case: Case | None = getattr(subject.samples_as(ProviderSamples), name)
    if case is None:
        raise NotApplicable(f"no sample {name!r} is given")
    return case


def setup_of(case: Case, subject: Subject) -> SessionSetup:
    return SessionSetup(config=subject.config if case.config is None else case.config)


@asynccontextmanager
async def asked(subject: Subject, name: str) -> AsyncIterator[Asked]:
    """Open a session, and hand out the case of that name in it."""
    found = case_of(subject, name)
    async with open_harness(subject, setup_of(found, subject)) as harness:
        yield Asked(harness=harness, case=found)


@scenario
async def case(subject: Subject, name: str = "talks") -> AsyncIterator[tuple[Asked]]:
    async with asked(subject, name) as opened:
        yield (opened,)


async def information(
    subject: Subject,
) -> AsyncIterator[tuple[tuple[Provider, ProviderInfo]]]:
    async with open_harness(subject) as harness:
        info = expect(
            harness.provider.get_info(), ProviderInfo, "What get_info returns"
        )
        yield ((harness.provider, info),)


async def models(
    subject: Subject,
) -> AsyncIterator[tuple[tuple[Provider, list[ModelInfo]]]]:
    async with open_harness(subject) as harness:
        listed = expect(
            await harness.provider.list_models(), list, "What list_models returns"
        )
        skip_unless(listed, "it lists no models")
        found = [expect(each, ModelInfo, "An item of list_models") for each in listed]
        yield ((harness.provider, found),)


@scenario
async def answer(
    subject: Subject, name: str = "talks"
) -> AsyncIterator[tuple[ChatResponse]]:
    async with asked(subject, name) as opened:
        yield (await opened.complete(),)


@scenario
async def history(subject: Subject, *messages: Message) -> AsyncIterator[tuple[object]]:
    """Ask with a history; a provider that cannot take it raises an LLMError."""
    async with asked(subject, "talks") as opened:
        request = opened.case.build(*messages)
        yield (await answer_or_refusal(opened.provider, request),)


async def answer_or_refusal(provider: Provider, request: ChatRequest) -> object:
    """Ask; return the answer, or the LLMError that refuses it."""
    try:
        return await provider.complete(request)
    except LLMError as error:
        return error


async def error(subject: Subject) -> AsyncIterator[tuple[LLMError]]:
    async with asked(subject, "fails") as opened:
        try:
            response = await opened.provider.complete(opened.case.build())
        except Exception as raised:  # foreign code: what it raises is the finding
            # yielded while the session is open, since its expectations ask once more
            yield (expect(raised, LLMError, "What complete raises"),)
            return
    raise BehaviorFailed(f"Instead of an error there was the answer {response!r:.300}")


@scenario
async def streams(subject: Subject, *names: str) -> AsyncIterator[Iterable[Streamed]]:
    """Read streamed answers; a single case must be given, of several those that are."""
    samples = subject.samples_as(ProviderSamples)
    # of a single case its absence is the reason to skip
    given = [
        name for name in names if len(names) == 1 or getattr(samples, name) is not None
    ]
    yield [await _streamed(subject, name) for name in given]


async def _streamed(subject: Subject, name: str) -> Streamed:
    async with (
        asked(subject, name) as opened,
        opened.stream(opened.case.build()) as items,
    ):
        seen = [item async for item in items]
    require(seen, "The stream was empty")
    return Streamed(
        deltas=[item for item in seen[:-1] if not isinstance(item, ChatResponse)],
        response=expect(seen[-1], ChatResponse, "The last item of a stream"),
        count=sum(isinstance(item, ChatResponse) for item in seen),
    )


async def completed_and_streamed(
    subject: Subject,
) -> AsyncIterator[Iterable[tuple[ChatResponse, ChatResponse]]]:
    seen = []
    for name in ("talks", "calls"):
        if getattr(subject.samples_as(ProviderSamples), name) is not None:
            streamed = await _streamed(subject, name)
            async with asked(subject, name) as opened:
                seen.append((await opened.complete(), streamed.response))
    yield seen


async def cut_answer_in_a_turn(subject: Subject) -> AsyncIterator[tuple[ChatResponse]]:
    """Ask through the host for an answer that is cut."""
    case = case_of(subject, "is_cut")
    request = case.build()
    tools = [
        partial(RecordingTool, tool.name, input_schema={"type": "object"})
        for tool in request.tools or ()
    ]
    async with open_harness(
        subject, attrs.evolve(setup_of(case, subject), tools=tuple(tools))
    ) as harness:
        await harness.context.add_message({"role": "user", "content": case.prompt})
        yield (
            await harness.coordinator.host.complete(
                harness.provider,
                lambda *, messages: attrs.evolve(request, messages=messages),
                context=harness.context,
            ),
        )
