"""The subject: a session through the public surface, with a model whose answers are made beforehand."""

from __future__ import annotations

import gc
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from time import process_time
from typing import Final

import anyio

from amplifier import AmplifierSession, ModuleLoader
from amplifier_module_context_simple import SimpleContext
from amplifier_module_loop_basic import BasicLoop
from amplifier_sdk import (
    BaseProvider,
    ChatRequest,
    ChatResponse,
    ContextManager,
    HookResult,
    JSONValue,
    MessageDict,
    ModelInfo,
    ProviderInfo,
    TextBlock,
    TextDelta,
    ToolCall,
    ToolCallBlock,
    provider,
    tool,
)
from amplifier_sdk.events import (
    PROMPT_COMPLETE,
    PROMPT_SUBMIT,
    PROVIDER_REQUEST,
    PROVIDER_RESPONSE,
    TOOL_POST,
    TOOL_PRE,
)
from benchmarks import floor
from benchmarks.floor import PROMPT, new_id

__all__ = [
    "BACKENDS",
    "PLAN",
    "ListJournal",
    "PreparedModel",
    "PreparedStream",
    "Subject",
    "answers",
    "first_turn_sample",
    "new_loader",
    "noop",
    "open_subject",
    "stream_sample",
    "turn_sample",
]

BACKENDS: Final = ("asyncio", "trio")
EVENTS: Final = (
    PROMPT_SUBMIT,
    PROVIDER_REQUEST,
    PROVIDER_RESPONSE,
    TOOL_PRE,
    TOOL_POST,
    PROMPT_COMPLETE,
)
"""What a turn owes to its observers, each of which gets one handler where a case asks for it."""

PLAN: Final[dict[str, object]] = {
    "session": {
        "orchestrator": "loop-basic",
        "context": "context-simple",
        "limits": {"iterations": 1_000_000, "tool_calls": 1_000_000},
    },
    "providers": ["provider-prepared"],
    "tools": ["tool-noop"],
}


@tool
async def noop(x: int, y: str = "") -> str:
    """Return the number as text.

    Args:
        x: the number.
        y: anything.
    """
    return str(x)


@provider
class PreparedModel:
    """A model that gives the answers it was handed, each after `think` seconds, or after one round of the loop."""

    name = "prepared"
    info = ProviderInfo(id="prepared", display_name="Prepared answers")

    def __init__(self) -> None:
        self.answers: Sequence[ChatResponse] = ()
        self.given = 0
        self.think = 0.0
        self.yields = False

    def prepare(self, responses: Sequence[ChatResponse]) -> None:
        """Start over with other answers."""
        self.answers, self.given = responses, 0

    def get_info(self) -> ProviderInfo:
        """Say what this is."""
        return self.info

    async def list_models(self) -> list[ModelInfo]:
        """Offer no model by name."""
        return []

    async def complete(self, request: ChatRequest, /) -> ChatResponse:
        """Give the next answer."""
        if self.think:
            await anyio.sleep(self.think)
        if self.yields:
            await anyio.lowlevel.checkpoint()
        answer = self.answers[self.given]
        self.given += 1
        return answer

    def parse_tool_calls(self, response: ChatResponse, /) -> list[ToolCall]:
        """Return the answer's calls."""
        return list(response.tool_calls or ())


@provider
class PreparedStream(BaseProvider):
    """A model whose one answer comes in `pieces` pieces, each at once."""

    name = "streaming"
    pieces = 0

    async def deltas(
        self, request: ChatRequest
    ) -> AsyncGenerator[TextDelta | ChatResponse, None]:
        """Yield the pieces, then the answer."""
        for _ in range(self.pieces):
            yield TextDelta(text=floor.PIECE)
        whole = TextBlock(text=floor.PIECE * self.pieces)
        yield ChatResponse(content=[whole], finish_reason="stop")


class ListJournal:
    """A journal that keeps its records in memory: what journaling itself costs, without a disk."""

    def __init__(self) -> None:
        self.records: list[object] = []

    async def append(self, record: object, /) -> None:
        """Record a step."""
        self.records.append(record)


class Subject:
    """An open session and the model that speaks in it."""

    def __init__(self, session: AmplifierSession) -> None:
        self.session = session
        model = session.coordinator.get("providers", "prepared")
        context = session.coordinator.get("context")
        if not isinstance(model, PreparedModel) or not isinstance(
            context, SimpleContext
        ):
            raise TypeError("the plan mounts other modules than it names")
        self.model = model
        self.context: ContextManager = context

    def observe(self) -> None:
        """Register one handler that does nothing for each event of a turn."""
        for event in EVENTS:
            self.session.coordinator.hooks.register(str(event), _observe, decides=False)

    def remind(self) -> None:
        """Register two handlers that each add a text to every request, as reminders do."""
        remind = partial(_remind, HookResult.inject("Mind the time.", ephemeral=True))
        for _ in range(2):
            self.session.coordinator.hooks.register(
                str(PROVIDER_REQUEST), remind, decides=False
            )

    async def forget(self, messages: Sequence[MessageDict] = ()) -> None:
        """Replace the history."""
        await self.context.set_messages(messages)


async def _observe(event: str, data: dict[str, object]) -> None:
    pass


async def _remind(
    result: HookResult, event: str, data: dict[str, object]
) -> HookResult:
    return result


