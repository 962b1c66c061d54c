"""The base class of context managers: say what the model sees, get the rest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from amplifier_sdk.content import ToolCallBlock, ToolResultBlock
from amplifier_sdk.contracts import Hooks, Provider
from amplifier_sdk.events import (
    CONTEXT_POST_COMPACT,
    CONTEXT_PRE_COMPACT,
    ContextPostCompact,
    ContextPreCompact,
)
from amplifier_sdk.history import MessageLog
from amplifier_sdk.messages import Message, MessageDict

__all__ = ["BaseContext", "window_of"]

SAFETY_MARGIN: Final = 1000
"""Tokens left free, since counts are estimates."""

STRATEGY: Final = "view"
"""How events name what `view` of a context does."""

_RESULTS: Final = frozenset({"tool", "function"})
_ANSWERS: Final = _RESULTS | {"assistant"}


class BaseContext:
    """A memory that keeps every message as it came; write `view` to choose what a model sees of them.

    Without `view` it sees the latest ones that fit. Whatever `view` chooses, instructions stay, the first message
    after them is a person's, and a call and its result are shown together or not at all. A view that leaves messages
    out is announced by `context:pre_compact` and `context:post_compact`.

    Attributes:
        hooks: where that is announced, set when the context is mounted; without it nothing is.
    """

    hooks: Hooks | None = None

    @cached_property
    def log(self) -> MessageLog:
        """The stored messages; a subclass needs no `__init__` for it."""
        return MessageLog()

    def view(
        self, messages: Sequence[MessageDict], budget: int | None
    ) -> Sequence[MessageDict]:
        """Choose what a model sees, in the messages' order; the stored ones are never changed.

        Args:
            messages: all of them.
            budget: how many tokens fit; `None` when nobody knows.
        """
        if budget is None:
            return messages
        return _latest(messages, budget)

    async def add_message(self, message: MessageDict, /) -> None:
        """Append a message.

        Raises:
            ValueError: it has no role.
        """
        if not isinstance(message.get("role"), str):
            raise ValueError(f"A message needs a 'role'; got {message!r:.200}")
        self.log.append(message)

    async def get_messages_for_request(
        self, token_budget: int | None = None, provider: Provider | None = None
    ) -> list[MessageDict]:
        """Return what `view` chooses, whole, and announce it where that leaves messages out."""
        messages = self.log.view()
        if token_budget is None:
            token_budget = window_of(provider)
        chosen = self.view(messages, token_budget)
        # nothing is left out, so no call can have lost its result
        if chosen is messages:
            return messages
        shown = _whole(messages, chosen)
        if self.hooks is not None and len(shown) < len(messages):
            await _announce(self.hooks, messages, shown)
        return shown

    async def get_messages(self) -> list[MessageDict]:
        """Return the whole history."""
        return self.log.view()

    async def set_messages(self, messages: Sequence[MessageDict], /) -> None:
        """Replace the history."""
        self.log = MessageLog(messages)

    async def clear(self) -> None:
        """Forget everything."""
        self.log = MessageLog()


def window_of(provider: Provider | None) -> int | None:
    """Return how many tokens a provider takes: its window less the answer's share and a margin."""
    if provider is None:
        return None
    try:
        defaults = provider.get_info().defaults
    except Exception:  # foreign code; without an answer nobody knows
        return None
    window, answer = defaults.get("context_window"), defaults.get("max_output_tokens")
    if not isinstance(window, int) or not isinstance(answer, int):
        return None
    return max(0, window - answer - SAFETY_MARGIN)


async def _announce(
    hooks: Hooks, messages: Sequence[MessageDict], shown: Sequence[MessageDict]
) -> None:
    """Emit that a view leaves messages out, to those who listen: it takes counting."""
    # to count the tokens of a long history takes longer than to choose the view
    if not any(map(hooks.has_handlers, (CONTEXT_PRE_COMPACT, CONTEXT_POST_COMPACT))):
        return
    before, after = len(messages), len(shown)
    tokens, left = sum(map(_tokens, messages)), sum(map(_tokens, shown))
    announced = ContextPreCompact(
        message_count=before,
        token_count=tokens,
        before_messages=before,
        before_tokens=tokens,
        strategy=STRATEGY,
    )
    await hooks.emit(CONTEXT_PRE_COMPACT, announced)
    done = ContextPostCompact(
        message_count=after,
        token_count=left,
        after_messages=after,
        after_tokens=left,
        removed_messages=before - after,
        removed_tokens=tokens - left,
        strategy=STRATEGY,
    )
    await hooks.emit(CONTEXT_POST_COMPACT, done)


