"""One turn as a person sees it: blocks of the answer as they become whole, tools with their times, what it cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Self

import attrs

from amplifier.app.commands.status_commands import usage_text
from amplifier.app.settings.schema import DisplaySettings
from amplifier.cli._chat._blocks import MarkdownBlocks
from amplifier.cli._chat._markdown import Rendering, columns, wrapped
from amplifier.cli._chat._outputs import ShownOutput, ToolOutputs
from amplifier.cli._diffs import diff_of
from amplifier.cli._output import ending_notes
from amplifier_kit.redaction import SinkFilter, SinkRedactor
from amplifier_kit.terminal import (
    call_text,
    cut,
    one_line,
    progress_text,
    visible,
    whole_lines,
)
from amplifier_sdk.chat import ToolCall, Usage
from amplifier_sdk.legible import escaped
from amplifier_sdk.progress import ToolOutput, ToolProgress
from amplifier_sdk.results import ToolResult
from amplifier_sdk.streaming import (
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UsageReported,
)

__all__ = ["Painter"]

_TAIL_ROWS: Final = 8
_TITLE: Final = 300
_REMEMBERED: Final = 4_000
"""How many characters of what streamed are remembered: an answer may be of any length."""
_MAX_LINE: Final = 1_000
_DIFF_ROWS: Final = 40
_ERROR: Final = "Error: "
"""What the text of a failure begins with for the model."""
_WIDE_BLANK: Final = "\u3000"
"""A blank of Chinese and Japanese."""


@attrs.define(eq=False)
class _Running:
    """A tool call that runs; `arguments` are shown, without secrets."""

    call: ToolCall
    arguments: str
    output: SinkFilter
    whole: ShownOutput
    began: float = attrs.field(factory=time.monotonic)
    news: str = ""
    shown: int = 0
    begun: str = ""

    @classmethod
    def of(cls, call: ToolCall, redactor: SinkRedactor) -> Self:
        """Begin a call."""
        arguments = redactor.redact_text(call_text(call.arguments, redactor.redact))
        title = one_line(f"tool {call.name} {arguments}", _TITLE)
        return cls(call, arguments, SinkFilter(redactor), ShownOutput(title, call))


@attrs.define(eq=False)
class Painter:
    """Shows one turn.

    Args:
        write: takes whole lines.
        refresh: shows anew what is incomplete; `None` where the terminal cannot.
        rendering: lays text out.
        redactor: the session's.
        display: what is shown.
        output_lines: how many lines are shown of what a tool puts out.
        outputs: where all that tools put out is remembered.
        draw: shows at once what is incomplete, before lines that were part of it stay.
        asked: the questions of this turn, which the person has read.
    """

    write: Callable[[str], None]
    refresh: Callable[[], None] | None
    rendering: Rendering
    redactor: SinkRedactor
    display: DisplaySettings
    output_lines: int = 8
    outputs: ToolOutputs = attrs.field(factory=ToolOutputs)
    draw: Callable[[], None] | None = None
    asked: list[str] = attrs.field(factory=list)
    usage: Usage | None = None
    _text: MarkdownBlocks = attrs.field(factory=MarkdownBlocks)
    _filter: SinkFilter = attrs.field(init=False)
    _is_thinking: bool = False
    _seen: str = ""
    _tools: dict[str, _Running] = attrs.field(factory=dict)
    _began: float = attrs.field(factory=time.monotonic)

    def __attrs_post_init__(self) -> None:
        self._filter = SinkFilter(self.redactor)

    @property
    def seconds(self) -> float:
        """How long the turn has taken so far."""
        return time.monotonic() - self._began

    def live(self, width: int) -> str:
        """Return what is incomplete, in a few rows."""
        rows = _last_rows(visible(self._text.tail), width)
        if self._is_thinking and not rows:
            rows = ["thinking..."]
        for running in self._tools.values():
            rows.append(
                cut(f"{_call_line(running)} ({_seconds(running.began)})", width)
            )
        return "\n".join(rows)

    def paint(self, event: StreamEvent) -> None:
        """Show what an event adds."""
        match event:
            case TextDelta(text=text):
                self._seen = (self._seen + text)[-_REMEMBERED:]
                self._add(text, is_thinking=False)
            case ThinkingDelta(text=text):
                self._add(text, is_thinking=True)
            case ToolStarted(call=call):
                self._start(call)
            case ToolProgress(call_id=call_id, message=text, done=done, total=total):
                self._progress(call_id, progress_text(text, done, total))
            case ToolOutput(call_id=call_id, text=text):
                self._output(call_id, text)
            case ToolFinished(call=call, result=result):
                self._finish_tool(call, result)
            case UsageReported(total=total):
                self.usage = total
            case TurnFinished():
                self._finish(event)
            case _:
                return
        self._renew()

    def end(self) -> None:
        """Show what is left of a turn that broke off."""
        self.flush()
        self._tools.clear()
        self._renew()

    def flush(self) -> None:
        """Show the rest of the text, and begin anew."""
        for block in [*self._text.feed(self._filter.end()), *self._text.end()]:
            self._show(block)
        self._is_thinking = False

    def _add(self, text: str, *, is_thinking: bool) -> None:
        # A block is either of the two: mixed, the style of one would colour the other.
        if is_thinking is not self._is_thinking:
            self.flush()
            self._is_thinking = is_thinking
        if is_thinking and not self._shows_thinking:
            return
        for block in self._text.feed(self._filter.feed(text)):
            self._show(block)

    @property
    def _shows_thinking(self) -> bool:
        return self.display.show_thinking_stream or self.display.visibility != "user"

    def _show(self, block: str) -> None:
        self._write(self.rendering.block(block, dim=self._is_thinking) + "\n")

    def _write(self, text: str) -> None:
        # Else the same words would stand twice on the screen for a moment.
        if self.draw is not None:
            self.draw()
        self.write(text)

    def _start(self, call: ToolCall) -> None:
        self.flush()
        running = self._tools[call.id] = _Running.of(call, self.redactor)
        if self.refresh is None and self.display.show_tool_lines:
            self._note(_call_line(running))

    def _progress(self, call_id: str, text: str) -> None:
        running = self._tools.get(call_id)
        if running is None:
            return
        running.news = self.redactor.redact_text(text)
        if self.refresh is None and self.display.show_tool_lines:
            self._note(f"tool {running.call.name}: {running.news}")

    def _output(self, call_id: str, text: str) -> None:
        running = self._tools.get(call_id)
        if running is None:
            return
        running.whole.add(text)
        if not self.display.show_tool_lines:
            return
        # what is counted alone need not be cleaned
        is_shown = running.shown < self.output_lines
        if is_shown:
            cleaned = running.output.feed(text)
        else:
            cleaned = running.output.end() + text
        lines, running.begun = whole_lines(running.begun + cleaned)
        self._show_output(running, lines)

    def _end_output(self, running: _Running) -> None:
        self._show_output(running, (running.begun + running.output.end()).splitlines())
        if running.shown > self.output_lines:
            more = running.shown - self.output_lines
            self._report_more("  | ", more)

    def _show_output(self, running: _Running, lines: Sequence[str]) -> None:
        for line in lines[: max(0, self.output_lines - running.shown)]:
            self._write(self.rendering.line(_output_line(line), "dim"))
        running.shown += len(lines)

    def _finish_tool(self, call: ToolCall, result: ToolResult) -> None:
        self.flush()
        # A call that was refused ends without having started.
        running = self._tools.pop(call.id, None) or _Running.of(call, self.redactor)
        running.whole.result = result
        self.outputs.add(running.whole)
        if not self.display.show_tool_lines and result.success:
            return
        self._end_output(running)
        took = _seconds(running.began)
        if result.success:
            running.news = ""
            line, width = _call_line(running), columns() - len(took) - 4
            self._note(f"{cut(line, width)} ({took})")
            self._show_diff(diff_of(result))
            return
        message = result.get_serialized_output().removeprefix(_ERROR)
        why = one_line(self.redactor.redact_text(message), 500)
        self._note(
            f"tool {one_line(call.name)} failed after {took}: {why}",
            "red",
            is_whole=True,
        )

    def _show_diff(self, diff: str) -> None:
        """Show what a tool changed, unless a question showed it before."""
        if not diff or any(diff.strip() in question for question in self.asked):
            return
        lines = visible(self.redactor.redact_text(diff)).splitlines()
        shown = "\n".join(line[:_MAX_LINE] for line in lines[:_DIFF_ROWS])
        self._write(self.rendering.diff(shown))
        if len(lines) > _DIFF_ROWS:
            self._report_more("", len(lines) - _DIFF_ROWS)

    def _report_more(self, lead: str, count: int) -> None:
        text = f"{lead}... {count:,} more lines, Ctrl-O or /expand shows them"
        self._write(self.rendering.line(cut(text, columns() - 1), "dim"))

    def _finish(self, event: TurnFinished) -> None:
        self.flush()
        # A loop may answer with a text that it never streamed.
        if event.text.strip()[-_REMEMBERED // 2 :] not in self._seen:
            self._add(event.text, is_thinking=False)
            self.flush()
        for note in ending_notes(event):
            self._note(note, is_whole=True)
        self.usage = event.usage or self.usage
        if self.display.show_usage:
            if event.tool_calls > 1:
                tools = f", {event.tool_calls} tool calls"
            else:
                tools = ""
            self._note(f"{usage_text(self.usage)}{tools}, {self.seconds:.1f} s")

    def _note(self, text: str, style: str = "dim", *, is_whole: bool = False) -> None:
        shown = one_line(text, 1000)
        if is_whole:
            shown = wrapped(shown)
        else:
            shown = cut(shown, columns() - 1)
        self._write(self.rendering.line(shown, style))

    def _renew(self) -> None:
        if self.refresh is not None:
            self.refresh()


def _call_line(running: _Running) -> str:
    if running.news:
        news = f": {running.news}"
    else:
        news = ""
    shown = news or f" {running.arguments}"
    return one_line(f"tool {running.call.name}{shown}".rstrip(), 300)


def _output_line(line: str) -> str:
    """Return a line that a tool put out: its blanks stay, since they make columns."""
    shown = escaped(line[:_MAX_LINE].expandtabs(8), allowed=_WIDE_BLANK)
    return cut(f"  | {shown}", columns() - 1)


def _seconds(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"


def _last_rows(text: str, width: int) -> list[str]:
    """Return the last rows of a text that is laid out as it is written."""
    rows: list[str] = []
    # a wide character takes two columns
    width = max(1, width if text.isascii() else width // 2)
    for line in text.expandtabs(4).split("\n"):
        rows += [line[at : at + width] for at in range(0, len(line), width)] or [""]
    if text.strip():
        return rows[-_TAIL_ROWS:]
    return []