async def open_subject(context: Mapping[str, object] | None = None) -> Subject:
    """Build a session and mount its modules.

    Args:
        context: the configuration of the context; default its own.
    """
    session = AmplifierSession(
        PLAN if context is None else {**PLAN, "context": {"config": context}},
        new_loader(),
    )
    await session.initialize()
    return Subject(session)


def new_loader(paced: object = None) -> ModuleLoader:
    """Make a loader of the subject's modules, and of a provider `provider-paced`."""
    return ModuleLoader(
        modules={
            "loop-basic": BasicLoop,
            "context-simple": SimpleContext,
            "provider-prepared": PreparedModel,
            "provider-streaming": PreparedStream,
            "tool-noop": noop,
            **({} if paced is None else {"provider-paced": paced}),
        }
    )


def answers(steps: Sequence[int]) -> list[ChatResponse]:
    """Make a turn's answers: one for each step with that many tool calls, and a last one with text."""
    return [
        *map(_asking, steps),
        ChatResponse(content=[TextBlock(text="done")], finish_reason="stop"),
    ]


def _asking(calls: int) -> ChatResponse:
    made = [
        ToolCall(id=new_id(), name="noop", arguments=dict(_ARGUMENTS))
        for _ in range(calls)
    ]
    return ChatResponse(
        content=[
            ToolCallBlock(id=call.id, name=call.name, input=call.arguments)
            for call in made
        ],
        tool_calls=made,
        finish_reason="tool_calls",
    )


_ARGUMENTS: Final[dict[str, JSONValue]] = {"x": 1, "y": "abc"}


def turn_sample(
    steps: Sequence[int],
    *,
    backend: str,
    turns: int = 1,
    observed: bool = False,
    reminded: bool = False,
    history: Sequence[MessageDict] = (),
    context: Mapping[str, object] | None = None,
    settled: bool = True,
    yields: bool = False,
    journaled: bool = False,
) -> Callable[[], float]:
    """Return what measures turns of one warm session: seconds a turn.

    Args:
        steps: how many tool calls each answer of a turn makes.
        backend: where it runs.
        turns: how many turns follow each other in a sample.
        observed: whether each event has a handler.
        reminded: whether handlers add texts to each request.
        history: the messages that the session has before.
        context: the configuration of the context; default its own.
        settled: whether a turn goes before those that are measured.
        yields: whether the model waits once for each answer, as real ones do.
        journaled: whether the steps are recorded, in a list.
    """

    async def sample() -> float:
        subject = await open_subject(context)
        if observed:
            subject.observe()
        if reminded:
            subject.remind()
        subject.model.yields = yields
        if journaled:
            subject.session.coordinator.register_capability(
                "session.journal", ListJournal()
            )
        subject.model.prepare(answers([1, 2]))
        # what is made once a session: schemas, validators
        await subject.session.execute(PROMPT)
        await subject.forget(history)
        if settled:  # the first turn after a history was given looks at all of it
            subject.model.prepare(answers([]))
            await subject.session.execute(PROMPT)
        subject.model.prepare(
            [answer for _ in range(turns) for answer in answers(steps)]
        )
        seconds = await _timed(lambda: subject.session.execute(PROMPT), turns)
        await subject.session.cleanup()
        return seconds

    return lambda: anyio.run(sample, backend=backend)


async def _timed(run: Callable[[], Awaitable[str]], turns: int) -> float:
    gc.collect()
    started = process_time()
    answers = [await run() for _ in range(turns)]
    seconds = (process_time() - started) / turns
    if set(answers) != {"done"}:
        raise RuntimeError(f"a turn answered something else than 'done': {answers}")
    return seconds


def first_turn_sample(*, backend: str, sessions: int = 20) -> Callable[[], float]:
    """Return what measures the first turn of a fresh session, which makes one call: seconds a turn."""

    async def sample() -> float:
        subjects = [await open_subject() for _ in range(sessions)]
        for subject in subjects:
            subject.model.prepare(answers([1]))
        turns = iter(subjects)
        seconds = await _timed(lambda: next(turns).session.execute(PROMPT), sessions)
        for subject in subjects:
            await subject.session.cleanup()
        return seconds

    return lambda: anyio.run(sample, backend=backend)


def stream_sample(pieces: int, *, backend: str, read: bool) -> Callable[[], float]:
    """Return what measures one turn whose answer comes in pieces: seconds a turn.

    Args:
        pieces: how many.
        backend: where it runs.
        read: whether somebody reads the turn's events as they come; else the answer is only awaited.
    """
    plan = {**PLAN, "providers": ["provider-streaming"]}

    async def sample() -> float:
        session = AmplifierSession(plan, new_loader())
        await session.initialize()
        model = session.coordinator.get("providers", "streaming")
        if not isinstance(model, PreparedStream):
            raise TypeError("the plan mounts another model than it names")
        run = _read if read else _await
        await run(session)
        model.pieces = pieces
        gc.collect()
        started = process_time()
        text = await run(session)
        seconds = process_time() - started
        if text != floor.PIECE * pieces:
            raise RuntimeError(f"{len(text)} characters came of {pieces} pieces")
        await session.cleanup()
        return seconds

    return lambda: anyio.run(sample, backend=backend)


async def _read(session: AmplifierSession) -> str:
    async with session.stream(PROMPT) as events:
        return "".join(
            [event.text async for event in events if isinstance(event, TextDelta)]
        )


async def _await(session: AmplifierSession) -> str:
    return await session.execute(PROMPT)
