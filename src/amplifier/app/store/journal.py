"""What a turn is doing, written before it does it, so that a killed turn is known exactly afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self, TypeAlias

import attrs
from anyio import to_thread

from amplifier.app.store.amounts import Amounts, added, highest
from amplifier_kit.files.appendlog import (
    AppendedRecord,
    AppendLog,
    Damage,
    Durability,
    Expected,
)
from amplifier_sdk.content import ToolCallBlock
from amplifier_sdk.convert import to_json
from amplifier_sdk.history import OpenCall, open_calls, tool_message
from amplifier_sdk.journal import (
    CallFinished,
    CallStarted,
    JournalRecord,
    MessageWritten,
    TurnEnded,
    TurnStarted,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message, MessageDict

__all__ = [
    "EXPECTED",
    "REMEDY",
    "FileJournal",
    "InterruptedTurn",
    "join_turns",
    "read_turns",
]

REMEDY: Final = "'amplifier session repair' moves it aside"
"""What helps where a file of a session is no log."""

EXPECTED: Final = Expected(holds="journal", remedy=REMEDY)
"""What such a file is opened for."""

_KINDS: Final[Mapping[type[JournalRecord], str]] = {
    TurnStarted: "turn_started",
    MessageWritten: "message",
    CallStarted: "call_started",
    CallFinished: "call_finished",
    TurnEnded: "turn_ended",
}
_CHILD_ENDED: Final = "child_ended"
_IN_DOUBT: Final = (
    "This call was started and then the program ended. Whether it had its effect is not known. It is not run again by"
    " itself: find out how things are before you repeat it."
)
_NOT_STARTED: Final = "This call was not started: the program ended before."
_MADE_UP: Final[Mapping[str, JSONValue]] = {"synthesized": True}
_INCOMPLETE: Final = "(The answer is incomplete.)"
_LOST: Final = "(What was asked here is lost: its line in the journal is damaged.)"

_Clean: TypeAlias = Callable[[MessageDict], MessageDict]


@attrs.frozen(kw_only=True)
class InterruptedTurn:
    """A turn that was running when the program ended, or whose end was not stored.

    Args:
        turn_id: the turn.
        prompt: what was asked.
        messages: the prompt, what the model said, and a result for every call.
        in_doubt: the tools of calls that were started and whose end is not known.
        arguments: the arguments of each of these calls, as JSON text.
        not_started: the tools of calls that were not started.
        has_ended: it ended, and only the transcript does not say so.
        spending: what the session had spent when the journal said so last; `None` where it never did.
        owed: what children spent whose turns ended after that.
        children: the children whose turns are counted, and those turns.
        works_for: the turn of the session's parent that it was a part of; empty for none, `None` where an earlier
            version wrote the journal, which does not say.
    """

    turn_id: str
    prompt: str
    messages: tuple[MessageDict, ...]
    in_doubt: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    not_started: tuple[str, ...] = ()
    has_ended: bool = False
    spending: Amounts | None = None
    owed: tuple[Amounts, ...] = ()
    children: frozenset[tuple[str, str]] = frozenset()
    works_for: str | None = None

    def total(self, before: Amounts) -> Amounts:
        """Return what the session has spent by the end of the turn.

        Args:
            before: what its record says, which may be newer.
        """
        known = before if self.spending is None else self.spending
        return highest(before, added(known, *self.owed))

    def with_note(self, note: str) -> InterruptedTurn:
        """Say more, to the model, of each call that is in doubt; nothing where the note is empty."""
        more = f"{_IN_DOUBT} {note}".strip()
        told = tuple(
            {**message, "content": more}
            if message.get("content") == _IN_DOUBT
            else message
            for message in self.messages
        )
        return attrs.evolve(self, messages=told)


@attrs.define(eq=False)
class FileJournal:
    """The journal of a session, the capability `session.journal`; it holds what the transcript does not have yet.

    `turns` are those that it had when it was opened, `turn_id` is the one that it records now, and `works_for` the
    turn of the session's parent that this one is a part of.
    """

    _log: AppendLog
    turns: tuple[InterruptedTurn, ...]
    turn_id: str | None = None
    works_for: str = ""
    _clean: _Clean | None = None

    @classmethod
    async def open(cls, path: Path, durability: Durability = "written") -> Self:
        """Open the file of a session, or begin one.

        Raises:
            LockedError: somebody else writes it.
            LogFormatError: it is something else, or a newer version's.
            OSError: the system refuses.
        """
        log = await AppendLog.open(path, holds=EXPECTED, durability=durability)
        return cls(log, read_turns(log.take()))

    @property
    def durability(self) -> Durability:
        """What a record means: it outlives the process, or also a power failure."""
        return self._log.durability

    @property
    def damage(self) -> tuple[Damage, ...]:
        """What could not be read."""
        return self._log.damage

    def clean_with(self, clean: _Clean | None) -> None:
        """Say what returns the message that the file gets in a message's place."""
        self._clean = clean

    async def append(self, record: JournalRecord) -> None:
        """Store one record.

        Raises:
            OSError: it was not stored; the turn stops.
        """
        if self._clean is not None:
            record = await to_thread.run_sync(_cleaned, record, self._clean)
        data = to_json(record)
        if isinstance(record, TurnStarted) and isinstance(data, dict):
            data = {**data, "works_for": self.works_for}
        await self._log.append(_KINDS[type(record)], data)
        self._log.take()
        self.turn_id = record.turn_id

    async def note_child(self, session_id: str, turn_id: str, spent: Amounts) -> None:
        """Note what a turn of a child spent that ends now.

        The running turn's own records say it only when its call of the child has ended.

        Raises:
            OSError: it was not stored.
        """
        if self.turn_id is not None:  # else nothing runs that it could be cut off with
            await self._note_child(self.turn_id, session_id, turn_id, spent)

    async def charge_child(self, session_id: str, turn_id: str, spent: Amounts) -> None:
        """Note what a turn of a child spent that was cut off with the last of `turns`, which counts it from now on.

        Raises:
            OSError: it was not stored.
        """
        *before, last = self.turns
        await self._note_child(last.turn_id, session_id, turn_id, spent)
        charged = attrs.evolve(
            last,
            owed=(*last.owed, spent),
            children=last.children | {(session_id, turn_id)},
        )
        self.turns = (*before, charged)

    async def begin_anew(self) -> None:
        """Forget the turns, which are in the transcript.

        Raises:
            OSError: the system refuses; the journal is as it was, and does no harm.
        """
        self.turns = ()
        await self._log.replace(())

    async def aclose(self) -> None:
        """Close the file."""
        await self._log.aclose()

    async def _note_child(
        self, turn_id: str, child: str, child_turn: str, spent: Amounts
    ) -> None:
        data: JSONObject = {
            "turn_id": turn_id,
            "child": child,
            "child_turn": child_turn,
            "spent": {**spent},
        }
        await self._log.append(_CHILD_ENDED, data)
        self._log.take()


