"""A request's messages with what waits for that one request: the history is neither changed nor copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias, final, overload

import attrs

from amplifier_sdk.content import ContentBlock, TextBlock
from amplifier_sdk.messages import Message
from amplifier_sdk.results import ContextInjection

__all__ = ["with_injections"]

_Slice: TypeAlias = "slice[int | None, int | None, int | None]"


def with_injections(
    messages: Sequence[Message], injections: Sequence[ContextInjection]
) -> Sequence[Message]:
    """Return the messages with texts behind them, or in the last tool result where a text asks for that place."""
    length = len(messages)
    added: list[Message] = []
    for injection in injections:
        if injection.append_to_last_tool_result:
            if not added and length and messages[-1].role == "tool":
                length -= 1
                added.append(messages[-1])
            if added and added[-1].role == "tool":
                added[-1] = attrs.evolve(
                    added[-1], content=_appended(added[-1].content, injection.content)
                )
                continue
        added.append(Message(role=injection.role, content=injection.content))
    return _Overlay(messages, length, tuple(added))


def _appended(
    content: str | Sequence[ContentBlock], text: str
) -> str | Sequence[ContentBlock]:
    if isinstance(content, str):
        return f"{content}\n\n{text}"
    return (*content, TextBlock(text=f"\n\n{text}"))


@final
@attrs.frozen(eq=False, repr=False)
class _Overlay(Sequence[Message]):
    """The first messages of a sequence, and others behind them."""

    _base: Sequence[Message]
    _shown: int
    _added: tuple[Message, ...]

    def __len__(self) -> int:
        return self._shown + len(self._added)

    def __iter__(self) -> Iterator[Message]:
        yield from islice(self._base, self._shown)
        yield from self._added

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: _Slice) -> list[Message]: ...
    def __getitem__(self, index: int | _Slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self._at(at) for at in range(*index.indices(len(self)))]
        at = index
        if index < 0:
            at = index + len(self)
        if not 0 <= at < len(self):
            raise IndexError(f"message {index} of {len(self)}")
        return self._at(at)

    def _at(self, at: int) -> Message:
        if at < self._shown:
            return self._base[at]
        return self._added[at - self._shown]
