"""What a provider streams: deltas in order, then the whole answer, and nothing left when it is cut short."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeAlias

import anyio

from amplifier.validation.behaviors._cancelling import cancel_when, ends_in_time
from amplifier.validation.behaviors._provider_answers import ask, given, setting_of, talking
from amplifier.validation.behaviors._stage import Stage, open_stage
from amplifier.validation.behaviors.behavior import BehaviorFailed, NotApplicable, Suite, expect, require
from amplifier.validation.behaviors.subject import Case, ProviderSamples, Subject
from amplifier.validation.leftovers import Leftovers, settle
from amplifier_sdk.arguments import read_arguments
from amplifier_sdk.chat import ChatRequest, ChatResponse
from amplifier_sdk.contracts import Provider
from amplifier_sdk.errors import LLMError
from amplifier_sdk.streaming import Delta, TextDelta, ThinkingDelta, ToolCallDelta, TurnFinished

PROVIDER: Final = Suite("provider")

_Items: TypeAlias = AbstractAsyncContextManager[AsyncIterator[Delta | ChatResponse]]


def _stream(provider: Provider) -> Callable[[ChatRequest], _Items]:
    stream: Callable[[ChatRequest], _Items] | None = getattr(provider, "stream", None)
    if stream is None:
        raise NotApplicable("it does not stream")
    return stream


async def _streamed(subject: Subject, case: Case) -> tuple[list[Delta], ChatResponse]:
    """Return the deltas of an answer and the answer itself."""
    async with (
        open_stage(subject, setting_of(case, subject)) as stage,
        _stream(stage.provider)(case.build()) as items,
    ):
        seen = [item async for item in items]
    require(seen, "The stream was empty")
    response = expect(seen[-1], ChatResponse, "The last item of a stream")
    return [item for item in seen[:-1] if not isinstance(item, ChatResponse)], response


@PROVIDER.behavior(fix="Yield the ChatResponse once, as the last item of the stream.")
async def streams_one_whole_answer_at_the_end(subject: Subject) -> None:
    """A stream ends with one ChatResponse, and nothing follows it."""
    case = talking(subject)
    async with (
        open_stage(subject, setting_of(case, subject)) as stage,
        _stream(stage.provider)(case.build()) as items,
    ):
        kinds = [isinstance(item, ChatResponse) async for item in items]
    require(kinds[-1:] == [True] and sum(kinds) == 1, f"Of {len(kinds)} items {sum(kinds)} are whole answers")


@PROVIDER.behavior(fix="Yield TextDelta, ThinkingDelta and ToolCallDelta before the ChatResponse.")
async def streams_deltas(subject: Subject) -> None:
    """What comes before the whole answer are deltas, and of a text there is at least one."""
    deltas, _ = await _streamed(subject, talking(subject))
    require(deltas, "Nothing came before the whole answer")
    for delta in deltas:
        expect(delta, (TextDelta, ThinkingDelta, ToolCallDelta), "A delta")


@PROVIDER.behavior(fix="Build the answer's text from the very deltas that are streamed.")
async def streams_the_text_of_its_answer(subject: Subject) -> None:
    """The streamed pieces of text are the text of the answer."""
    deltas, response = await _streamed(subject, talking(subject))
    text = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    require(text == response.text, f"Streamed was {text!r:.200}, the answer is {response.text!r:.200}")


@PROVIDER.behavior(fix="Build the answer's thinking from the very deltas that are streamed.")
async def streams_the_thinking_of_its_answer(subject: Subject) -> None:
    """The streamed pieces of thinking are the thinking of the answer."""
    deltas, response = await _streamed(subject, given(subject.told(ProviderSamples).thinks, "thinks"))
    thought = response.thinking
    streamed = "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta))
    require(thought and streamed == thought, f"Streamed was {streamed!r:.200}, the answer thinks {thought!r:.200}")


@PROVIDER.behavior(fix="Stream each call's arguments as fragments of the text that the call is read from.")
async def streams_the_calls_of_its_answer(subject: Subject) -> None:
    """The streamed pieces of each call are its name, its id and its arguments."""
    deltas, response = await _streamed(subject, given(subject.told(ProviderSamples).calls, "calls"))
    pieces: dict[str, list[ToolCallDelta]] = {}
    for delta in deltas:
        if isinstance(delta, ToolCallDelta):
            pieces.setdefault(delta.id, []).append(delta)
    for call in response.tool_calls or ():
        parts = pieces.pop(call.id, [])
        require(parts and {part.name for part in parts} == {call.name}, f"Of {call.name!r} was streamed {parts!r:.300}")
        read = read_arguments("".join(part.arguments for part in parts))
        require(read.values == call.arguments, f"Streamed was {read!r:.200}; called with {call.arguments!r:.200}")
    require(not pieces, f"Streamed were calls that the answer does not have: {list(pieces)}")


@PROVIDER.behavior(fix="Count the index up with each content block.")
async def streams_blocks_in_their_order(subject: Subject) -> None:
    """The indexes of deltas never go back."""
    samples = subject.told(ProviderSamples)
    for case in filter(None, (samples.talks, samples.thinks, samples.calls)):
        deltas, _ = await _streamed(subject, case)
        indexes = [delta.index for delta in deltas]
        require(indexes == sorted(indexes), f"The indexes are {indexes}")


@PROVIDER.behavior(fix="Let complete drain the stream: BaseProvider does.")
async def completes_like_it_streams(subject: Subject) -> None:
    """For one request complete and stream give answers of the same kind."""
    samples = subject.told(ProviderSamples)
    for case in filter(None, (samples.talks, samples.calls)):
        _, streamed = await _streamed(subject, case)
        whole = await ask(subject, case)
        kinds = [[type(block).__name__ for block in answer.content] for answer in (whole, streamed)]
        same = kinds[0] == kinds[1] and whole.finish_reason == streamed.finish_reason
        require(
            same, f"complete gives {kinds[0]} ({whole.finish_reason}), stream {kinds[1]} ({streamed.finish_reason})"
        )


@PROVIDER.behavior(fix="Yield pieces as they arrive; the host hands them to whoever reads the turn.")
async def streams_into_a_turn(subject: Subject) -> None:
    """Who reads a turn sees the text of the answer in pieces."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        _stream(stage.provider)
        async with stage.session.stream(case.prompt) as events:
            seen = [event async for event in events]
    text = "".join(event.text for event in seen if isinstance(event, TextDelta))
    require(text == expect(seen[-1], TurnFinished, "The last event").text, f"Seen was {text!r:.300}")


