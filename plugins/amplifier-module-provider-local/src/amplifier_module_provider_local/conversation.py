"""A request's messages as a small model can use them, and answers in which it says the same without end.

The model knows a system text, the turns of two speakers and a last question. What a tool returned is not a
message of its own to it: the result is put before the question, "Using the text above". Calls and results of
earlier turns are left out; the answers that were made of them remain.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from amplifier_kit.open_data import as_object
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.content import TextBlock, ToolResultBlock
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message

__all__ = ["RequestParts", "SpeakerTurn", "goes_round"]

TIMES: Final = 5
"""How often the same has to stand behind one another; fewer are a list with equal lines, or a refrain."""
_SHORTEST: Final = 12
_LONGEST: Final = 400
"""Characters of what is repeated: shorter is a rule of dashes or an indentation, longer is not looked for."""

_NUMBERED: Final = re.compile(r"^ *\d+\t", re.MULTILINE)
_SPEAKERS: Final[Mapping[str, str]] = {
    "user": "user",
    "developer": "user",
    "assistant": "assistant",
}
_TEXT_FIELDS: Final = ("content", "text", "output")


@attrs.frozen
class SpeakerTurn:
    """What one speaker said."""

    role: str
    text: str

    def to_json(self) -> JSONObject:
        """Write it as the server reads it."""
        return {"role": self.role, "content": self.text}


@attrs.frozen(kw_only=True)
class RequestParts:
    """The parts of a request's messages.

    Args:
        system: every system text, in order.
        earlier: the turns before the last question, the oldest first.
        question: the last user message; `None` when there is none.
        results: what tools returned since the question.
        later: what the model said since the question, when no tool returned anything.
    """

    system: str = ""
    earlier: tuple[SpeakerTurn, ...] = ()
    question: str | None = None
    results: tuple[str, ...] = ()
    later: tuple[SpeakerTurn, ...] = ()

    @classmethod
    def of(cls, request: ChatRequest) -> RequestParts:
        """Read a request's messages."""
        messages = list(request.messages)
        asked = max(
            (index for index, message in enumerate(messages) if message.role == "user"),
            default=None,
        )
        if asked is None:
            end = len(messages)
        else:
            end = asked
        since = messages[end + 1 :]
        results = tuple(_result(message) for message in since if message.role == "tool")
        return cls(
            system="\n\n".join(
                m.text for m in messages if m.role == "system" and m.text
            ),
            earlier=_turns(messages[:end]),
            question=None if asked is None else messages[asked].text,
            results=results,
            later=() if results else _turns(since),
        )

    @property
    def has_results(self) -> bool:
        """Whether a tool returned something since the question."""
        return bool(self.results)

    def last_turn(self, result: str) -> SpeakerTurn | None:
        """Return the question with the tools' texts before it."""
        if self.question is None:
            return None
        return SpeakerTurn(
            "user",
            f"{result}\n\nUsing the text above: {self.question}"
            if result
            else self.question,
        )


def _turns(messages: Sequence[Message]) -> tuple[SpeakerTurn, ...]:
    """Return what was said; what a developer's message holds others wrote, so that it has the user's rank."""
    return tuple(
        SpeakerTurn(_SPEAKERS[m.role], m.text)
        for m in messages
        if m.role in _SPEAKERS and m.text.strip()
    )


def _result(message: Message) -> str:
    if isinstance(message.content, str):
        return _plain(message.content)
    outputs = (
        block.output for block in message.content if isinstance(block, ToolResultBlock)
    )
    texts = [
        output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        for output in outputs
    ]
    said = [block.text for block in message.content if isinstance(block, TextBlock)]
    return "\n\n".join(_plain(text) for text in [*said, *texts] if text)


def _plain(text: str) -> str:
    """Take the text out of a result that is a JSON object with one, and line numbers off its lines."""
    try:
        value: JSONValue = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    texts = map(as_object(value).get, _TEXT_FIELDS)
    inner = next((text for text in texts if isinstance(text, str)), None)
    return _without_numbers((text if inner is None else inner).strip())


def _without_numbers(text: str) -> str:
    lines = text.split("\n")
    if all(_NUMBERED.match(line) for line in lines if line):
        return _NUMBERED.sub("", text)
    return text


def goes_round(text: str) -> bool:
    """Tell whether a text ends in the same words five times, in prose or line by line."""
    tail = text[-_LONGEST * TIMES :]
    longest = min(_LONGEST, len(tail) // TIMES)
    # Asked with every token: most lengths are no repetition's, as one character shows.
    lengths = [
        length
        for length in range(_SHORTEST, longest + 1)
        if tail[-length - 1] == tail[-1]
    ]
    return any(_repeats(tail, length) for length in lengths)


def _repeats(tail: str, length: int) -> bool:
    """Tell whether the last `length` characters hold words, and stand there five times."""
    unit = tail[-length:]
    return tail.endswith(unit * TIMES) and any(map(str.isalpha, unit))
