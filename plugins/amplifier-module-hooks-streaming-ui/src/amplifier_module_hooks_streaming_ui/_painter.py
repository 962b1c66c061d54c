"""The painter: makes of one session's pieces what is written, without secrets; all of it in the screen's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from amplifier_kit.redaction import SinkFilter, SinkRedactor
from amplifier_kit.terminal import whole_lines
from amplifier_module_hooks_streaming_ui._pen import Pen, Style

__all__ = ["Flow", "Lines"]

_MAX_HELD: Final = 65_536
_LEAD: Final = "  "


@attrs.define(eq=False)
class Lines:
    """Lines of their own: of a text the first ones, each cut to the width of the stream.

    Args:
        pen: writes them.
        redactor: returns the session's redactor of now.
        level: how far they stand in.
        style: how they look.
        lead: what each begins with.
        limit: how many are written; the rest is counted.
    """

    pen: Pen
    redactor: Callable[[], SinkRedactor]
    level: int
    style: Style = "plain"
    lead: str = ""
    limit: int = 1

    def paint(self, text: str) -> str:
        """Write the first lines of a text."""
        found = self.redactor().redact_text(text).splitlines()
        shown = [
            self.pen.line(line, self.style, self.level, self.lead)
            for line in found[: self.limit]
        ]
        left = len(found) - self.limit
        if left > 0 and self.limit > 1:
            shown.append(
                self.pen.line(f"... {left:,} more lines", "dim", self.level, self.lead)
            )
        return "".join(shown)


@attrs.define(eq=False)
class Flow:
    """A text that comes in pieces: as it comes at the outermost level, and by whole lines below it.

    Sessions that work beside each other may all write, so that what is not the outermost one's keeps to whole lines.

    Args:
        pen: writes it.
        redactor: returns the session's redactor of now.
        level: how far it stands in; 0 lets it flow.
        style: how it looks.
        limit: how many lines are written; the rest is counted. `None` for all.
        title: a line to stand before it.
        label: what each line begins with, where each is cut to the width and those above `most` are not even counted.
    """

    pen: Pen
    redactor: Callable[[], SinkRedactor]
    level: int = 0
    style: Style = "plain"
    limit: int | None = None
    title: str | None = None
    label: str | None = None
    _filter: SinkFilter | None = None
    _line: str = ""
    _written: int = 0

    def paint(self, text: str) -> str:
        """Write what of it can be shown by now."""
        if (
            self.label is not None
            and self.limit is not None
            and self._written >= self.limit
        ):
            return ""
        begun = ""
        if self._filter is None:
            self._filter = SinkFilter(self.redactor())
            begun = ""
            if self.title is not None:
                begun = self.pen.line(self.title, "dim", self.level)
        return begun + self._show(self._filter.feed(text))

    def end(self, _: str) -> str:
        """Write what was held, and end the line."""
        if self._filter is None:
            return ""
        filter_, self._filter = self._filter, None
        shown = self._show(filter_.end())
        if self.is_flowing:
            return shown + self.pen.end_line()
        shown += self._lines([self._line] if self._line.strip() else [])
        if self.limit is None or self.label is not None:
            left = 0
        else:
            left = self._written - self.limit
        self._line, self._written = "", 0
        return shown + (
            self.pen.line(f"... {left:,} more lines", "dim", self.level, _LEAD)
            if left > 0
            else ""
        )

    @property
    def is_flowing(self) -> bool:
        """Whether it is written before its lines are whole."""
        return self.level == 0 and self.limit is None

    def _show(self, text: str) -> str:
        if self.is_flowing:
            if text:
                return self.pen.flow(self, text, self.style)
            return ""
        lines, self._line = whole_lines(self._line + text)
        if len(self._line) > _MAX_HELD:
            lines, self._line = [*lines, self._line], ""
        return self._lines(lines)

    def _lines(self, lines: list[str]) -> str:
        shown = []
        for line in lines:
            self._written += 1
            if self.limit is None or self._written <= self.limit:
                lead = ""
                if self.title is not None:
                    lead = _LEAD
                if self.label is None:
                    parts = self._parts(line)
                else:
                    parts = [f"{self.label}{line}"]
                shown += [
                    self.pen.line(part, self.style, self.level, lead) for part in parts
                ]
        return "".join(shown)

    def _parts(self, line: str) -> list[str]:
        """Bring a long line of running text onto several that fit."""
        room = max(20, self.pen.width() - 2 * self.level - 3)
        parts = [""]
        for word in line.split():
            if parts[-1] and len(parts[-1]) + len(word) >= room:
                parts.append("")
            parts[-1] += f" {word}" if parts[-1] else word
        return parts
