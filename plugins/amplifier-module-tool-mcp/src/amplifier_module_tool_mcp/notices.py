"""The module's notices: events, messages to the person with their next prompt, and what servers say beside messages."""

from __future__ import annotations

from collections import deque
from typing import Final

import anyio
import attrs

from amplifier_kit.redaction import redactor_of
from amplifier_kit.trust.untrusted import without_unseen
from amplifier_module_tool_mcp.events import (
    MCP_LOG,
    MCP_SERVER,
    MCP_WITHHELD,
    ServerLogLine,
    StateChanged,
    ToolsWithheld,
)
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.events import PROMPT_SUBMIT, PromptSubmit
from amplifier_sdk.results import HookResult

__all__ = ["BEGIN", "Hearing", "ServerNotices"]

_LONGEST_LINE: Final = 2000
_WAITING: Final = 50
_TAIL_LINES: Final = 3

BEGIN: Final = "tool-mcp.begin"
"""The channel through which the module's instances hear that all modules are mounted."""
_MAX_STORED: Final = 50
_LONGEST: Final = 1000


class ServerNotices:
    """Reports on the servers of one session."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._messages: deque[str] = deque(maxlen=_MAX_STORED)
        self._early: deque[StateChanged | ToolsWithheld] = deque(maxlen=_MAX_STORED)
        self.begun: Final = anyio.Event()
        coordinator.register_contributor(BEGIN, "tool-mcp", self.begin)
        coordinator.register_contributor(
            "observability.events",
            "tool-mcp",
            lambda: [str(MCP_SERVER), str(MCP_LOG), str(MCP_WITHHELD)],
        )
        coordinator.register_cleanup(
            coordinator.hooks.register(
                PROMPT_SUBMIT, self._submitted, 0, "tool-mcp", decides=False
            )
        )

    async def begin(self) -> None:
        """Tell what happened while the session's modules, and with them the handlers, were being mounted."""
        self.begun.set()
        while self._early:
            await self._emit(self._early.popleft())

    def clean(self, text: str) -> str:
        """Return a text from elsewhere as one line that may be shown: without secrets and hidden characters."""
        line = " ".join(without_unseen(text[: 4 * _LONGEST]).split())
        shown = redactor_of(self._coordinator).redact_text(line)
        if len(shown) <= _LONGEST:
            return shown
        return f"{shown[:_LONGEST]}…"

    async def state(self, changed: StateChanged) -> None:
        """Report that a server's state changed; a failure is reported to the person as well."""
        problem = changed.get("problem")
        if problem:
            self._messages.append(
                f"MCP server {changed['server']!a} cannot be used: {problem}"
            )
        await self._emit(changed)

    async def withheld(self, server: str, tools: dict[str, str]) -> None:
        """Tell that tools are held back."""
        names = ", ".join(f"{name!a} ({reason})" for name, reason in tools.items())
        self._messages.append(
            f"MCP server {server!a}: tools held back: {names}"[: 2 * _LONGEST]
        )
        await self._emit(ToolsWithheld(server=server, tools=tools))

    async def log(self, server: str, level: str, text: str) -> None:
        """Pass a line of a server's log on."""
        hooks = self._coordinator.hooks
        if hooks.has_handlers(MCP_LOG) and (line := self.clean(text)):
            await hooks.emit(
                MCP_LOG, ServerLogLine(server=server, level=level, text=line)
            )

    async def _emit(self, payload: StateChanged | ToolsWithheld) -> None:
        hooks = self._coordinator.hooks
        event = MCP_SERVER if "state" in payload else MCP_WITHHELD
        if not self.begun.is_set():
            self._early.append(payload)
        elif hooks.has_handlers(event):
            await hooks.emit(str(event), payload)

    def _submitted(self, _: str, __: PromptSubmit) -> HookResult | None:
        """Show what happened since the person said something last."""
        if not self._messages:
            return None
        text = "\n".join(self._messages)
        self._messages.clear()
        return HookResult(
            user_message=text,
            user_message_level="warning",
            user_message_source="tool-mcp",
        )


@attrs.define(eq=False)
class Hearing:
    """Hears one connection.

    Args:
        server: whose it is.
        notices: takes the lines.
        max_lines: how many are passed on.
    """

    server: str
    notices: ServerNotices
    max_lines: int
    heard: int = 0
    _parts: dict[str, bytearray] = attrs.field(factory=dict)
    _tail: deque[str] = attrs.field(factory=lambda: deque(maxlen=_TAIL_LINES))
    _lines: deque[tuple[str, str]] = attrs.field(factory=lambda: deque(maxlen=_WAITING))
    _news: anyio.Event = attrs.field(factory=anyio.Event)

    def hear(self, level: str, data: bytes) -> None:
        """Take some bytes of output; of a line only the beginning is stored."""
        *ended, rest = data.split(b"\n")
        part = self._parts.setdefault(level, bytearray())
        for piece in ended:
            # A line without an end must not grow in memory.
            part += piece[: max(0, _LONGEST_LINE - len(part))]
            text = part.decode("utf-8", "replace")
            part.clear()
            if text.strip():
                self._tail.append(text)
                self.log(level, text)
        part += rest[: max(0, _LONGEST_LINE - len(part))]

    def log(self, level: str, text: str) -> None:
        """Take a line of the server's log."""
        self.heard += 1
        if self.heard <= self.max_lines:
            self._lines.append((level, text[:_LONGEST_LINE]))
            self._news.set()

    def ending(self) -> str:
        """Return what the server put out last, for the message about its end."""
        for part in self._parts.values():
            if part.strip():
                self._tail.append(part.decode("utf-8", "replace"))
        if self._tail:
            return f"; its last output: {' | '.join(self._tail)}"
        return ""

    async def pass_on(self) -> None:
        """Pass the lines on until cancelled, from when there may be somebody who hears them."""
        # Before the session begins nobody hears what is reported.
        await self.notices.begun.wait()
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            while self._lines:
                await self.notices.log(self.server, *self._lines.popleft())
            if self.heard > self.max_lines:
                await self.notices.log(
                    self.server,
                    "notice",
                    f"more than {self.max_lines} lines: the rest is left out",
                )
                return
