"""Contexts with a history, the views that they show of it, and sessions that resume each other."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import attrs

from amplifier.validation.behaviors._messages import MESSAGES, exchange
from amplifier.validation.behaviors.behavior import require, scenario, skip_unless
from amplifier.validation.behaviors.harness import Harness, SessionSetup, open_harness
from amplifier.validation.behaviors.subject import Samples, Subject
from amplifier_kit.scripted import ScriptedProvider
from amplifier_sdk.chat import ProviderInfo
from amplifier_sdk.contracts import ContextManager, RepairableContext
from amplifier_sdk.history import repair
from amplifier_sdk.messages import MessageDict

SESSION: Final = "stored-session"
BUDGETS: Final = (0, 1, 50, 200, 700, 2_000, 5_000)
"""Budgets in tokens for a history of some 5,000."""
TOLERANCE: Final = 1.5
"""How far a view may exceed its budget by the estimate of four characters a token."""
ORPHAN: Final[MessageDict] = {
    "role": "tool",
    "tool_call_id": "call_nobody_made",
    "name": "look",
    "content": "found",
}
"""A result whose call is missing."""
ALL_SHAPES: Final = [message for _, message in MESSAGES.values()]

_NOT_STORED: Final = "its history ends with its session"
_NO_LINES: Final = "it stores no text of lines in the session's folders"


def turns(count: int, *, calls: int = 1, in_blocks: bool = False) -> list[MessageDict]:
    return [
        message
        for number in range(count)
        for message in exchange(number, calls, in_blocks=in_blocks)
    ]


def tokens_of(messages: Sequence[MessageDict]) -> float:
    return sum(len(json.dumps(message)) for message in messages) / 4


@attrs.frozen(kw_only=True)
class Filled:
    """A context, and the history that it should have."""

    harness: Harness
    history: list[MessageDict]

    @property
    def context(self) -> ContextManager:
        return self.harness.context

    async def add(self, messages: Sequence[MessageDict]) -> None:
        await fill(self.context, messages)
        self.history.extend(messages)

    async def set(self, messages: Sequence[MessageDict]) -> None:
        await self.context.set_messages(copy.deepcopy(messages))
        self.history[:] = messages

    async def view(
        self, budget: int | None = None, provider: ScriptedProvider | None = None
    ) -> list[MessageDict]:
        return list(
            await self.context.get_messages_for_request(
                token_budget=budget, provider=provider
            )
        )

    async def is_complete(self) -> None:
        await holds(self.context, self.history)


@attrs.frozen(kw_only=True)
class View:
    """A view of a history that fits a budget."""

    filled: Filled
    budget: int
    messages: list[MessageDict]

    def __str__(self) -> str:
        return f"With a budget of {self.budget} the view"


async def fill(context: ContextManager, messages: Sequence[MessageDict]) -> None:
    """Add messages, each a copy of its own."""
    for message in messages:
        # a copy, so that a context that changes what it is given is found out
        await context.add_message(copy.deepcopy(message))


async def holds(context: ContextManager, wanted: Sequence[MessageDict]) -> None:
    history = list(await context.get_messages())
    require(
        len(history) == len(wanted),
        f"{len(wanted)} messages went in and {len(history)} came back",
    )
    for index, (stored, given) in enumerate(zip(history, wanted, strict=True)):
        require(
            _same(stored, given),
            f"Message {index} went in as {given!r:.200} and came back as {stored!r:.200}",
        )


def _same(left: object, right: object) -> bool:
    """Return whether two JSON values are alike in type, value and order."""
    if isinstance(left, dict) and isinstance(right, dict):
        # a vendor signs what it sent: the order of keys must not change either
        return list(left) == list(right) and all(
            _same(left[key], right[key]) for key in left
        )
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(_same, left, right))
    # to Python 1, 1.0 and True are equal
    return type(left) is type(right) and left == right


@asynccontextmanager
async def _opened(
    subject: Subject, messages: Sequence[MessageDict]
) -> AsyncIterator[Filled]:
    async with open_harness(subject) as harness:
        begun = list(await harness.context.get_messages())
        start = Filled(harness=harness, history=begun)
        await start.add(messages)
        yield start


@scenario
async def filled(
    subject: Subject, *messages: MessageDict
) -> AsyncIterator[tuple[Filled]]:
    async with _opened(subject, messages) as start:
        yield (start,)


@scenario
async def given(
    subject: Subject, messages: Sequence[MessageDict]
) -> AsyncIterator[tuple[Filled]]:
    async with open_harness(subject) as harness:
        start = Filled(harness=harness, history=[])
        await start.add(exchange(9))
        await start.set(messages)
        yield (start,)


@scenario
async def views(
    subject: Subject, *messages: MessageDict, budgets: Sequence[int] = BUDGETS
) -> AsyncIterator[Iterable[View]]:
    async with _opened(subject, messages) as start:
        seen = []
        for budget in budgets:
            seen.append(
                View(filled=start, budget=budget, messages=await start.view(budget))
            )
            await start.is_complete()  # asking for a view changes nothing
        yield seen


async def views_of_a_broken_history(subject: Subject) -> AsyncIterator[Iterable[View]]:
    """Look at views of a history with half of a pair at either end."""
    lost: MessageDict = {"role": "tool", "tool_call_id": "call_lost", "content": "42"}
    prompt: MessageDict = {"role": "user", "content": "Please continue."}
    async with open_harness(subject) as harness:
        start = Filled(harness=harness, history=[])
        await start.set([lost, *exchange(1)[:2], prompt, *turns(10)])
        yield [
            View(filled=start, budget=budget, messages=await start.view(budget))
            for budget in BUDGETS
        ]


class SilentProvider(ScriptedProvider):
    def get_info(self) -> ProviderInfo:
        raise OSError("no network")


class VagueProvider(ScriptedProvider):
    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id="vague", display_name="Vague")


async def repaired(subject: Subject) -> AsyncIterator[tuple[Filled]]:
    """Break the history of a context that takes repairs, and give it the repair."""
    async with open_harness(subject) as harness:
        context = harness.context
        skip_unless(
            isinstance(context, RepairableContext),
            "it has no repair_messages; set_messages is called instead",
        )
        assert isinstance(context, RepairableContext)
        await fill(context, [*exchange(1), ORPHAN, *exchange(2)])
        mended = repair(list(await context.get_messages()))
        await context.repair_messages(mended)
        yield (Filled(harness=harness, history=list(mended.messages)),)


async def second_session(subject: Subject) -> AsyncIterator[tuple[Filled]]:
    """Look at a context beside another session's, which has a history."""
    async with open_harness(subject) as first, open_harness(subject) as second:
        await fill(first.context, exchange(1))
        yield (Filled(harness=second, history=[]),)