def read_turns(records: Iterable[AppendedRecord]) -> tuple[InterruptedTurn, ...]:
    """Return the turns of a journal as a history would have them.

    Every call gets a result: the one it had, or a text that says whether it may have had its effect. So do the calls
    of a turn whose first line is lost.
    """
    turns: list[_Turn] = []
    for record in records:
        data = record.data
        if not isinstance(data, dict):
            continue
        turn_id = str(data.get("turn_id"))
        if record.kind == "turn_started":
            turns.append(_Turn(turn_id, str(data.get("prompt"))))
            works_for = data.get("works_for")
            if isinstance(works_for, str):
                turns[-1].works_for = works_for
        # A message alone needs no turn; a call without an answer would make vendors
        # refuse the history.
        elif (not turns or turns[-1].turn_id != turn_id) and _makes_calls(
            data.get("message")
        ):
            turns.append(_Turn(turn_id, _LOST))
        if turns and turns[-1].turn_id == turn_id:
            turns[-1].add(record.kind, data)
    return tuple(turn.close() for turn in turns)


def join_turns(turns: Sequence[InterruptedTurn]) -> InterruptedTurn | None:
    """Return the last of several turns, with the messages and the calls of all; `None` where there is none."""
    if not turns:
        return None
    joined = attrs.evolve(
        turns[-1],
        messages=tuple(message for turn in turns for message in turn.messages),
        in_doubt=tuple(name for turn in turns for name in turn.in_doubt),
        arguments=tuple(text for turn in turns for text in turn.arguments),
        not_started=tuple(name for turn in turns for name in turn.not_started),
        children=frozenset().union(*(turn.children for turn in turns)),
        spending=None,
        owed=(),
    )
    for turn in turns:
        if turn.spending is None:
            joined = attrs.evolve(joined, owed=(*joined.owed, *turn.owed))
        else:  # which counts what was owed before
            joined = attrs.evolve(joined, spending=turn.spending, owed=turn.owed)
    return joined


def _waits_for_answer(message: MessageDict) -> bool:
    """Tell whether the model was about to answer a message when the program ended."""
    if message.get("role") == "assistant":
        return False
    # One that a call is closed with says itself that the turn was cut off.
    return message.get("metadata") != _MADE_UP