@PROVIDER.behavior(fix="Raise from the stream what complete raises.")
async def fails_alike_when_it_streams(subject: Subject) -> None:
    """When the vendor refuses the stream raises an LLMError that names the provider."""
    case = given(subject.told(ProviderSamples).fails, "fails")
    async with open_stage(subject, setting_of(case, subject)) as stage:
        try:
            async with _stream(stage.provider)(case.build()) as items:
                async for _ in items:
                    pass
        except LLMError as error:
            require(error.provider, f"{type(error).__name__} names no provider: {error}")
            return
    raise BehaviorFailed("The stream of the sample 'fails' raised nothing")


@PROVIDER.behavior(fix="Close the connection in 'finally': leaving the block is the reader's right.", is_timed=True)
async def may_be_left_in_the_middle(subject: Subject) -> None:
    """A stream that is left after its first item is closed, and the next request is answered."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        with ends_in_time("The stream", "its reader had left"):
            async with _stream(stage.provider)(case.build()) as items:
                async for _ in items:
                    break
        response = await stage.provider.complete(case.build())
        require(response.text, f"The answer is {response!r:.300}")


@PROVIDER.behavior(fix="Let the cancellation pass, and close the connection in 'finally'.", is_timed=True)
async def ends_when_its_stream_is_cancelled(subject: Subject) -> None:
    """A stream that is cancelled in the middle ends within two seconds, and the next request is answered."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:
        stream = _stream(stage.provider)

        async def read() -> None:
            async with stream(case.build()) as items:
                async for _ in items:
                    began.set()
                    await anyio.sleep_forever()

        began = anyio.Event()
        await _cancelled(stage, case, read, began)


@PROVIDER.behavior(fix="Let the cancellation pass: never catch it to go on.", is_timed=True)
async def ends_when_its_request_is_cancelled(subject: Subject) -> None:
    """A request that is cancelled as it begins ends within two seconds, and the next one is answered."""
    case = talking(subject)
    async with open_stage(subject, setting_of(case, subject)) as stage:

        async def complete() -> None:
            began.set()
            await stage.provider.complete(case.build())

        began = anyio.Event()
        await _cancelled(stage, case, complete, began)


async def _cancelled(
    stage: Stage, case: Case, work: Callable[[], Coroutine[object, object, None]], began: anyio.Event
) -> None:
    """Run something until it has begun, cancel it, and ask once more."""
    await cancel_when(began.wait, work, "The request")
    response = await stage.provider.complete(case.build())
    require(response.text, f"The answer to the next request is {response!r:.300}")


@PROVIDER.behavior(fix="Let the cancellation pass while the vendor is silent, and end what was started.", is_timed=True)
async def ends_while_the_vendor_is_silent(subject: Subject) -> None:
    """A request that waits for the vendor ends within two seconds when it is cancelled, and leaves nothing."""
    case = given(subject.told(ProviderSamples).waits, "waits")
    async with open_stage(subject, setting_of(case, subject)) as stage:
        before = Leftovers.baseline()
        with ends_in_time("The request", "it was cancelled"), anyio.move_on_after(0.1):
            await stage.provider.complete(case.build())
        left = [thing for thing in await settle(before) if thing.startswith("the task")]
        require(not left, f"Left are {', '.join(left)}")