# -- sessions that resume each other


@attrs.frozen(kw_only=True)
class Store:
    """A place in which sessions of one id follow each other, and the history that the last one left."""

    subject: Subject
    folder: Path
    history: list[MessageDict]

    def open(self) -> AbstractAsyncContextManager[Harness]:
        return open_harness(
            self.subject, SessionSetup(directory=self.folder, session_id=SESSION)
        )

    def copy(self, name: str) -> Store:
        """Take the files as they are now, as a kill at this moment would leave them."""
        folder = self.folder.with_name(name)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder)
        return attrs.evolve(self, folder=folder, history=list(self.history))

    async def add(self, messages: Sequence[MessageDict]) -> None:
        async with self.open() as harness:
            await fill(harness.context, messages)
        self.history.extend(messages)

    async def resumes(self, history: Sequence[MessageDict] | None = None) -> None:
        """Require that the next session has exactly this history, or that of the store."""
        async with self.open() as harness:
            await holds(harness.context, self.history if history is None else history)

    @property
    def files(self) -> list[Path]:
        given = {self.folder / name for name in self.subject.samples_as(Samples).files}
        return sorted(
            path
            for path in self.folder.rglob("*")
            if path.is_file() and path not in given
        )

    @property
    def lines(self) -> Path:
        """The largest file; skipped where it is no text."""
        skip_unless(self.files, _NO_LINES)
        largest = max(self.files, key=lambda path: path.stat().st_size)
        data = largest.read_bytes()
        skip_unless(data.count(b"\n") > 3 and b"\0" not in data, _NO_LINES)
        return largest


@scenario
async def stored(
    subject: Subject, *messages: MessageDict
) -> AsyncIterator[tuple[Store]]:
    """End a session with these messages; skipped where the next one begins without."""
    with TemporaryDirectory(prefix="amplifier-behavior-") as home:
        store = Store(subject=subject, folder=Path(home) / "first", history=[])
        store.folder.mkdir()
        async with store.open() as harness:
            store.history.extend(await harness.context.get_messages())
            start = len(store.history)
            await fill(harness.context, messages)
        # in a copy: to open it may write, and the store is to be as its session left it
        async with store.copy("probe").open() as harness:
            skip_unless(len(await harness.context.get_messages()) > start, _NOT_STORED)
        store.history.extend(messages)
        yield (store,)
