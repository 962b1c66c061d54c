"""What of a conversation fits the model's window, and is short enough to be read in seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import attrs

from amplifier_module_provider_local.conversation import RequestParts, SpeakerTurn
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["Fitted", "Ruler", "Tokenizer", "fit"]

Tokenizer: TypeAlias = Callable[[str], Awaitable[tuple[bytes, ...]]]
"""Splits a text into the model's tokens, each as the bytes it stands for."""

_FRAME: Final = 8
"""Tokens that stand around one message."""

_LONGEST_TOKEN: Final = 16
"""Characters: a text that has more of them for each token it may take is cut before it is split."""


@attrs.frozen
class Ruler:
    """Measures and cuts texts in tokens; asks the server only about texts that might be too long."""

    tokenize: Tokenizer

    async def cut(self, text: str, room: int) -> str:
        """Return the text, or as much of its beginning as takes `room` tokens at most."""
        # a token stands for a byte at least
        if len(text.encode("utf-8", "replace")) <= room:
            return text
        head = text[: room * _LONGEST_TOKEN]
        tokens = await self.tokenize(head)
        if len(tokens) <= room:
            return head
        return b"".join(tokens[:room]).decode("utf-8", "ignore")

    async def size(self, text: str, room: int) -> int:
        """Return how many tokens a text has, or a number above `room` when it has more than that."""
        upper = len(text.encode("utf-8", "replace"))
        if upper <= room // 8:  # too small to matter: the bound will do
            return upper
        if len(text) > room * _LONGEST_TOKEN:
            return room + 1
        return len(await self.tokenize(text))


@attrs.frozen(kw_only=True)
class Fitted:
    """The messages to send, and what was left out: so many of the oldest turns, part of a tool's text."""

    messages: tuple[JSONObject, ...]
    left_out: int = 0
    was_cut: bool = False


async def fit(conversation: RequestParts, ruler: Ruler, *, window: int) -> Fitted:
    """Choose what to send.

    The system text and the question are sent whole, whatever their length: the server says when they do not
    fit. Half of the window is shared by them, the tools' texts, which are cut to it, and the newest of the
    earlier turns: a prompt of the whole window would take half a minute to read, and the answer needs room too.
    """
    room = window // 2
    room -= await ruler.size(conversation.system, window) + await ruler.size(
        conversation.question or "", window
    )
    room = max(room - 3 * _FRAME, 0)
    given = "\n\n".join(conversation.results)
    result = await ruler.cut(given, max(room, _FRAME))
    room -= await ruler.size(result, window)
    last = conversation.last_turn(result)
    tail = (*((last,) if last is not None else ()), *conversation.later)
    newest = await _newest(conversation.earlier, ruler, room)
    system = (
        (SpeakerTurn("system", conversation.system),) if conversation.system else ()
    )
    return Fitted(
        messages=tuple(turn.to_json() for turn in (*system, *newest, *tail)),
        left_out=len(conversation.earlier) - len(newest),
        was_cut=result != given,
    )


async def _newest(
    turns: tuple[SpeakerTurn, ...], ruler: Ruler, room: int
) -> tuple[SpeakerTurn, ...]:
    """Return the newest turns that take `room` tokens at most; they begin with a user's."""
    start = len(turns)
    for index in range(len(turns) - 1, -1, -1):
        room -= _FRAME
        if room <= 0:
            break
        room -= await ruler.size(turns[index].text, room)
        if room < 0:
            break
        start = index
    while start < len(turns) and turns[start].role != "user":
        start += 1
    return turns[start:]
