"""What a keyboard hands on, and what belongs to it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

import attrs

__all__ = [
    "Board",
    "EndOfInput",
    "EnteredLine",
    "Interrupt",
    "Key",
    "NextMode",
    "Shortcut",
    "Stop",
]


@attrs.frozen
class EnteredLine:
    """A text that was entered.

    Args:
        text: all of it.
        shown: what the prompt showed of it, with placeholders for what was pasted; `None` for all of it.
    """

    text: str
    shown: str | None = None


@attrs.frozen
class Interrupt:
    """Ctrl-C, as a key."""


@attrs.frozen
class EndOfInput:
    """The end of the input: Ctrl-D, or with `is_gone` the terminal is gone, and nothing more can be asked."""

    is_gone: bool = False


@attrs.frozen
class Stop:
    """Esc: what runs is to stop."""


@attrs.frozen
class NextMode:
    """Shift-Tab: the mode after the present one."""


@attrs.frozen
class Shortcut:
    """A key that stands for a command which runs at once."""

    command: str


Key: TypeAlias = EnteredLine | Interrupt | EndOfInput | Stop | NextMode | Shortcut
"""What is typed, as the conversation hears it."""


class Board(Protocol):
    """A keyboard, with the screen above it."""

    @property
    def has_live(self) -> bool:
        """Whether what is incomplete is shown as well."""
        ...

    async def listen(self, take: Callable[[Key], object]) -> None:
        """Hand on what is typed until cancelled; the terminal is restored then.

        Args:
            take: takes each key, in the program's event loop.
        """
        ...

    def away(self) -> AbstractAsyncContextManager[None]:
        """Leave the terminal to somebody else inside the block; what was typed so far stays."""
        ...

    def write(self, text: str) -> None:
        """Show whole lines that stay, from any thread.

        Raises:
            OutputClosedError: nobody reads any more.
        """
        ...

    def show(self, above: str, below: str) -> None:
        """Show what is incomplete over the prompt, and a line under it."""
        ...
