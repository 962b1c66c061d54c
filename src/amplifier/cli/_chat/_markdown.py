"""Blocks of Markdown as a terminal shows them: with rich, or as they were written."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from io import StringIO
from typing import TYPE_CHECKING, Final

import attrs

from amplifier.cli._diffs import coloured_diff
from amplifier_kit import terminal
from amplifier_kit.terminal import visible

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Rendering", "columns", "has_screen", "wrapped"]

_WIDEST: Final = 100
_USUAL: Final = 80
_LONGEST: Final = 50_000
_THEME: Final = "ansi_dark"


def columns() -> int:
    """Return how many columns the terminal has."""
    return max(20, shutil.get_terminal_size((_USUAL, 24)).columns)


def wrapped(text: str) -> str:
    """Break long lines between words; a word that is too long, such as a path, stays whole."""
    width = columns() - 1
    return "\n".join(
        terminal.wrapped(line, width, " " * (len(line) - len(line.lstrip()) + 2))
        for line in text.split("\n")
    )


def has_screen() -> bool:
    """Tell whether the terminal can do more than print lines: its `TERM` is neither empty nor `dumb`."""
    return os.environ.get("TERM", "dumb").lower() not in ("", "dumb", "unknown")


@attrs.define(eq=False)
class Rendering:
    """Renders blocks for one terminal.

    Args:
        is_rich: whether Markdown is laid out; else it is shown as it was written.
        has_colour: whether colours are shown.
    """

    is_rich: bool
    has_colour: bool
    _console: Console | None = None

    @classmethod
    def of(cls, stream: object) -> Rendering:
        """Choose what fits the terminal behind a stream."""
        from amplifier_kit.terminal import has_colour

        return cls(has_screen() and find_spec("rich") is not None, has_colour(stream))

    def block(self, text: str, *, dim: bool = False) -> str:
        """Return a block with a line end; control characters are visible, and no link hides its address."""
        text = visible(text)
        # Laying out a huge block would stop the screen for seconds.
        if not self.is_rich or len(text) > _LONGEST:
            return text + "\n"
        try:
            return self._laid_out(text, dim=dim)
        except Exception:
            # a text that rich fails on is shown as it is, and the turn goes on
            return text + "\n"

    def diff(self, text: str) -> str:
        """Return a unified diff that is visible already, its lines coloured by what they do."""
        return f"{coloured_diff(text) if self.has_colour else text}\n"

    def line(self, text: str, style: str) -> str:
        """Return a line that is visible already, in a style: `dim`, `bold`, `red`."""
        if not self.has_colour:
            return text + "\n"
        import click

        styled = click.style(
            text,
            dim=style == "dim",
            bold=style == "bold",
            fg="red" if style == "red" else None,
        )
        return styled + "\n"

    def _laid_out(self, text: str, *, dim: bool) -> str:
        from rich.markdown import Markdown

        console = self._make_console()
        console.width = min(columns(), _WIDEST) - 1
        with console.capture() as captured:
            console.print(
                # No hyperlinks: a link's text could show another address than it opens.
                Markdown(text, code_theme=_THEME, hyperlinks=False),
                style="dim" if dim else None,
            )
        return (
            "\n".join(line.rstrip() for line in captured.get().split("\n")).strip("\n")
            + "\n"
        )

    def _make_console(self) -> Console:
        if self._console is None:
            from rich.console import Console

            self._console = Console(
                file=StringIO(),
                force_terminal=self.has_colour,
                no_color=not self.has_colour,
                color_system="auto" if self.has_colour else None,
                highlight=False,
                # `:name:` and `[name]` are what the model wrote, not commands of rich.
                emoji=False,
                markup=False,
                legacy_windows=False,
            )
        return self._console
