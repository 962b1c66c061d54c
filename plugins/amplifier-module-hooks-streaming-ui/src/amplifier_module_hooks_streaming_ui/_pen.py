"""The pen: lines and running text on one stream, indented, cut to its width, coloured where that shows."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

import attrs

from amplifier_kit.terminal import TextStream, has_colour, one_line, visible

__all__ = ["Pen", "Style"]

Style: TypeAlias = Literal["plain", "dim", "good", "bad", "bold"]
"""How a text looks where colours are shown."""

_CODES: Final[dict[Style, str]] = {"dim": "2", "good": "32", "bad": "31", "bold": "1"}
_INDENT: Final = "  "
_MAX_LEVEL: Final = 10
_USUAL_WIDTH: Final = 80


@attrs.define(eq=False)
class Pen:
    """Writes for one stream; knows whether a line is begun, and by whom.

    Args:
        is_colourful: whether colours are written.
        width: returns how many columns a line has.
    """

    is_colourful: bool
    width: Callable[[], int]
    _writer: object = None
    _line_ends: str = ""

    @classmethod
    def of(
        cls,
        stream: TextStream,
        colour: Literal["auto", "always", "never"],
        width: int | None,
    ) -> Pen:
        """Make the pen of a stream.

        Args:
            stream: where the text goes.
            colour: `auto` for colours on terminals alone.
            width: columns; `None` for those of the terminal, and 80 elsewhere.
        """
        if colour == "auto":
            is_colourful = has_colour(stream)
        else:
            is_colourful = colour == "always"
        return cls(is_colourful, lambda: _width_of(stream) if width is None else width)

    def line(
        self, text: str, style: Style = "plain", level: int = 0, lead: str = ""
    ) -> str:
        """Return a line of its own, cut to the width; `lead` stands before the text, which is redacted."""
        indent = _INDENT * min(level, _MAX_LEVEL) + lead
        shown = one_line(text, self.width() - len(indent) - 1)
        return f"{self.end_line()}{indent}{self._styled(shown, style)}\n"

    def flow(self, writer: object, text: str, style: Style = "plain") -> str:
        """Return running text that goes on where the writer left off; line ends at the end wait for what follows."""
        begun = ""
        if writer is not self._writer:
            begun = self.end_line()
        text = self._line_ends + visible(text)
        shown = text.rstrip("\n")
        if not shown:
            if self._writer is not None:
                self._line_ends = text
            else:
                self._line_ends = ""
            return begun
        self._line_ends = text[len(shown) :]
        if self._writer is not writer:
            shown = shown.lstrip("\n")
        self._writer = writer
        return begun + self._styled(shown, style)

    def end_line(self) -> str:
        """Return what ends a line that is begun."""
        self._line_ends = ""
        is_begun, self._writer = self._writer is not None, None
        if is_begun:
            return "\n"
        return ""

    def _styled(self, text: str, style: Style) -> str:
        code = None
        if self.is_colourful:
            code = _CODES.get(style)
        if code is None:
            return text
        return f"\x1b[{code}m{text}\x1b[0m"


def _width_of(stream: TextStream) -> int:
    """Return the columns of the terminal behind a stream."""
    handle = getattr(stream, "fileno", None)
    try:
        if handle:
            return os.get_terminal_size(handle()).columns or _USUAL_WIDTH
        return _USUAL_WIDTH
    except (OSError, ValueError):  # it is no terminal, or closed
        return _USUAL_WIDTH
