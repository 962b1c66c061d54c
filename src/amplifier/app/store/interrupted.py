"""A turn that a journal has and a transcript has not: what came of it, as a history would have it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from amplifier.app.store.amounts import Amounts, added, highest
from amplifier_sdk.content import ToolCallBlock
from amplifier_sdk.history import OpenCall, open_calls, tool_message
from amplifier_sdk.journal import CallFinished, RecordedAnswer, RecordedTurn
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.loops.notices import IN_DOUBT
from amplifier_sdk.messages import Message, MessageDict
from amplifier_sdk.stores import LogEntry

__all__ = [
    "CHILD_ENDED",
    "WITHHELD_CALLS",
    "InterruptedTurn",
    "join_turns",
    "read_turns",
    "recorded_turn",
    "tool_calls_of",
]

CHILD_ENDED: Final = "child_ended"
"""The kind of a record that says what a turn of a child spent."""

WITHHELD_CALLS: Final = "withheld_calls"
"""The key of a message's record that names the calls whose arguments are not written as they were made."""

_NOT_STARTED: Final = "This call was not started: the program ended before."
_MADE_UP: Final[Mapping[str, JSONValue]] = {"synthesized": True}
_INCOMPLETE: Final = "(The answer is incomplete.)"
_LOST: Final = "(What was asked here is lost: its line in the journal is damaged.)"


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
        more = f"{IN_DOUBT} {note}".strip()
        changed = tuple(
            {**message, "content": more}
            if message.get("content") == IN_DOUBT
            else message
            for message in self.messages
        )
        return attrs.evolve(self, messages=changed)


def read_turns(records: Iterable[LogEntry]) -> tuple[InterruptedTurn, ...]:
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


def recorded_turn(records: Iterable[LogEntry], turn_id: str) -> RecordedTurn:
    """Return what a journal has of a turn, from which it is continued; its spending is left out."""
    answers: list[RecordedAnswer] = []
    for record in records:
        data = record.data
        if not isinstance(data, dict) or data.get("turn_id") != turn_id:
            continue
        message, call = data.get("message"), str(data.get("call_id"))
        if isinstance(message, dict):
            if message.get("role") == "assistant":
                withheld = data.get(WITHHELD_CALLS)
                ids = withheld if isinstance(withheld, list) else ()
                answers.append(
                    RecordedAnswer(message=message, withheld=frozenset(map(str, ids)))
                )
        elif answers and record.kind in ("call_asked", "call_answered"):
            answers[-1] = _with_question(answers[-1], record.kind, call, data)
        elif answers and record.kind in ("call_started", "call_finished"):
            answers[-1] = _with_call(answers[-1], record.kind, turn_id, call, data)
    return RecordedTurn(turn_id=turn_id, answers=tuple(answers), is_begun=True)


def tool_calls_of(message: MessageDict) -> dict[str, Mapping[str, JSONValue]]:
    """Return the arguments of the calls of a model's message by the ids of the calls."""
    content = Message.from_dict(message).content
    if isinstance(content, str):
        return {}
    return {
        block.id: block.input for block in content if isinstance(block, ToolCallBlock)
    }


def _with_call(
    answer: RecordedAnswer,
    kind: str,
    turn_id: str,
    call: str,
    data: Mapping[str, JSONValue],
) -> RecordedAnswer:
    if kind == "call_started":
        return attrs.evolve(answer, started=answer.started | {call})
    end = CallFinished(
        turn_id=turn_id,
        call_id=call,
        success=data.get("success") is True,
        output=str(data.get("output")),
    )
    return attrs.evolve(answer, finished={**answer.finished, call: end})


def _with_question(
    answer: RecordedAnswer, kind: str, call: str, data: Mapping[str, JSONValue]
) -> RecordedAnswer:
    asked = (call, int(str(data.get("number"))))
    if kind == "call_asked":
        return attrs.evolve(answer, asked=answer.asked | {asked})
    return attrs.evolve(answer, asked=answer.asked - {asked})


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
    for message in reversed(messages):
        if message.get("role") == "assistant":
            made = tool_calls_of(message).get(call.id, {})
            return json.dumps(made, ensure_ascii=False)
    return ""


def _makes_calls(message: JSONValue) -> bool:
    return isinstance(message, dict) and bool(open_calls([message]))


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
        elif kind == CHILD_ENDED:
            self.children.add((str(data.get("child")), str(data.get("child_turn"))))
            spent = data.get("spent")
            self.owed.append(spent if isinstance(spent, Mapping) else {})

    def close(self) -> InterruptedTurn:
        self._answer()
        if not self.has_ended and _waits_for_answer(self.messages[-1]):
            # What the model had written of it is in no journal.
            metadata = {"incomplete": True, **_MADE_UP}
            self.messages.append(
                {"role": "assistant", "content": _INCOMPLETE, "metadata": metadata}
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
            text = IN_DOUBT
        else:
            self.not_started.append(call.name)
            text = _NOT_STARTED
        return tool_message(call.id, call.name, text, metadata=_MADE_UP)
