"""An append-only log of messages, with snapshots whose typed form is made once.

A context manager keeps its messages in a `MessageLog` and hands out views of it. A view is a list of the stored
JSON objects, as the module contracts have it: a copy of references, which costs less than a walk over the history in
Python. `typed` reads a view as `Message` values, each converted once and cached beside its message. So a request
converts nothing that an earlier one converted, however long the history is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, final, overload

from amplifier_sdk.messages import Message, MessageDict

__all__ = ["MessageLog", "MessageView", "typed"]

_Slice: TypeAlias = "slice[int | None, int | None, int | None]"


@final
class MessageLog:
    """An append-only list of stored messages, each with its typed form once somebody asked for it."""

    __slots__ = ("_messages", "_typed")

    def __init__(self, messages: Iterable[MessageDict] = ()) -> None:
        self._messages: list[MessageDict] = list(messages)
        # The message stands beside its typed form: as long as it does, nothing else has its id.
        self._typed: dict[int, tuple[MessageDict, Message]] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def append(self, message: MessageDict) -> None:
        """Add a message at the end; views made before do not see it."""
        self._messages.append(message)

    def view(self, skip: Sequence[tuple[int, int]] = ()) -> MessageView:
        """Return all messages of now but those in the given ranges (start, stop), which ascend."""
        view = MessageView(self._messages)
        view.log = self
        # from the end, so that the earlier ranges stay where they are
        for first, stop in reversed(skip):
            del view[first:stop]
        return view

    def stored(self, index: int) -> MessageDict:
        """Return the stored message at an index from 0."""
        return self._messages[index]

    def message(self, stored: MessageDict) -> Message:
        """Return the typed form of a message, cached for the next time."""
        # by identity, since a mapping has no hash, and messages may be equal
        known = self._typed.get(id(stored))
        if known is None:
            known = self._typed[id(stored)] = stored, Message.from_dict(stored)
        return known[1]


@final
class MessageView(list[MessageDict]):
    """The messages of a log at one moment: a list of its own, which changes nothing of the log."""

    __slots__ = ("log",)

    log: MessageLog


@final
class _TypedView(Sequence[Message]):
    __slots__ = ("_read", "stored")

    stored: Sequence[MessageDict]
    """The stored messages that it reads, for whoever caches what it makes of each."""

    def __init__(self, messages: MessageView) -> None:
        self.stored = messages
        self._read = messages.log.message

    def __len__(self) -> int:
        return len(self.stored)

    def __iter__(self) -> Iterator[Message]:
        return map(self._read, self.stored)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: _Slice) -> list[Message]: ...
    def __getitem__(self, index: int | _Slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [*map(self._read, self.stored[index])]
        return self._read(self.stored[index])


def typed(messages: Sequence[MessageDict]) -> Sequence[Message]:
    """Read stored messages as `Message` values.

    A view converts on demand and caches what it converted; any other sequence is converted now.

    Raises:
        ValueError: a message has a role or content that no message can have.
    """
    if isinstance(messages, MessageView):
        return _TypedView(messages)
    return tuple(map(Message.from_dict, messages))
