"""Who a served session is, as its store has it: the record of any session, and how its turns stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import time
from typing import Final, cast

from amplifier.app.questions.stored_approvals import (
    described_question,
    is_lasting,
    is_open,
)
from amplifier.app.store.records import (
    SERVED_TURNS,
    SERVED_WAITING,
    SessionRecord,
    beginning_of,
)
from amplifier.serving.schema import SESSION_SCHEMA, TURN_SCHEMA
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.stores import StoredQuestion

__all__ = [
    "CANCEL",
    "STORED_SESSION_SCHEMA",
    "SUMMARY_SCHEMA",
    "described",
    "is_open_approval",
    "left_behind",
    "new_record",
    "running_turn",
    "summary",
    "times_left",
    "turns_of",
    "waiting_turn",
    "wishes_to_cancel",
    "with_new_turn",
    "with_turn_ended",
    "with_turn_left",
    "with_turn_waiting",
    "without_waiting",
]

CANCEL: Final = "cancel"
"""The kind of the stored question whose answer cancels a turn, whichever process runs it."""

_LEFT: Final = "served_left"
"""The key of a record that says how often the process of its running turn was killed."""

_MAX_TURNS: Final = 50
_TEXT: Final[JSONObject] = {"type": "string"}
_FACTS: Final[dict[str, JSONObject]] = {
    "name": {"type": ["string", "null"]},
    "prompt": {**_TEXT, "description": "How its first prompt begins."},
    "created": {"type": "number"},
    "updated": {"type": "number"},
    "turn_count": {"type": "integer"},
    "cost_usd": {"type": ["string", "null"]},
}


def _extended(**more: JSONValue) -> JSONObject:
    properties: JSONObject = {"session_id": _TEXT, "state": {}, **_FACTS, **more}
    known = SESSION_SCHEMA["properties"]
    assert isinstance(known, dict)
    properties["state"] = known["state"]
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_KNOWN: Final = cast("dict[str, JSONValue]", SESSION_SCHEMA["properties"])
SUMMARY_SCHEMA: Final = _extended()
"""A session in a list."""

STORED_SESSION_SCHEMA: Final = _extended(
    turns={"type": "array", "items": TURN_SCHEMA}, approvals=_KNOWN["approvals"]
)
"""A session with its last turns and open questions."""


def new_record(session_id: str, working_dir: str, name: str | None) -> JSONObject:
    """Write the record of a session in which nothing was said yet."""
    record = SessionRecord(session_id=session_id, working_dir=working_dir, name=name)
    return {**record.to_dict(), SERVED_TURNS: []}


def turns_of(record: Mapping[str, JSONValue]) -> list[JSONObject]:
    """Return the last turns of a session, the first one first."""
    turns = record.get(SERVED_TURNS)
    if not isinstance(turns, list):
        return []
    return [turn for turn in turns if isinstance(turn, dict)]


def running_turn(record: Mapping[str, JSONValue]) -> str | None:
    """Return the id of the turn that runs, or that whoever ran it left."""
    for turn in turns_of(record):
        if turn.get("state") == "running":
            return str(turn["turn_id"])
    return None


def waiting_turn(record: Mapping[str, JSONValue]) -> str | None:
    """Return the id of the turn that was left to be continued, for example once a person has answered."""
    turn_id = running_turn(record)
    return turn_id if record.get(SERVED_WAITING) == turn_id else None


def with_turn_waiting(record: JSONObject, turn_id: str) -> JSONObject:
    """Return a session's record with a turn that is left to be continued."""
    return {**record, SERVED_WAITING: turn_id}


def without_waiting(record: JSONObject) -> JSONObject:
    """Return a session's record with a turn that somebody continues."""
    return {key: value for key, value in record.items() if key != SERVED_WAITING}


def times_left(record: Mapping[str, JSONValue], turn_id: str) -> int:
    """Return how often a turn was left by a process that was killed."""
    left = record.get(_LEFT)
    if not isinstance(left, Mapping):
        return 0
    times = left.get(turn_id)
    return times if isinstance(times, int) else 0


def with_turn_left(record: JSONObject, turn_id: str) -> JSONObject:
    """Return a session's record with a turn that a killed process left, to be continued."""
    times: JSONObject = {turn_id: times_left(record, turn_id) + 1}
    return {**with_turn_waiting(record, turn_id), _LEFT: times}


def with_new_turn(record: JSONObject, turn_id: str, prompt: str) -> JSONObject:
    """Return a session's record with a turn that runs."""
    turn: JSONObject = {"turn_id": turn_id, "state": "running"}
    first = record.get("prompt") or beginning_of(prompt)
    turns: list[JSONValue] = [*turns_of(record)[1 - _MAX_TURNS :], turn]
    return {**record, "prompt": first, "updated": time(), SERVED_TURNS: turns}


def with_turn_ended(
    record: JSONObject, turn: JSONObject, session: SessionRecord | None
) -> JSONObject:
    """Return a session's record with a turn that ended, and what the session came to."""
    turns: list[JSONValue] = [
        turn if known["turn_id"] == turn["turn_id"] else known
        for known in turns_of(record)
    ]
    facts: JSONObject = {}
    if session is not None:
        data = session.to_dict()
        for key in ("turn_count", "usage", "cost_usd", "profile", "provider", "model"):
            facts[key] = data.get(key)
    return {**record, **facts, "updated": time(), SERVED_TURNS: turns}


def summary(record: Mapping[str, JSONValue]) -> JSONObject:
    """Describe a session for a list."""
    is_running = running_turn(record) is not None
    facts: JSONObject = {key: record.get(key) for key in _FACTS}
    state = "running" if is_running else "idle"
    return {"session_id": record["session_id"], "state": state, **facts}


def described(
    record: Mapping[str, JSONValue], questions: Sequence[StoredQuestion]
) -> JSONObject:
    """Describe a session with its turns and open questions."""
    approvals: list[JSONValue] = [described_question(each) for each in questions]
    turns: list[JSONValue] = [*turns_of(record)]
    return {**summary(record), "turns": turns, "approvals": approvals}


def is_open_approval(question: StoredQuestion) -> bool:
    """Tell whether a question waits for a person's answer."""
    if question.details.get("kind") == CANCEL:
        return False
    return is_open(question)


def left_behind(
    record: Mapping[str, JSONValue], questions: Iterable[StoredQuestion]
) -> list[str]:
    """Return the ids of what turns asked that a session's record lists no more, but for answers that last longer."""
    listed = {str(turn["turn_id"]) for turn in turns_of(record)}
    if len(listed) < _MAX_TURNS:
        return []
    return [
        each.question_id
        for each in questions
        if "turn_id" in each.details
        and str(each.details["turn_id"]) not in listed
        and not is_lasting(each)
    ]


def wishes_to_cancel(
    questions: Iterable[StoredQuestion], turn_id: str
) -> Iterator[StoredQuestion]:
    """Yield the stored questions whose answers say that somebody wishes to cancel a turn."""
    for each in questions:
        details = each.details
        is_ours = details.get("turn_id") == turn_id
        if is_ours and details.get("kind") == CANCEL and each.answer is not None:
            yield each
