"""The watch: hears one session's events and hands to the screen what is shown of them; what can be set."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, Final, Literal

import attrs

from amplifier_kit.redaction import SinkRedactor
from amplifier_kit.terminal import call_text, progress_text
from amplifier_module_hooks_streaming_ui._painter import Flow, Lines
from amplifier_module_hooks_streaming_ui._pen import Style
from amplifier_module_hooks_streaming_ui._screen import Paint, StreamScreen
from amplifier_module_hooks_streaming_ui._totals import TurnTotals
from amplifier_sdk.bounds import amount, count, seconds
from amplifier_sdk.events import (
    ApprovalRequired,
    CancelRequested,
    ContentBlockDelta,
    ContentBlockEnd,
    ContextCompaction,
    ExecutionEnd,
    ExecutionStart,
    ProviderErrorPayload,
    ProviderResponse,
    ProviderRetry,
    ProviderThrottle,
    ToolErrorPayload,
    ToolPost,
    ToolPre,
    UserNotification,
)
from amplifier_sdk.progress import ToolOutputWritten, ToolProgressed
from amplifier_sdk.streaming import TextDelta, ThinkingDelta

__all__ = ["SessionDisplay", "StreamingUIConfig"]

_MAX_TEXT: Final = 100_000
_MARKS: Final[Mapping[object, str]] = {"completed": "[x]", "in_progress": "[>]"}


@attrs.define(eq=False)
class SessionDisplay:
    """Shows one session; its handlers only hand over, the screen's thread does the work."""

    screen: StreamScreen
    config: StreamingUIConfig
    session_id: str
    level: int
    redactor: Callable[[], SinkRedactor]
    parent: SessionDisplay | None = None
    totals: TurnTotals = attrs.field(factory=TurnTotals)
    _is_thinking: bool = False
    _is_closed: bool = False
    _streamed: set[int] = attrs.field(factory=set)
    _outputs: dict[str, tuple[Paint, Paint]] = attrs.field(factory=dict)
    _lines: dict[tuple[Style, str, int, int], Paint] = attrs.field(factory=dict)
    _text: Paint = attrs.field(init=False)
    _end_text: Paint = attrs.field(init=False)
    _thinking: Paint = attrs.field(init=False)
    _end_thinking: Paint = attrs.field(init=False)

    OPEN: ClassVar[dict[str, SessionDisplay]] = {}
    """The sessions of this process that are shown, by id: a child finds its parent's screen here."""

    def __attrs_post_init__(self) -> None:
        pen = self.screen.pen
        text = Flow(pen, self.redactor, self.level)
        thinking = Flow(
            pen, self.redactor, self.level, "dim", self.config.max_lines, "thinking:"
        )
        # Bound once: pieces of one painter are joined, by identity.
        self._text, self._end_text = text.paint, text.end
        self._thinking, self._end_thinking = thinking.paint, thinking.end

    # -- answers

    def delta(self, _: str, data: ContentBlockDelta) -> Awaitable[None] | None:
        """Show a piece of the answer; only where the terminal has long been too slow is anything to be awaited."""
        delta = data["delta"]
        if isinstance(delta, TextDelta):
            if not self.config.show_text:
                return None
            paint = self._text
            self._end_thought()
        elif isinstance(delta, ThinkingDelta) and self.config.show_thinking:
            paint, self._is_thinking = self._thinking, True
        else:
            return None
        self._streamed.add(delta.index)
        self.screen.put(paint, delta.text, joins=True)
        if self.screen.is_full:
            return self.screen.wait_for_room()
        return None

    def block_end(self, _: str, data: ContentBlockEnd) -> Awaitable[None] | None:
        """Show a block that did not stream, and end its line."""
        block, index = data["block"], data["block_index"]
        if index in self._streamed:
            self._streamed.discard(index)
        else:
            text = block.get("text")
            thought = block.get("thinking", text)
            if (
                block.get("type") == "text"
                and self.config.show_text
                and isinstance(text, str)
            ):
                self.screen.put(self._text, text)
            elif (
                block.get("type") in ("thinking", "reasoning")
                and self.config.show_thinking
            ):
                self.screen.put(
                    self._thinking, thought if isinstance(thought, str) else ""
                )
                self._is_thinking = True
        self._end_blocks()
        if self.screen.is_full:
            return self.screen.wait_for_room()
        return None

    def answered(self, _: str, data: ProviderResponse) -> None:
        """Count what a request used, and report an incomplete answer."""
        self.totals.add(data.get("usage"))
        # handwritten hosts announce what they have
        reason = getattr(data["response"], "finish_reason", None)
        if reason not in (None, "stop", "tool_calls"):
            self._say(
                f"the answer is incomplete: the model stopped because of {reason!r}",
                "bad",
            )

    def failed(self, _: str, data: ProviderErrorPayload) -> None:
        """Tell that a request failed."""
        error = data["error"]
        if error.get("type") != "cancelled":
            self._say(
                f"{data['provider']} failed: {error.get('type')}: {error.get('message')}",
                "bad",
            )

    def retrying(self, _: str, data: ProviderRetry) -> None:
        """Tell what is waited for."""
        of = f"try {data['attempt'] + 1} of {data['max_retries'] + 1}"
        why = f"{data['error_type']}: {data['error_message']}"
        self._say(
            f"{data['provider']} is retried in {data['delay']:.1f} s ({of}): {why}",
            "dim",
        )

    def throttled(self, _: str, data: ProviderThrottle) -> None:
        """Tell what is waited for."""
        self._say(
            f"{data['provider']} waits {data['delay']:.1f} s: {data['reason']}", "dim"
        )

    # -- tools

    def calling(self, _: str, data: ToolPre) -> None:
        """Tell that a tool is about to run."""
        arguments = call_text(data["tool_input"], self.redactor().redact)
        self._say(f"tool {_name(data)} {arguments}".rstrip(), "bold")

    def progressed(self, _: str, data: ToolProgressed) -> None:
        """Tell how far a tool is."""
        text = progress_text(
            data.get("message", ""), data.get("done"), data.get("total")
        )
        self._say(f"tool {_name(data)}: {text}", "dim")

    def put_out(self, _: str, data: ToolOutputWritten) -> None:
        """Show the first lines that a running tool puts out."""
        if not self.config.show_tool_lines:
            return
        call = data.get("tool_call_id", "")
        if call not in self._outputs:
            label = f"tool {_name(data)} | "
            flow = Flow(
                self.screen.pen,
                self.redactor,
                self.level,
                "dim",
                limit=self.config.show_tool_lines,
                label=label,
            )
            self._outputs[call] = flow.paint, flow.end
        self.screen.put(self._outputs[call][0], data.get("text", ""), joins=True)

    def returned(self, _: str, data: ToolPost) -> None:
        """Tell how a tool ended, and show the first lines of its result."""
        self.totals.calls += 1
        self._end_output(data.get("tool_call_id", ""))
        if not self.config.show_tools:
            return
        result, took = data["result"], f"{data.get('duration', 0.0):.2f} s"
        if result.success:
            self._say(f"tool {_name(data)} done in {took}", "good")
        else:
            self._say(f"tool {_name(data)} failed after {took}", "bad")
        if self.config.show_tool_lines:
            self._put(
                _shortened(result.get_serialized_output()),
                "dim",
                "  | ",
                self.config.show_tool_lines,
            )

    def refused(self, _: str, data: ToolErrorPayload) -> None:
        """Tell that a call gave no result."""
        self.totals.calls += 1
        self._end_output(data.get("tool_call_id", ""))
        if self.config.show_tools:
            error = data["error"]
            self._say(f"tool {_name(data)}: {error.get('message', 'it failed')}", "bad")

    # -- the rest of a turn

    def began(self, _: str, data: ExecutionStart) -> None:
        """Begin to count a turn; a child's is shown with its prompt."""
        self.totals = TurnTotals()
        if self.parent is not None or self.level:
            agent = self.session_id.rpartition("_")[2]
            self._put(
                f"agent {agent}: {data['prompt'][:_MAX_TEXT]}",
                "bold",
                "",
                1,
                self.level - 1,
            )

    async def ended(self, _: str, data: ExecutionEnd) -> None:
        """Tell what the turn came to, and wait until all of it is shown."""
        self._end_blocks()
        for call in [*self._outputs]:
            self._end_output(call)
        self._streamed.clear()
        if data["status"] not in ("completed", "success"):
            self._say(f"the turn ended: {data['status']}", "bad")
        if self.config.show_usage:
            self._say(self.totals.text(), "dim")
        if self.parent is not None:
            self.parent.totals.include(self.totals)
            return
        await self.screen.flush()

    async def asks(self, _: str, __: ApprovalRequired) -> None:
        """Leave the terminal to the question: what was said before it is shown first, and its line is ended."""
        self._end_blocks()
        await self.screen.flush()

    def shortened(self, _: str, data: ContextCompaction) -> None:
        """Tell that the model reads less than there is."""
        self._say(
            f"the context was shortened: {data['before_tokens']:,} to {data['after_tokens']:,} tokens",
            "dim",
        )

    def cancelling(self, _: str, data: CancelRequested) -> None:
        """Tell that the turn was asked to stop."""
        self._say(f"cancelled ({data['state']})", "dim")

    def notified(self, _: str, data: UserNotification) -> None:
        """Show a message."""
        level = data.get("level", "info")
        style: Style
        style = "plain"
        if level == "error":
            style = "bad"
        self._say(
            f"{level}: {data['message']} ({data.get('source', 'unknown')})", style
        )

    def todos(self, _: str, data: Mapping[str, object]) -> None:
        """Show the plan as it is now."""
        items = data.get("todos")
        for item in items if isinstance(items, (list, tuple)) else ():
            if isinstance(item, Mapping):
                self._say(
                    f"{_MARKS.get(item.get('status'), '[ ]')} {item.get('content', '')}",
                    "plain",
                )

    # -- the session

    async def close(self) -> None:
        """Show what is left, and leave the screen; a second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        if self.OPEN.get(self.session_id) is self:
            del self.OPEN[self.session_id]
        self._end_blocks()
        await self.screen.leave()

    # -- handing over

    def _end_thought(self) -> None:
        if self._is_thinking:
            self._is_thinking = False
            self.screen.put(self._end_thinking, "")

    def _end_blocks(self) -> None:
        self._end_thought()
        self.screen.put(self._end_text, "")

    def _end_output(self, call: str) -> None:
        _, end = self._outputs.pop(call, (None, None))
        if end is not None:
            self.screen.put(end, "")

    def _say(self, text: str, style: Style) -> None:
        self._put(text[:_MAX_TEXT], style, "", 1)

    def _put(
        self, text: str, style: Style, lead: str, limit: int, level: int | None = None
    ) -> None:
        key = (style, lead, limit, self.level if level is None else level)
        paint = self._lines.get(key)
        if paint is None:
            lines = Lines(self.screen.pen, self.redactor, key[3], style, lead, limit)
            paint = self._lines[key] = lines.paint
        self.screen.put(paint, " ".join(text.splitlines()) if limit == 1 else text)


def _name(
    data: ToolPre | ToolPost | ToolErrorPayload | ToolProgressed | ToolOutputWritten,
) -> str:
    return data.get("tool_name", "")


def _shortened(text: str) -> str:
    """Return the beginning of a long text, with its size."""
    if len(text) <= _MAX_TEXT:
        return text
    return f"{text[:_MAX_TEXT]}... ({len(text):,} characters)"


@attrs.frozen(kw_only=True)
class StreamingUIConfig:
    """The configuration; the module's README describes each key."""

    show_text: bool = True
    show_thinking: bool = True
    show_tools: bool = True
    show_tool_lines: int = attrs.field(default=5, validator=amount)
    max_lines: int = attrs.field(default=20, validator=amount)
    show_children: bool = True
    show_usage: bool = True
    colour: Literal["auto", "always", "never"] = "auto"
    width: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.ge(20))
    )
    max_waiting: int = attrs.field(default=1_000_000, validator=count)
    write_timeout: float = attrs.field(default=2.0, validator=seconds)
    priority: int = 1000