def _latest(messages: Sequence[MessageDict], budget: int) -> Sequence[MessageDict]:
    """Return the latest messages that fit beside the instructions; the last step is among them in any case."""
    # the running step: a call whose result is there belongs to the model's next request
    start = max(
        (
            index
            for index, message in enumerate(messages)
            if message.get("role") not in _RESULTS
        ),
        default=0,
    )
    left = budget - sum(
        map(
            _tokens,
            [
                *messages[start:],
                *(m for m in messages[:start] if m.get("role") == "system"),
            ],
        )
    )
    while start > 0:
        before = messages[start - 1]
        # instructions were counted at once: they are shown whatever else is
        left -= 0 if before.get("role") == "system" else _tokens(before)
        if left < 0:
            return messages[start:]
        start -= 1
    return messages


def _tokens(message: MessageDict) -> int:
    """Estimate a message's tokens; what is no text counts as Python writes it."""
    return (
        4
        + sum(len(str(message.get(key) or "")) for key in ("content", "tool_calls"))
        // 4
    )


def _whole(
    messages: Sequence[MessageDict], chosen: Sequence[MessageDict]
) -> list[MessageDict]:
    """Return the chosen messages with the instructions, and without calls and results that lost each other."""
    present = set(map(id, chosen))
    instructions = [
        m for m in messages if m.get("role") == "system" and id(m) not in present
    ]
    answered = {answer for message in messages for answer in _answers(message)}
    shown = [*instructions, *chosen]
    # What is left out takes its other half along, and that may be a whole step: so
    # it is done until nothing changes.
    while True:
        answers = {answer for message in shown for answer in _answers(message)}
        # A call that nothing has answered yet is the running turn's own.
        retained = [
            message
            for message in shown
            if (answered - answers).isdisjoint(_calls(message))
        ]
        calls = {call for message in retained for call in _calls(message)}
        retained = [
            message for message in retained if calls.issuperset(_answers(message))
        ]
        retained = _from_prompt(messages, retained)
        if list(map(id, retained)) == list(map(id, shown)):
            return retained
        shown = retained


def _from_prompt(
    messages: Sequence[MessageDict], shown: Sequence[MessageDict]
) -> list[MessageDict]:
    """Leave out answers and results before the first prompt; where no prompt is shown, show the latest."""
    first = next(
        (index for index, message in enumerate(shown) if message.get("role") == "user"),
        None,
    )
    if first is not None:
        return [
            m
            for index, m in enumerate(shown)
            if index >= first or m.get("role") not in _ANSWERS
        ]
    start = next(
        (
            index
            for index, message in enumerate(shown)
            if message.get("role") != "system"
        ),
        len(shown),
    )
    prompt = next(
        (message for message in reversed(messages) if message.get("role") == "user"),
        None,
    )
    return [*shown[:start], *([] if prompt is None else [prompt]), *shown[start:]]


def _calls(message: MessageDict) -> list[str]:
    """Return the ids of the calls that a message makes."""
    if message.get("role") != "assistant":
        return []
    return [
        block.id
        for block in Message.from_dict(message).blocks
        if isinstance(block, ToolCallBlock)
    ]


def _answers(message: MessageDict) -> list[str]:
    """Return the ids of the calls that a message answers."""
    if message.get("role") not in _RESULTS:
        return []
    typed = Message.from_dict(message)
    if typed.tool_call_id:
        beside = [typed.tool_call_id]
    else:
        beside = []
    return [
        *beside,
        *(
            block.tool_call_id
            for block in typed.blocks
            if isinstance(block, ToolResultBlock)
        ),
    ]
