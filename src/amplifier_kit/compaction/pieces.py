"""What of a history may be left out together: turns, and the steps of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import MessageDict

__all__ = [
    "RESULT_ROLES",
    "TurnSpan",
    "calls_of",
    "is_prompt",
    "latest_prompt",
    "result_ids",
    "split",
]

RESULT_ROLES: Final = frozenset({"tool", "function"})
"""Who speaks in a tool's result."""

_PROMPT_ROLES: Final = frozenset({"user", "developer"})


@attrs.define(eq=False)
class TurnSpan:
    """A prompt and what followed it, by places in the messages.

    `prompts` are the person's message with the application's before it. Each of `steps` is a model's answer with the
    results of its calls and what stands among them. Where one ends nothing waits for a result.
    """

    prompts: list[int] = attrs.field(factory=list)
    steps: list[list[int]] = attrs.field(factory=list)
    is_latest: bool = False


def split(messages: Sequence[MessageDict]) -> list[TurnSpan]:
    """Split messages into turns. System messages, which always stay, are in none.

    What a hook injected belongs to what it stands behind, and so does a result whose call is not there.
    """
    turns: list[TurnSpan] = []
    groups: dict[int, list[int]] = {}  # the prompts or the step that each place is in
    callers = _callers(messages)
    latest = latest_prompt(messages)
    for place, message in enumerate(messages):
        if message.get("role") == "system":
            continue
        waits = place in callers and place != latest
        if waits:
            group = groups[callers[place]]
        else:
            group = _group(turns, messages, place)
        group.append(place)
        groups[place] = group
    if latest >= 0:
        next(
            turn for turn in reversed(turns) if latest in turn.prompts
        ).is_latest = True
    return turns


def _group(
    turns: list[TurnSpan], messages: Sequence[MessageDict], place: int
) -> list[int]:
    """Return where a message belongs that stands between no call and its result."""
    message = messages[place]
    if is_prompt(message):
        # the prompts may still wait for the person's message
        goes_on = (
            bool(turns)
            and not turns[-1].steps
            and all(messages[at].get("role") != "user" for at in turns[-1].prompts)
        )
        if not goes_on:
            turns.append(TurnSpan())
        return turns[-1].prompts
    if not turns:
        turns.append(TurnSpan())
    turn = turns[-1]
    if message.get("role") == "assistant" or not (turn.steps or turn.prompts):
        turn.steps.append([])
    if turn.steps:
        return turn.steps[-1]
    return turn.prompts


def is_prompt(message: MessageDict) -> bool:
    """Tell whether a person, or the application for them, speaks.

    What a hook injects is part of a turn, and so is what answers a call, whoever is said to speak.
    """
    metadata = message.get("metadata")
    injected = isinstance(metadata, Mapping) and metadata.get("source") == "hook"
    return (
        message.get("role") in _PROMPT_ROLES
        and not injected
        and next(result_ids(message), None) is None
    )


def latest_prompt(messages: Sequence[MessageDict]) -> int:
    """Return the place of the latest message of a person, or -1."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].get("role") == "user" and is_prompt(messages[place]):
            return place
    return -1


def _callers(messages: Sequence[MessageDict]) -> dict[int, int]:
    """Return, for each place where a call waits for its result, the place of the message that made it."""
    callers: dict[int, int] = {}
    answered = _answered(messages)
    caller, until = -1, -1
    for place in range(len(messages)):
        if place <= until:
            callers[place] = caller
            until = max(until, answered.get(place, -1))
        elif place in answered:
            caller, until = place, answered[place]
    return callers


def _answered(messages: Sequence[MessageDict]) -> dict[int, int]:
    """Return, by the place of each message that makes calls, where the last of them is answered."""
    answered: dict[int, int] = {}
    made: dict[str, int] = {}
    for place, message in enumerate(messages):
        answered.update(
            (made[call_id], place) for call_id in result_ids(message) if call_id in made
        )
        if message.get("role") == "assistant":
            made.update((call_id, place) for call_id, _ in calls_of(message))
    return answered


def calls_of(message: MessageDict) -> Iterator[tuple[str, str]]:
    """Return the id and the tool's name of each call that a message makes, among its blocks or beside them."""
    for key in ("content", "tool_calls"):
        for part in _objects(message.get(key)):
            call_id = part.get("id")
            if isinstance(call_id, str):
                function = part.get("function")
                named = part
                if isinstance(function, Mapping):
                    named = function
                yield call_id, str(named.get("name") or named.get("tool") or "")


def result_ids(message: MessageDict) -> Iterator[str]:
    """Return the ids of the calls that a message answers, itself or by its blocks."""
    for part in (message, *_objects(message.get("content"))):
        call_id = part.get("tool_call_id")
        if isinstance(call_id, str):
            yield call_id


def _objects(value: JSONValue) -> list[Mapping[str, JSONValue]]:
    if isinstance(value, (list, tuple)):
        return [part for part in value if isinstance(part, Mapping)]
    return []
