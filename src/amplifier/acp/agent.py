"""The agent's side of the protocol: what an editor can ask, for all its sessions."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

import attrs
from anyio import to_thread
from anyio.abc import AnyByteReceiveStream, AnyByteSendStream

from amplifier.acp.errors import explain
from amplifier.acp.mcp_servers import read_servers
from amplifier.acp.params import (
    folder_param,
    objects_param,
    optional_text,
    refused,
    text_param,
)
from amplifier.acp.prompts import read_prompt
from amplifier.acp.session import AcpSession
from amplifier.acp.session_editor import SessionEditor
from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.later_turns import LaterTurn, left_turn
from amplifier.app.sessions.selection import (
    SelectedSession,
    SessionSelector,
    select_session,
)
from amplifier.app.store.states import holder_of
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import StoredSession
from amplifier_kit.redaction import SinkRedactor, StrictRedactor
from amplifier_kit.rpc.frames import INVALID_PARAMS, INVALID_REQUEST, RpcError
from amplifier_kit.rpc.peer import Reply, RpcPeer
from amplifier_kit.rpc.received import RpcLimits
from amplifier_kit.terminal import one_line
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["PROTOCOL_VERSION", "AcpAgent"]

PROTOCOL_VERSION: Final = 1

_MAX_SESSIONS: Final = 64
_PAGE: Final = 100
_RESOURCE_NOT_FOUND: Final = -32002


@attrs.define(eq=False)
class AcpAgent:
    """Answers one editor; `serve` is the life of the connection.

    Args:
        options: what the person chose of what new sessions are made of.
        keep: whether new sessions are stored; `None` leaves it to the settings.
        accept_edits: whether new sessions begin in the mode that accepts edits.
        with_current_plan: stored sessions are resumed with what a new one would be made of.
        limits: what the editor may send.
    """

    options: PlanOptions = attrs.field(factory=PlanOptions)
    keep: bool | None = None
    accept_edits: bool = False
    with_current_plan: bool = False
    limits: RpcLimits = attrs.field(factory=RpcLimits)
    _sessions: dict[str, AcpSession] = attrs.field(factory=dict, init=False)
    _opening: set[str] = attrs.field(factory=set, init=False)
    _peer: RpcPeer = attrs.field(init=False)

    async def serve(
        self, incoming: AnyByteReceiveStream, outgoing: AnyByteSendStream
    ) -> None:
        """Answer until the editor is gone; what runs then is cancelled, and stored as far as it came."""
        self._peer = RpcPeer(
            incoming=incoming,
            outgoing=outgoing,
            explain=explain,
            limits=self.limits,
            requests={
                "initialize": self._initialize,
                "authenticate": self._authenticate,
                "session/new": self._new,
                "session/load": partial(self._open_again, is_replayed=True),
                "session/resume": partial(self._open_again, is_replayed=False),
                "session/list": self._list,
                "session/close": self._close,
                "session/prompt": self._prompt,
                "session/set_mode": self._set_mode,
            },
            notifications={"session/cancel": self._cancel},
        )
        await self._peer.serve()

    async def _initialize(self, params: JSONObject) -> Reply:
        asked = params.get("protocolVersion")
        if not isinstance(asked, int) or isinstance(asked, bool):
            raise refused("protocolVersion", "an integer")
        return Reply(
            result={
                "protocolVersion": PROTOCOL_VERSION,
                "agentInfo": {
                    "name": "amplifier",
                    "title": "Amplifier",
                    "version": version("amplifier"),
                },
                "agentCapabilities": {
                    "loadSession": True,
                    "promptCapabilities": {
                        "image": True,
                        "audio": True,
                        "embeddedContext": True,
                    },
                    "mcpCapabilities": {"http": True, "sse": False},
                    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
                },
                "authMethods": [],
            }
        )

    async def _authenticate(self, params: JSONObject) -> Reply:
        method = text_param(params, "methodId")
        problem = f"methodId: there is no method {one_line(method, 60)!r}; keys are set with 'amplifier init'"
        raise RpcError(INVALID_PARAMS, problem)

    async def _new(self, params: JSONObject) -> Reply:
        selector = SessionSelector(keep=self.keep)
        session = await self._opened(params, selector, is_replayed=False)
        if self.accept_edits:
            session.editor.modes.choose("accept-edits")
        modes = session.editor.modes.offered
        result: JSONObject = {"sessionId": session.id, "modes": modes}
        return Reply(result=result, then=session.announce)

    async def _open_again(self, params: JSONObject, *, is_replayed: bool) -> Reply:
        wanted = text_param(params, "sessionId")
        selector = SessionSelector(
            resume=wanted, with_current_plan=self.with_current_plan
        )
        session = await self._opened(params, selector, is_replayed=is_replayed)
        modes = session.editor.modes.offered
        return Reply(result={"modes": modes}, then=session.announce)

    async def _opened(
        self, params: JSONObject, selector: SessionSelector, *, is_replayed: bool
    ) -> AcpSession:
        """Open a session and add it."""
        folder = folder_param(params, "cwd")
        servers = read_servers(objects_param(params, "mcpServers"))
        wanted = selector.resume
        # One that ended by itself can be opened again.
        self._sessions = {
            key: session
            for key, session in self._sessions.items()
            if not session.closed.is_set()
        }
        if wanted in self._sessions or wanted in self._opening:
            raise RpcError(INVALID_REQUEST, "the session is open already")
        if len(self._sessions) + len(self._opening) >= _MAX_SESSIONS:
            message = f"{_MAX_SESSIONS} sessions are open; close one"
            raise RpcError(INVALID_REQUEST, message)
        ticket = wanted or f"new-{id(params)}"
        self._opening.add(ticket)
        try:
            selected = await to_thread.run_sync(self._select, folder, selector)
            composition, notices = servers.added(selected.composition)
            selected = attrs.evolve(
                selected,
                composition=composition,
                notices=(*selected.notices, *notices),
            )
            session_id = selected.record.session_id
            later = None
            if wanted is not None and selected.store is not None:
                folder = selected.store.folder(session_id)
                later = await to_thread.run_sync(_left_turn, folder)
            session = AcpSession(
                selected=selected,
                editor=SessionEditor(
                    partial(self._send, session_id),
                    partial(self._ask, session_id),
                    selected.composition.dirs,
                ),
                is_replayed=is_replayed,
                later=later,
            )
            await self._peer.group.start(session.serve)
        finally:
            self._opening.discard(ticket)
        self._sessions[session.id] = session
        return session

    def _select(self, folder: Path, selector: SessionSelector) -> SelectedSession:
        dirs = AppDirs.find(folder)
        options = self.options
        if selector.resume is not None:
            # By its whole id: a name or a beginning is for people to type.
            stored = ProjectSessions.of(dirs).session(selector.resume)
            if stored is None:
                problem = "sessionId: there is no such session of this folder"
                raise RpcError(_RESOURCE_NOT_FOUND, problem)
            # What it is made of is recorded; the flags are about new sessions.
            if not self.with_current_plan:
                options = attrs.evolve(options, profile=None, file=None)
        return select_session(options, selector, dirs)

    async def _list(self, params: JSONObject) -> Reply:
        dirs = AppDirs.find(
            folder_param(params, "cwd") if params.get("cwd") is not None else None
        )
        cursor = optional_text(params, "cursor") or "0"
        if not cursor.isdecimal() or len(cursor) > 9:
            raise refused("cursor", "what an earlier list returned")
        first = int(cursor)
        every = await to_thread.run_sync(ProjectSessions.of(dirs).all)
        # Sessions of one tool call are no conversations.
        found = [each for each in every if each.record.command is None]
        page = found[first : first + _PAGE]
        result: JSONObject = {"sessions": [_listed(each) for each in page]}
        if first + _PAGE < len(found):
            result["nextCursor"] = str(first + _PAGE)
        return Reply(result=result)

    async def _close(self, params: JSONObject) -> Reply:
        session = self._session(params)
        session.close()
        await session.closed.wait()
        self._sessions.pop(session.id, None)
        return Reply(result={})

    async def _prompt(self, params: JSONObject) -> Reply:
        session = self._session(params)
        prompt = read_prompt(objects_param(params, "prompt"))
        return Reply(result=await session.prompt(prompt))

    async def _set_mode(self, params: JSONObject) -> Reply:
        self._session(params).editor.modes.choose(text_param(params, "modeId"))
        return Reply(result={})

    def _cancel(self, params: JSONObject) -> None:
        self._session(params).cancel()

    def _session(self, params: JSONObject) -> AcpSession:
        found = self._sessions.get(text_param(params, "sessionId"))
        if found is None:
            raise RpcError(_RESOURCE_NOT_FOUND, "sessionId: no such session is open")
        return found

    async def _send(self, session_id: str, update: JSONObject) -> None:
        params: JSONObject = {"sessionId": session_id, "update": update}
        await self._peer.notify("session/update", params)

    async def _ask(self, session_id: str, question: JSONObject) -> JSONValue:
        params: JSONObject = {"sessionId": session_id, **question}
        return await self._peer.request("session/request_permission", params)


def _left_turn(folder: Path) -> LaterTurn | None:
    """Return the turn of a session that waits for answers or was given them; `None` while somebody runs it."""
    left = None if holder_of(folder) is not None else left_turn(folder)
    return None if left is None else left[0]


def _listed(session: StoredSession) -> JSONObject:
    record = session.record
    redactor = SinkRedactor(StrictRedactor())
    title = one_line(record.name or redactor.redact_text(record.prompt or ""), 100)
    changed = datetime.fromtimestamp(record.updated, UTC)
    return {
        "sessionId": record.session_id,
        "cwd": record.working_dir,
        "title": title or None,
        "updatedAt": changed.isoformat(),
    }
