"""An append-only log of messages, with views that cost nothing.

A context manager keeps its messages in a `MessageLog` and hands out views of it. A view is a sequence of
the stored JSON objects; `typed` reads the same view as `Message` values, each converted once and cached
beside its message. So a request costs no walk over the history, however long it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, TypeAlias, final, overload

from amplifier_sdk.messages import Message, MessageDict

__all__ = ["MessageLog", "MessageView", "typed"]

_Slice: TypeAlias = "slice[int | None, int | None, int | None]"


@final
class MessageLog:
    """An append-only list of stored messages, each with its typed form once somebody asked for it."""

    __slots__ = ("_messages", "_typed")

    def __init__(self, messages: Iterable[MessageDict] = ()) -> None:
        self._messages: list[MessageDict] = list(messages)
        self._typed: dict[int, Message] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def append(self, message: MessageDict) -> None:
        """Add a message at the end; views made before do not see it."""
        self._messages.append(message)

    def view(self, skip: Sequence[tuple[int, int]] = ()) -> MessageView:
        """Return a view of all messages of now but those in the given ranges (start, stop), which ascend."""
        length = len(self._messages)
        return MessageView(self, _kept(length, skip) if skip else (range(length),))

    def stored(self, index: int) -> MessageDict:
        """Return the stored message at an index from 0."""
        return self._messages[index]

    def message(self, index: int) -> Message:
        """Return the typed message at an index from 0."""
        message = self._typed.get(index)
        if message is None:
            message = self._typed[index] = Message.from_dict(self._messages[index])
        return message


def _kept(length: int, skip: Sequence[tuple[int, int]]) -> tuple[range, ...]:
    ranges, start = [], 0
    for first, stop in skip:
        ranges.append(range(start, first))
        start = stop
    ranges.append(range(start, length))
    return tuple(kept for kept in ranges if kept)


@final
class MessageView(Sequence[MessageDict]):
    """The messages of a log at one moment, without a copy."""

    __slots__ = ("_log", "_ranges")

    def __init__(self, log: MessageLog, ranges: tuple[range, ...]) -> None:
        self._log = log
        self._ranges = ranges

    def __len__(self) -> int:
        ranges = self._ranges
        if len(ranges) == 1:
            return len(ranges[0])
        return sum(map(len, ranges))

    def __iter__(self) -> Iterator[MessageDict]:
        stored = self._log.stored
        return (stored(index) for kept in self._ranges for index in kept)

    @overload
    def __getitem__(self, index: int) -> MessageDict: ...
    @overload
    def __getitem__(self, index: _Slice) -> list[MessageDict]: ...
    def __getitem__(self, index: int | _Slice) -> MessageDict | list[MessageDict]:
        if isinstance(index, slice):
            return [
                self._log.stored(self._locate(at))
                for at in range(*index.indices(len(self)))
            ]
        if index == -1 and self:  # asked for at the end of every turn
            return self._log.stored(self._ranges[-1][-1])
        return self._log.stored(self._locate(index))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, (str, bytes)):
            return NotImplemented
        return len(self) == len(other) and all(
            mine == theirs for mine, theirs in zip(self, other, strict=True)
        )

    __hash__: ClassVar[None]  # type: ignore[assignment]  # a sequence of dicts is not hashable

    def __repr__(self) -> str:
        return f"MessageView({list(self)!r})"

    def _locate(self, index: int) -> int:
        return _locate(self._ranges, index, len(self))


def _locate(ranges: tuple[range, ...], index: int, length: int) -> int:
    if index < 0:
        offset = index + length
    else:
        offset = index
    for kept in ranges:
        if 0 <= offset < len(kept):
            return kept[offset]
        offset -= len(kept)
    raise IndexError(f"message {index} of {length}")


@final
class _TypedView(Sequence[Message]):
    __slots__ = ("_extra", "_log", "_ranges")

    def __init__(
        self, log: MessageLog, ranges: tuple[range, ...], extra: tuple[Message, ...]
    ) -> None:
        self._log = log
        self._ranges = ranges
        self._extra = extra

    def __len__(self) -> int:
        return sum(map(len, self._ranges)) + len(self._extra)

    def __iter__(self) -> Iterator[Message]:
        message = self._log.message
        yield from (message(index) for kept in self._ranges for index in kept)
        yield from self._extra

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: _Slice) -> list[Message]: ...
    def __getitem__(self, index: int | _Slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self._at(at) for at in range(*index.indices(len(self)))]
        return self._at(index)

    def _at(self, index: int) -> Message:
        length = len(self)
        stored = length - len(self._extra)
        if index < 0:
            at = index + length
        else:
            at = index
        if stored <= at < length:
            return self._extra[at - stored]
        return self._log.message(
            _locate(self._ranges, at if at >= 0 else length, stored)
        )


def typed(
    messages: Sequence[MessageDict], extra: Sequence[Message] = ()
) -> Sequence[Message]:
    """Read stored messages as `Message` values, with `extra` ones at the end.

    A view converts on demand and keeps what it converted; any other sequence is converted now.

    Raises:
        ValueError: a message has a role or content that no message can have.
    """
    if isinstance(messages, MessageView):
        return _TypedView(messages._log, messages._ranges, tuple(extra))  # noqa: SLF001  # a view of its own log
    return (*(Message.from_dict(message) for message in messages), *extra)
