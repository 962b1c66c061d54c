"""What running tools report, on its way to the reader of the turn and to the handlers.

A tool reports from wherever it runs and never waits for those who listen. What they had no time for is
joined: of progress the latest counts, output becomes one text. So a slow reader costs no memory but that of
the text itself, and nothing of it is lost.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import anyio
import attrs
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token

from amplifier.kernel.groups import open_group
from amplifier.kernel.hooks.dispatcher import HookDispatcher
from amplifier.kernel.turn.stream import EventSink
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.contracts import Tool
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.progress import (
    TOOL_OUTPUT,
    TOOL_PROGRESS,
    PersonAsker,
    ToolContext,
    ToolOutput,
    ToolOutputWritten,
    ToolProgress,
    ToolProgressed,
    ToolReport,
    ToolWithContext,
)
from amplifier_sdk.results import ToolResult

__all__ = ["Reports", "open_reports"]


@asynccontextmanager
async def open_reports(
    tool: ToolWithContext,
    call: ToolCall,
    hooks: HookDispatcher,
    stream: EventSink | None,
    key: str = "",
    asker: PersonAsker | None = None,
) -> AsyncIterator[Tool]:
    """Yield the tool with the context of one call; leaving the block brings what was reported.

    A task brings the reports while the block runs, where anybody hears them.
    """
    if (
        stream is None
        and not hooks.has_handlers(TOOL_PROGRESS)
        and not hooks.has_handlers(TOOL_OUTPUT)
    ):
        context = ToolContext(call.id, call.name, None, key, asker)
        try:
            yield cast("Tool", _ToolInContext(tool, context))
        finally:
            context.end()
        return
    reports = Reports(call, hooks, stream)
    context = ToolContext(call.id, call.name, reports.send, key, asker)
    async with open_group() as group:
        group.start_soon(reports.deliver)
        try:
            yield cast("Tool", _ToolInContext(tool, context))
        finally:
            context.end()
            reports.close()


@attrs.frozen(eq=False)
class _ToolInContext:
    """What the host calls of a tool, together with the context of one call."""

    tool: ToolWithContext
    context: ToolContext

    async def execute(self, input: JSONObject, /) -> ToolResult:
        return await self.tool.execute(input, context=self.context)


@attrs.define(eq=False)
class Reports:
    """The reports of one call; made on the event loop, filled from any thread, brought by one task."""

    call: ToolCall
    hooks: HookDispatcher
    stream: EventSink | None
    _output: list[str] = attrs.field(factory=list)
    _progress: ToolProgress | None = None
    _closed: bool = False
    _lock: threading.Lock = attrs.field(factory=threading.Lock)
    _changed: anyio.Event = attrs.field(factory=anyio.Event)
    _thread: int = attrs.field(factory=threading.get_ident)
    _token: EventLoopToken = attrs.field(factory=current_token)

    def send(self, report: ToolReport) -> None:
        """Take a report; a worker thread returns when the event loop knows of it."""
        with self._lock:
            if isinstance(report, ToolOutput):
                self._output.append(report.text)
            else:
                self._progress = report
        if threading.get_ident() == self._thread:
            self._wake()
        else:
            # an event of anyio's may be set on its own thread alone
            from_thread.run_sync(self._wake, token=self._token)

    def close(self) -> None:
        """Let `deliver` end when it has brought what was sent."""
        self._closed = True
        self._wake()

    async def deliver(self) -> None:
        """Bring the reports to the reader and the handlers until `close`."""
        while not self._closed or self._output or self._progress is not None:
            await self._changed.wait()
            # before the reports are taken: one that comes while they are brought sets
            # it again
            self._changed = anyio.Event()
            for report in self._take():
                await self._bring(report)

    def _wake(self) -> None:
        self._changed.set()

    def _take(self) -> list[ToolReport]:
        with self._lock:
            text, progress = "".join(self._output), self._progress
            self._output.clear()
            self._progress = None
        if text:
            output = [
                ToolOutput(call_id=self.call.id, tool_name=self.call.name, text=text)
            ]
        else:
            output = []
        return [*output, *([progress] if progress is not None else [])]

    async def _bring(self, report: ToolReport) -> None:
        if self.stream is not None:
            await self.stream.send(report)
        event = TOOL_OUTPUT if isinstance(report, ToolOutput) else TOOL_PROGRESS
        if self.hooks.has_handlers(event):
            await self.hooks.emit(event, _payload(report))


def _payload(report: ToolReport) -> ToolOutputWritten | ToolProgressed:
    if isinstance(report, ToolOutput):
        return ToolOutputWritten(
            tool_name=report.tool_name, tool_call_id=report.call_id, text=report.text
        )
    return ToolProgressed(
        tool_name=report.tool_name,
        tool_call_id=report.call_id,
        message=report.message,
        done=report.done,
        total=report.total,
    )
