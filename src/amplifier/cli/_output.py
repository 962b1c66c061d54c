"""What goes to standard output: the answer as text, as one JSON object, or as a line of JSON for each event."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, Final, Protocol, TextIO

import attrs

from amplifier.cli._diffs import coloured_diff, diff_of
from amplifier.cli._exits import describe
from amplifier.cli._terminal import (
    OutputClosedError,
    inert_json,
    notice,
    notice_lines,
    one_line,
    visible,
)
from amplifier_kit.event_json import end_to_json, event_to_json, json_or_text
from amplifier_kit.terminal import call_text, progress_text
from amplifier_sdk.chat import COMPLETE_FINISH_REASONS
from amplifier_sdk.errors import TurnCancelled
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.progress import ToolOutput, ToolProgress
from amplifier_sdk.streaming import (
    StreamEvent,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)

if TYPE_CHECKING:
    from amplifier_kit.redaction import SinkRedactor
    from amplifier_sdk.chat import ToolCall
    from amplifier_sdk.results import ToolResult

__all__ = [
    "EventLines",
    "LineBeside",
    "Output",
    "OutputRecord",
    "TextAnswer",
    "TurnWriter",
    "ending_notes",
    "make_writer",
]

_DIFF_LINES: Final = 200
_UNASKED: Final = "tool_choice: auto"
"""What each request with tools asks for, and no person; a warning about it would be about nothing they typed."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@attrs.frozen(eq=False)
class Output:
    """Standard output, written through at once."""

    stream: BinaryIO
    encoding: str = "utf-8"

    @classmethod
    def standard(cls) -> Output:
        """Take the standard output of now; it stays the same when `sys.stdout` is redirected later."""
        return cls(sys.stdout.buffer, sys.stdout.encoding)

    def write(self, text: str) -> None:
        """Write text in the encoding of the terminal; what that lacks is written as escapes.

        Raises:
            OutputClosedError: nobody reads any more.
        """
        self._write(text.encode(self.encoding, "backslashreplace"))

    def write_json(self, value: Mapping[str, JSONValue]) -> None:
        """Write a line of JSON in UTF-8 without any character that a terminal obeys."""
        text = _SURROGATE.sub(
            "\ufffd", json.dumps(value, ensure_ascii=False, allow_nan=False)
        )
        self._write(f"{inert_json(text)}\n".encode())

    def _write(self, data: bytes) -> None:
        try:
            self.stream.write(data)
            self.stream.flush()
        except BrokenPipeError as error:
            raise OutputClosedError from error


class TurnWriter(Protocol):
    """Writes one turn."""

    def write(self, event: StreamEvent, /) -> None:
        """Write what an event adds."""
        ...

    def fail(self, error: BaseException, /) -> None:
        """Close what was begun; the error itself is reported on standard error by whoever catches it."""
        ...


def ending_notes(event: TurnFinished) -> Iterator[str]:
    """Yield a line for each thing in which a turn did not end as one that was simply answered."""
    if event.limit is not None:
        yield f"the turn ended early: its limit {event.limit!r} is reached"
    reason = event.finish_reason
    # Vendors add reasons of their own; what is not known as complete is reported.
    if reason is not None and reason not in COMPLETE_FINISH_REASONS:
        yield f"the answer is incomplete: the model stopped because of {one_line(reason)!r}"
    for degradation in event.degradations:
        if degradation.requested == _UNASKED:
            yield one_line(f"note: {degradation.reason}")
        else:
            yield one_line(
                f"warning: the model does not support what was asked: {degradation}"
            )


def make_writer(
    form: str, output: Output, session_id: str, *, is_checked: bool = False
) -> TurnWriter:
    """Make the writer of an output form: `text`, `json` or `ndjson`; for `is_checked` see `TextAnswer`."""
    if form == "json":
        return OutputRecord(output, session_id)
    if form == "ndjson":
        return EventLines(output, session_id)
    return TextAnswer(output, is_checked=is_checked)


class LineBeside(io.TextIOBase):
    """Another stream at the terminal that shows an answer: what is written to it begins on a line of its own.

    Args:
        stream: the other stream, such as standard error.
        end_line: ends the answer's line where one is begun.
    """

    def __init__(self, stream: TextIO, end_line: Callable[[], None]) -> None:
        self._stream = stream
        self._end_line = end_line

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base's is none to assign to either
        """The stream's encoding."""
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]  # likewise
        """What the stream does with characters that its encoding lacks."""
        return self._stream.errors

    def write(self, text: str, /) -> int:
        """End the answer's line and write."""
        with suppress(OutputClosedError):  # the other stream has readers still
            self._end_line()
        return self._stream.write(text)

    def flush(self) -> None:
        """Show what was written."""
        self._stream.flush()

    def fileno(self) -> int:
        """The stream's file."""
        return self._stream.fileno()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()

    def writable(self) -> bool:
        """That it can be written to."""
        return True


