"""The editor of one session: what it is shown, how it is asked, and the mode it chose."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import attrs

from amplifier.acp.permissions import AskEditor
from amplifier.acp.tool_calls import CallView
from amplifier.acp.updates import Send, TurnUpdates, chunk, plan_of
from amplifier.app.commands.modes import MODES, ModeName, SessionModes
from amplifier.app.directories import AppDirs
from amplifier.app.sessions.opened import OpenSession
from amplifier_kit.redaction import SinkRedactor, StrictRedactor, redactor_of
from amplifier_kit.rpc.frames import INVALID_PARAMS, RpcError
from amplifier_kit.todos import TODO_UPDATED, TodosUpdated
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["SHOWN", "EditorModes", "SessionEditor"]

SHOWN: Final = frozenset({"answers", "children", "thinking", "tools"})
"""What an editor shows of turns."""
_NAMES: Final[Mapping[ModeName, tuple[str, str]]] = {
    "ask": ("Ask", "Asks before it changes anything."),
    "accept-edits": ("Accept edits", "Edits files without asking."),
    "plan": ("Plan", "Reads and plans, and changes nothing."),
}


@attrs.define(eq=False)
class EditorModes:
    """The modes of one session, which may be chosen before it is open.

    Args:
        send: sends an update.
    """

    send: Send
    _chosen: ModeName = "ask"
    _modes: SessionModes | None = None

    @property
    def current(self) -> ModeName:
        """The mode that is in force."""
        if self._modes is None:
            return self._chosen
        return self._modes.current

    @property
    def offered(self) -> JSONObject:
        """The modes that there are, and the current one."""
        available: list[JSONValue] = [
            {"id": mode, "name": name, "description": description}
            for mode, (name, description) in _NAMES.items()
        ]
        return {"currentModeId": self.current, "availableModes": available}

    def choose(self, name: str) -> None:
        """Put a mode in force.

        Raises:
            RpcError: there is no such mode.
        """
        mode = next((mode for mode in MODES if mode == name), None)
        if mode is None:
            raise RpcError(
                INVALID_PARAMS, f"modeId: expected one of {', '.join(MODES)}"
            )
        # of a session that waits for an answer it holds once that is open
        self._chosen = mode
        if self._modes is not None:
            self._modes.choose(mode)

    async def follow(self, modes: SessionModes | None) -> None:
        """Follow those of the session, which is open now; `None` once it is closed."""
        async with self.reported():
            self._modes = modes
            if modes is not None and self._chosen != "ask":
                modes.choose(self._chosen)

    @asynccontextmanager
    async def reported(self) -> AsyncIterator[None]:
        """Show the mode where the block leaves another one in force."""
        before = self.current
        yield
        if self.current != before:
            update: JSONObject = {"sessionUpdate": "current_mode_update"}
            await self.send({**update, "currentModeId": self.current})


def _strict() -> SinkRedactor:
    return SinkRedactor(StrictRedactor())


@attrs.define(eq=False)
class SessionEditor:
    """Shows a session, and what its modules say to the person as part of the conversation.

    Args:
        send: sends an update.
        ask: asks for a permission.
        dirs: where the session works.
    """

    send: Send
    ask: AskEditor
    dirs: AppDirs
    modes: EditorModes = attrs.field(init=False)
    _redactor: SinkRedactor = attrs.field(factory=_strict, init=False)
    # An editor cannot place what comes before it knows the session.
    _held: list[str] | None = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.modes = EditorModes(self.send)

    async def show_message(
        self, message: str, level: str = "info", source: str = "hook"
    ) -> None:
        """Send a message."""
        await self.report(f"[{source}] {level}: {message}")

    async def report(self, line: str) -> None:
        """Send a line, or hold it until the editor knows the session."""
        text = f"{self._redactor.redact_text(line)}\n"
        if self._held is not None:
            self._held.append(text)
            return
        await self.send(chunk("agent_thought_chunk", text))

    async def release(self) -> None:
        """Send what is held; the editor knows the session now."""
        held, self._held = self._held, None
        if held:
            await self.send(chunk("agent_thought_chunk", "".join(held)))

    async def follow(self, opened: OpenSession, modes: SessionModes) -> None:
        """Show what a session does that is open now, in the mode that was chosen."""
        coordinator = opened.session.coordinator
        coordinator.hooks.register(
            TODO_UPDATED, self._show_plan, 0, "acp", decides=False
        )
        self._redactor = redactor_of(coordinator)
        await self.modes.follow(modes)

    def view(self, opened: OpenSession | None = None) -> CallView:
        """Return what shows the calls of the session; what is stored of them, while it is not open, has no secrets."""
        redactor = _strict()
        if opened is not None:
            redactor = redactor_of(opened.session.coordinator)
        dirs = self.dirs
        return CallView(working_dir=dirs.working_dir, root=dirs.root, redactor=redactor)

    def updates(self, opened: OpenSession) -> TurnUpdates:
        """Return what sends the events of one turn."""
        tools = opened.session.coordinator.tools
        return TurnUpdates(self.send, self.view(opened), tools)

    async def _show_plan(self, _: str, data: TodosUpdated) -> None:
        await self.send(plan_of(data))