def _arguments_of(call: OpenCall, messages: Sequence[MessageDict]) -> str:
    """Return what a call of the last message of a model was made with, as JSON text."""
    for message in reversed(messages):
        if message.get("role") == "assistant":
            content = Message.from_dict(message).content
            blocks = () if isinstance(content, str) else content
            calls = (block for block in blocks if isinstance(block, ToolCallBlock))
            made = (block.input for block in calls if block.id == call.id)
            return json.dumps(next(made, {}), ensure_ascii=False)
    return ""


def _makes_calls(message: JSONValue) -> bool:
    return isinstance(message, dict) and bool(open_calls([message]))


def _cleaned(record: JournalRecord, clean: _Clean) -> JournalRecord:
    """Return a record without secrets in what was said; what says which turn and call it is stays."""
    match record:
        case TurnStarted(prompt=prompt):
            return attrs.evolve(
                record, prompt=_text(clean({"role": "user", "content": prompt}))
            )
        case MessageWritten(message=message):
            return attrs.evolve(record, message=clean(message))
        case CallFinished(call_id=call, output=output):
            return attrs.evolve(
                record, output=_text(clean(tool_message(call, "", output)))
            )
        case CallStarted() | TurnEnded():
            return record


def _text(message: MessageDict) -> str:
    return str(message.get("content"))


@attrs.define(eq=False)
class _Turn:
    """A turn that is read from its records."""

    turn_id: str
    prompt: str
    works_for: str | None = None
    messages: list[MessageDict] = attrs.field(factory=list)
    before: int = 0  # how many messages stand before the prompt
    started: set[str] = attrs.field(factory=set)
    results: dict[str, str] = attrs.field(factory=dict)
    in_doubt: list[str] = attrs.field(factory=list)
    not_started: list[str] = attrs.field(factory=list)
    has_ended: bool = False
    spending: Amounts | None = None
    owed: list[Amounts] = attrs.field(factory=list)
    children: set[tuple[str, str]] = attrs.field(factory=set)
    arguments: list[str] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.messages.append({"role": "user", "content": self.prompt})

    def add(self, kind: str, data: Mapping[str, JSONValue]) -> None:
        call = str(data.get("call_id"))
        message, spending = data.get("message"), data.get("spending")
        if isinstance(spending, Mapping):
            self.spending = spending
            # The account of the session includes what children were owed before it was
            # written.
            self.owed.clear()
        if kind == "message" and isinstance(message, dict):
            self._add(message)
        elif kind == "call_started":
            self.started.add(call)
        elif kind == "call_finished":
            self.results[call] = str(data.get("output"))
        elif kind == "turn_ended":
            self.has_ended = True
        elif kind == _CHILD_ENDED:
            self.children.add((str(data.get("child")), str(data.get("child_turn"))))
            spent = data.get("spent")
            self.owed.append(spent if isinstance(spent, Mapping) else {})

    def close(self) -> InterruptedTurn:
        self._answer()
        if not self.has_ended and _waits_for_answer(self.messages[-1]):
            # What the model had written of it is in no journal.
            self.messages.append(
                {
                    "role": "assistant",
                    "content": _INCOMPLETE,
                    "metadata": {"incomplete": True, **_MADE_UP},
                }
            )
        return InterruptedTurn(
            turn_id=self.turn_id,
            prompt=self.prompt,
            messages=tuple(self.messages),
            in_doubt=tuple(self.in_doubt),
            not_started=tuple(self.not_started),
            has_ended=self.has_ended,
            spending=self.spending,
            owed=tuple(self.owed),
            children=frozenset(self.children),
            works_for=self.works_for,
            arguments=tuple(self.arguments),
        )

    def _add(self, message: MessageDict) -> None:
        """Add a message: what was put in before the first answer was so for the prompt, and stands before it."""
        role = message.get("role")
        if role == "developer" and not any(
            each.get("role") == "assistant" for each in self.messages
        ):
            self.messages.insert(self.before, message)
            self.before += 1
        elif role != "system":  # made anew each time
            self._answer()
            self.messages.append(message)

    def _answer(self) -> None:
        """Give each call of the last message its result."""
        for call in open_calls(self.messages):
            self.messages.append(self._result(call))

    def _result(self, call: OpenCall) -> MessageDict:
        """Answer a call; what was noted under its id is its alone: a vendor may give a later call the same one."""
        was_started = call.id in self.started
        self.started.discard(call.id)
        if call.id in self.results:
            return tool_message(call.id, call.name, self.results.pop(call.id))
        if was_started:
            self.in_doubt.append(call.name)
            self.arguments.append(_arguments_of(call, self.messages))
        else:
            self.not_started.append(call.name)
        if was_started:
            text = _IN_DOUBT
        else:
            text = _NOT_STARTED
        return tool_message(call.id, call.name, text, metadata=_MADE_UP)