@attrs.define(eq=False)
class TextAnswer:
    """The text as it comes, ending in one line end; what tools do is reported on standard error, without secrets.

    `shows_diffs` says whether that includes the diffs of edits: nobody was asked about them. `is_checked` says
    whether the answer counts only when it was checked: it is written at the end then.
    """

    output: Output
    redactor: SinkRedactor | None = None
    shows_diffs: bool = False
    is_checked: bool = False
    _written: list[str] = attrs.field(factory=list)
    _held: str = ""
    _inside_line: bool = False

    def write(self, event: StreamEvent, /) -> None:
        """Write text; end the line before anything is reported of tools."""
        match event:
            case TextDelta(text=text) if not self.is_checked:
                self._write_text(text)
            case ToolStarted(call=call):
                self._end_line()
                if self.redactor is None:
                    redact = None
                else:
                    redact = self.redactor.redact
                self._report(call.name, call_text(call.arguments, redact))
            case ToolProgress(tool_name=name, message=text, done=done, total=total):
                self._end_line()
                self._report(name, progress_text(text, done, total), ":")
            case ToolOutput(tool_name=name, text=text):
                self._end_line()
                for line in self._redacted(text).splitlines():
                    notice(f"tool {one_line(name)} | {one_line(line)}")
            case ToolFinished(call=call, result=result):
                self._report_end(call, result)
            case TurnFinished(text=text):
                self._finish(text)
                for note in ending_notes(event):
                    notice(note)
            case _:
                pass

    def fail(self, _: BaseException, /) -> None:
        """End the line of a text that broke off."""
        self._end_line()

    def beside(self, stream: TextIO) -> LineBeside:
        """Return a stream to write to at the same terminal, where the answer's line is ended first."""
        return LineBeside(stream, self._end_line)

    def _report_end(self, call: ToolCall, result: ToolResult) -> None:
        diff = diff_of(result)
        if not result.success:
            self._end_line()
            message = result.get_serialized_output().removeprefix("Error: ")
            self._report(call.name, message, " failed:")
        elif diff and self.shows_diffs:
            self._end_line()
            self._show_diff(diff)

    def _show_diff(self, diff: str) -> None:
        lines = visible(self._redacted(diff)).splitlines()
        notice_lines(coloured_diff("\n".join(lines[:_DIFF_LINES])))
        if len(lines) > _DIFF_LINES:
            notice(f"... {len(lines) - _DIFF_LINES:,} more lines")

    def _report(self, tool: str, text: str, sign: str = "") -> None:
        line = f"tool {one_line(tool)}{sign} {one_line(self._redacted(text))}"
        notice(line.rstrip())

    def _redacted(self, text: str) -> str:
        if self.redactor is None:
            return text
        return self.redactor.redact_text(text)

    def _write_text(self, text: str) -> None:
        """Write all but the line ends at the end: the next text decides whether they were the last."""
        self._written.append(text)
        # A model's text must not move the cursor or change the terminal's title.
        text = self._held + visible(text)
        shown = text.rstrip("\n")
        self._held = text[len(shown) :]
        if shown:
            self._inside_line = True
            self.output.write(shown)

    def _finish(self, answer: str) -> None:
        """Write an answer that did not stream, and end the last line."""
        if not self._written or answer.strip() not in "".join(self._written):
            self._end_line()
            self._write_text(answer)
        self._end_line()

    def _end_line(self) -> None:
        self._held = ""
        if self._inside_line:
            self._inside_line = False
            self.output.write("\n")


@attrs.define(eq=False)
class OutputRecord:
    """One JSON object at the end of the turn."""

    output: Output
    session_id: str
    _text: list[str] = attrs.field(factory=list)
    _tools: list[JSONValue] = attrs.field(factory=list)

    def write(self, event: StreamEvent, /) -> None:
        """Note what the record holds; the turn's last event writes it."""
        match event:
            case TextDelta(text=text):
                self._text.append(text)
            case ToolFinished(call=call, result=result):
                # The answer is what follows the last tool call; what came before
                # announced it.
                self._text.clear()
                self._tools.append(
                    {
                        "name": call.name,
                        "arguments": json_or_text(call.arguments),
                        "success": result.success,
                    }
                )
            case TurnFinished(text=text):
                self._write(text, **end_to_json(event))
            case _:
                pass

    def fail(self, error: BaseException, /) -> None:
        """Write the record with the error and the text that there was."""
        self._write(
            "".join(self._text),
            error={"type": type(error).__name__, "message": describe(error)},
        )

    def _write(self, text: str, **rest: JSONValue) -> None:
        self.output.write_json(
            {"session_id": self.session_id, "text": text, **rest, "tools": self._tools}
        )


@attrs.define(eq=False)
class EventLines:
    """A line of JSON for each event, as it happens."""

    output: Output
    session_id: str

    def write(self, event: StreamEvent, /) -> None:
        """Write one line."""
        self.output.write_json(self._line(event))

    def fail(self, error: BaseException, /) -> None:
        """Write the error as the last line."""
        line: JSONObject = {
            "type": "error",
            "error": type(error).__name__,
            "message": describe(error),
        }
        # A program that reads the last line alone gets the text as well.
        if isinstance(error, TurnCancelled):
            line["text"] = error.partial_text
        self.output.write_json({**line, "session_id": self.session_id})

    def _line(self, event: StreamEvent) -> JSONObject:
        line = event_to_json(event)
        if isinstance(event, TurnFinished):
            line["session_id"] = self.session_id
        return line
