"""One session that an editor drives: it lives in a task of its own, which runs its prompts one by one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import anyio
import attrs
from anyio.abc import TaskStatus

from amplifier.acp.permissions import EditorApproval
from amplifier.acp.prompts import AcpPrompt
from amplifier.acp.replay import replayed
from amplifier.acp.tool_calls import CallView
from amplifier.acp.updates import (
    Send,
    StopReason,
    TurnUpdates,
    chunk,
    plan_of,
    stop_reason,
    usage_of,
)
from amplifier.app.commands.builtin import make_registry
from amplifier.app.commands.registry import CommandRegistry, Typed, read_line
from amplifier.app.commands.session_modes import MODES, ModeName
from amplifier.app.commands.talk import Talk
from amplifier.app.sessions.opened import OpenSession, open_session
from amplifier.app.sessions.selection import SelectedSession, opening_notices
from amplifier.kernel.groups import open_group
from amplifier.kernel.reports import report
from amplifier_kit.commands import CommandAnswer, CommandError, CommandPrompt
from amplifier_kit.redaction import SinkRedactor, StrictRedactor, redactor_of
from amplifier_kit.rpc.frames import INVALID_PARAMS, INVALID_REQUEST, RpcError
from amplifier_kit.todos import TODO_UPDATED, TodosUpdated
from amplifier_sdk.chat import Usage
from amplifier_sdk.errors import TurnCancelled
from amplifier_sdk.events import TOOL_PRE
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.streaming import TurnFinished

if TYPE_CHECKING:
    from anyio.streams.memory import (
        MemoryObjectReceiveStream,
        MemoryObjectSendStream,
    )

__all__ = ["AcpSession", "EditorMessages"]

_NAME: Final = "acp"
_SHOWN: Final = frozenset({"answers", "children", "thinking", "tools"})
_MODE_NAMES: Final = {
    "ask": ("Ask", "Asks before it changes anything."),
    "accept-edits": ("Accept edits", "Edits files without asking."),
    "plan": ("Plan", "Reads and plans, and changes nothing."),
}


@attrs.define(eq=False)
class _Prompted:
    """A prompt that runs, and how it ended."""

    prompt: AcpPrompt
    ended: anyio.Event = attrs.field(factory=anyio.Event)
    cancelled: anyio.Event = attrs.field(factory=anyio.Event)
    in_turn: bool = False
    stop: StopReason = "cancelled"
    usage: Usage | None = None
    error: Exception | None = None


@attrs.define(eq=False)
class EditorMessages:
    """Shows what modules say to the person as part of the conversation.

    Args:
        send: sends an update.
        redactor: takes secrets out of it.
    """

    send: Send
    redactor: SinkRedactor = attrs.field(factory=lambda: SinkRedactor(StrictRedactor()))
    # An editor cannot place what comes before it knows the session.
    _held: list[str] | None = attrs.field(factory=list, init=False)

    async def show_message(
        self, message: str, level: str = "info", source: str = "hook"
    ) -> None:
        """Send a message."""
        await self.tell(f"[{source}] {level}: {message}")

    async def tell(self, line: str) -> None:
        """Send a line, or hold it until the editor knows the session."""
        text = f"{self.redactor.redact_text(line)}\n"
        if self._held is not None:
            self._held.append(text)
            return
        await self.send(chunk("agent_thought_chunk", text))

    async def release(self) -> None:
        """Send what is held; the editor knows the session now."""
        held, self._held = self._held, None
        if held:
            await self.send(chunk("agent_thought_chunk", "".join(held)))


@attrs.define(eq=False, kw_only=True)
class AcpSession:
    """A session of an editor.

    Args:
        selected: what it is made of.
        send: sends an update of it.
        ask: asks the editor for a permission.
        is_replayed: whether the editor is shown what was said before.
    """

    selected: SelectedSession
    send: Send
    ask: Callable[[JSONObject], Awaitable[JSONValue]]
    is_replayed: bool = False
    closed: anyio.Event = attrs.field(factory=anyio.Event)
    _scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    _running: _Prompted | None = None
    _talk: Talk | None = None
    _registry: CommandRegistry = attrs.field(factory=CommandRegistry)
    _approval: EditorApproval = attrs.field(init=False)
    _messages: EditorMessages = attrs.field(init=False)
    _prompts: MemoryObjectSendStream[_Prompted] = attrs.field(init=False)
    _asked: MemoryObjectReceiveStream[_Prompted] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._approval = EditorApproval(self.ask)
        self._messages = EditorMessages(self.send)
        # One place: a second prompt is refused before it comes here.
        self._prompts, self._asked = anyio.create_memory_object_stream[_Prompted](1)

    @property
    def id(self) -> str:
        """Its id, as the store has it."""
        return self.selected.record.session_id

    @property
    def modes(self) -> JSONObject:
        """The modes it can be in, and the current one."""
        available: list[JSONValue] = [
            {"id": mode, "name": name, "description": description}
            for mode, (name, description) in _MODE_NAMES.items()
        ]
        return {"currentModeId": self._mode, "availableModes": available}

    @property
    def _mode(self) -> ModeName:
        if self._talk is None:
            return "ask"
        return self._talk.modes.current

    def choose_mode(self, name: str) -> None:
        """Put a mode in force.

        Raises:
            RpcError: there is no such mode.
        """
        mode = next((mode for mode in MODES if mode == name), None)
        if mode is None or self._talk is None:
            raise RpcError(
                INVALID_PARAMS, f"modeId: expected one of {', '.join(MODES)}"
            )
        self._talk.modes.choose(mode)

    async def prompt(self, prompt: AcpPrompt) -> JSONObject:
        """Answer a prompt, and say why the answer ended and what it used.

        Raises:
            RpcError: a prompt runs already, or the session is closed.
            Exception: whatever ended the turn.
        """
        if self._running is not None:
            told = "a prompt runs in this session; wait for its end, or cancel it"
            raise RpcError(INVALID_REQUEST, told)
        if self.closed.is_set():
            raise RpcError(INVALID_REQUEST, "the session is closed")
        asked = _Prompted(prompt)
        self._running = asked
        self._prompts.send_nowait(asked)
        await asked.ended.wait()
        if asked.error is not None:
            raise asked.error
        result: JSONObject = {"stopReason": asked.stop}
        if asked.usage is not None:
            result["usage"] = usage_of(asked.usage)
        return result

    def cancel(self) -> None:
        """Stop what runs, at once."""
        if self._running is not None:
            self._running.cancelled.set()

    def close(self) -> None:
        """Cancel what runs and close it; `closed` says when that is done."""
        self._scope.cancel()

    async def announce(self) -> None:
        """Send what there is to type behind a slash, and what the person should know of the session."""
        commands: list[JSONValue] = [
            {
                "name": name,
                "description": command.description or name,
                **_input_of(command.argument_hint),
            }
            for name, command in self._registry.listed.items()
        ]
        update: JSONObject = {"sessionUpdate": "available_commands_update"}
        await self.send({**update, "availableCommands": commands})
        await self._messages.release()

    # -- in a task of its own

    async def serve(self, *, task_status: TaskStatus[None]) -> None:
        """Open the session, answer prompts until it is closed, and release everything."""
        is_open = False
        opening = open_session(
            self.selected.composition,
            record=self.selected.record,
            store=self.selected.store,
            display=self._messages,
            approval=self._approval,
            shown=_SHOWN,
        )
        try:
            with self._scope:
                async with opening as opened:
                    await self._begin(opened)
                    is_open = True
                    task_status.started()
                    async for asked in self._asked:
                        await self._run(asked)
        except Exception as error:  # modules fail as they like; other sessions stay
            if not is_open:
                raise
            report("acp.session_failed", error, session=self.id)
        finally:
            self.closed.set()
            if self._running is not None:
                self._running.ended.set()
            self._prompts.close()
            self._asked.close()

    async def _begin(self, opened: OpenSession) -> None:
        talk = Talk.of(opened)
        self._talk = talk
        hooks = opened.session.coordinator.hooks
        hooks.register(TOOL_PRE, self._approval.note_call, -2000, _NAME, decides=False)
        hooks.register(TODO_UPDATED, self._show_plan, 0, _NAME, decides=False)
        self._registry, problems = await make_registry(talk)
        self._messages.redactor = redactor_of(opened.session.coordinator)
        for line in (*self.selected.notices, *opening_notices(opened), *problems):
            await self._messages.tell(line)
        if self.is_replayed:
            for update in replayed(await talk.said(), self._view(opened)):
                await self.send(update)

    def _view(self, opened: OpenSession) -> CallView:
        places = opened.composition.places
        return CallView(
            working_dir=places.working_dir,
            root=places.root,
            redactor=redactor_of(opened.session.coordinator),
        )

    async def _show_plan(self, _: str, data: TodosUpdated) -> None:
        await self.send(plan_of(data))

    async def _run(self, asked: _Prompted) -> None:
        assert self._talk is not None
        opened = self._talk.opened
        updates = TurnUpdates(
            self.send, self._view(opened), opened.session.coordinator.tools
        )
        self._approval.updates = updates
        mode = self._mode
        try:
            await self._take_turn(asked, updates, opened)
            # Before the answer to the prompt: an editor may take nothing of a turn behind it.
            await updates.end_text()
            if self._mode != mode:
                update: JSONObject = {"sessionUpdate": "current_mode_update"}
                await self.send({**update, "currentModeId": self._mode})
        finally:
            self._approval.updates = None
            self._running = None
            asked.ended.set()

    async def _take_turn(
        self, asked: _Prompted, updates: TurnUpdates, opened: OpenSession
    ) -> None:
        """Answer a prompt until the answer, or a cancellation, ends it; its error is the prompt's."""
        try:
            async with open_group() as group:
                scope = anyio.CancelScope()
                group.start_soon(self._cancel_when_asked, asked, scope, opened)
                with scope:
                    asked.stop = await self._answer(asked, updates)
                group.cancel_scope.cancel()
        except TurnCancelled:
            asked.stop = "cancelled"
        except Exception as error:  # providers and tools fail as they like
            asked.error = error

    async def _cancel_when_asked(
        self, asked: _Prompted, scope: anyio.CancelScope, opened: OpenSession
    ) -> None:
        await asked.cancelled.wait()
        if asked.in_turn:
            await opened.session.cancel(immediate=True)
        else:
            scope.cancel()

    async def _answer(self, asked: _Prompted, updates: TurnUpdates) -> StopReason:
        """Run a command, or a turn."""
        assert self._talk is not None
        typed = asked.prompt.typed
        line = read_line(typed)
        if line is None:
            made = CommandPrompt(text=asked.prompt.text)
        else:
            answer = await self._command(line)
            if not isinstance(answer, CommandPrompt):
                told = updates.view.redactor.redact_text(answer.text)
                await self.send(chunk("agent_message_chunk", told))
                return "end_turn"
            made, typed = answer, line.arguments
        finished = None
        turn = self._talk.stream(
            asked.prompt.shown(made.text),
            made.metadata,
            typed=typed,
            written=made.written,
        )
        async with turn as events:
            asked.in_turn = True
            async for event in events:
                await updates.take(event)
                if isinstance(event, TurnFinished):
                    finished, asked.usage = event, event.usage
        return stop_reason(finished)

    async def _command(self, line: Typed) -> CommandPrompt | CommandAnswer:
        try:
            return await self._registry.find(line.name).make(line.arguments)
        except CommandError as error:
            return CommandAnswer(text=f"{error}\n")


def _input_of(hint: str) -> JSONObject:
    if hint:
        return {"input": {"hint": hint}}
    return {}
