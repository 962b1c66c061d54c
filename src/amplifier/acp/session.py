"""One session that an editor drives: it lives in a task of its own, which runs its prompts one by one."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import attrs
from anyio.abc import TaskStatus

from amplifier.acp.permissions import EditorApproval
from amplifier.acp.replay import replayed
from amplifier.acp.session_editor import SHOWN, SessionEditor
from amplifier.acp.updates import (
    RunningTurn,
    StopReason,
    TurnUpdates,
    chunk,
    commands_of,
)
from amplifier.acp.waiting_turn import WaitingTurn
from amplifier.app.commands.builtin import make_registry
from amplifier.app.commands.registry import CommandRegistry, Typed, read_line
from amplifier.app.commands.talk import Talk
from amplifier.app.sessions.given_prompts import GivenPrompt
from amplifier.app.sessions.later_turns import LaterTurn
from amplifier.app.sessions.opened import OpenSession, open_session
from amplifier.app.sessions.selection import SelectedSession, opening_notices
from amplifier.kernel.reports import report
from amplifier_kit.commands import CommandAnswer, CommandError, CommandPrompt
from amplifier_kit.rpc.frames import INVALID_REQUEST, RpcError
from amplifier_sdk.events import TOOL_PRE
from amplifier_sdk.jsontypes import JSONObject

if TYPE_CHECKING:
    from anyio.streams.memory import (
        MemoryObjectReceiveStream,
        MemoryObjectSendStream,
    )

__all__ = ["AcpSession"]

_NO_COMMAND: Final = "a turn of the session waits for an answer: no command works until it is over; a prompt ends it"


@attrs.define(eq=False, kw_only=True)
class _Prompted(RunningTurn):
    """A prompt that runs."""

    prompt: GivenPrompt
    ended: anyio.Event = attrs.field(factory=anyio.Event)


@attrs.define(eq=False, kw_only=True)
class AcpSession:
    """A session of an editor.

    Args:
        selected: what it is made of.
        editor: what it is shown in.
        is_replayed: whether the editor is shown what was said before.
        later: its turn that was left until a person answers, and is continued here once they did.
    """

    selected: SelectedSession
    editor: SessionEditor
    is_replayed: bool = False
    later: LaterTurn | None = None
    closed: anyio.Event = attrs.field(factory=anyio.Event)
    _scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    _running: _Prompted | None = None
    _waiting: WaitingTurn | None = None
    _announced: anyio.Event = attrs.field(factory=anyio.Event)
    _talk: Talk | None = None
    _registry: CommandRegistry = attrs.field(factory=CommandRegistry)
    _approval: EditorApproval = attrs.field(init=False)
    _prompts: MemoryObjectSendStream[_Prompted] = attrs.field(init=False)
    _asked: MemoryObjectReceiveStream[_Prompted] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._approval = EditorApproval(self.editor.ask)
        if self.later is not None:
            self._waiting = WaitingTurn(self.later, self.selected, self.editor)
        # One place: a second prompt is refused before it comes here.
        self._prompts, self._asked = anyio.create_memory_object_stream[_Prompted](1)

    @property
    def id(self) -> str:
        """Its id, as the store has it."""
        return self.selected.record.session_id

    @property
    def _turn(self) -> RunningTurn | None:
        """What runs: a prompt, or the turn that waited."""
        if self._running is None and self._waiting is not None:
            return self._waiting.running
        return self._running

    async def prompt(self, prompt: GivenPrompt) -> JSONObject:
        """Answer a prompt, and say why the answer ended and what it used.

        Raises:
            RpcError: a prompt runs already, or the session is closed.
            Exception: whatever ended the turn.
        """
        if self._turn is not None:
            problem = "a prompt runs in this session; wait for its end, or cancel it"
            raise RpcError(INVALID_REQUEST, problem)
        if self.closed.is_set():
            raise RpcError(INVALID_REQUEST, "the session is closed")
        if self._waiting is not None:
            if read_line(prompt.typed) is not None:
                raise RpcError(INVALID_REQUEST, _NO_COMMAND)
            self._waiting.dismiss()
        asked = _Prompted(prompt=prompt)
        self._running = asked
        self._prompts.send_nowait(asked)
        await asked.ended.wait()
        return asked.result

    def cancel(self) -> None:
        """Stop what runs, at once."""
        if self._turn is not None:
            self._turn.cancel()

    def close(self) -> None:
        """Cancel what runs and close it; `closed` says when that is done."""
        self._scope.cancel()

    async def announce(self) -> None:
        """Send what there is to type behind a slash, and what the person should know of the session."""
        await self.editor.send(commands_of(self._registry.listed))
        await self.editor.release()
        self._announced.set()

    # -- in a task of its own

    async def serve(self, *, task_status: TaskStatus[None]) -> None:
        """Open the session, answer prompts until it is closed, and release everything."""
        is_known = False
        try:
            with self._scope:
                if self._waiting is not None:
                    await self._waiting.load(is_replayed=self.is_replayed)
                    is_known = True
                    task_status.started()
                    # an editor cannot place a question before it knows the session
                    await self._announced.wait()
                    await self._waiting.settle()
                    self._waiting = None
                async with self._opening() as opened:
                    await self._begin(opened)
                    if is_known:
                        await self.announce()
                    else:
                        is_known = True
                        task_status.started()
                    async for asked in self._asked:
                        await self._run(asked)
        except Exception as error:  # modules fail as they like; other sessions stay
            if not is_known:
                raise
            report("acp.session_failed", error, session=self.id)
            if self._running is not None:
                self._running.error = error
        finally:
            self.closed.set()
            if self._running is not None:
                self._running.ended.set()
            self._prompts.close()
            self._asked.close()

    def _opening(self) -> AbstractAsyncContextManager[OpenSession]:
        return open_session(
            self.selected.composition,
            record=self.selected.record,
            store=self.selected.store,
            display=self.editor,
            approval=self._approval,
            shown=SHOWN,
        )

    async def _begin(self, opened: OpenSession) -> None:
        talk = Talk.of(opened)
        self._talk = talk
        await self.editor.follow(opened, talk.modes)
        hooks = opened.session.coordinator.hooks
        hooks.register(TOOL_PRE, self._approval.note_call, -2000, "acp", decides=False)
        self._registry, problems = await make_registry(talk)
        selected = self.selected.notices if self.later is None else ()
        for line in (*selected, *opening_notices(opened), *problems):
            await self.editor.report(line)
        if self.is_replayed and self.later is None:
            for update in replayed(await talk.said(), self.editor.view(opened)):
                await self.editor.send(update)

    async def _run(self, asked: _Prompted) -> None:
        assert self._talk is not None
        opened = self._talk.opened
        updates = self._approval.updates = self.editor.updates(opened)
        try:
            async with self.editor.modes.reported():
                answer = partial(self._answer, self._talk, asked, updates)
                await asked.run(opened.session, answer)
                # Before the answer to the prompt: an editor may take nothing of a turn behind it.
                await updates.end_text()
        finally:
            self._approval.updates = None
            self._running = None
            asked.ended.set()

    async def _answer(
        self, talk: Talk, asked: _Prompted, updates: TurnUpdates
    ) -> StopReason:
        """Run a command, or a turn."""
        typed = asked.prompt.typed
        line = read_line(typed)
        if line is None:
            made = CommandPrompt(text=asked.prompt.text)
        else:
            answer = await self._command(line)
            if not isinstance(answer, CommandPrompt):
                text = updates.view.redactor.redact_text(answer.text)
                await self.editor.send(chunk("agent_message_chunk", text))
                return "end_turn"
            made, typed = answer, line.arguments
        prompt = asked.prompt._replace(text=made.text)
        turn = talk.stream(
            prompt.shown, made.metadata, typed=typed, written=made.written
        )
        return await asked.show(turn, updates)

    async def _command(self, line: Typed) -> CommandPrompt | CommandAnswer:
        try:
            return await self._registry.find(line.name).make(line.arguments)
        except CommandError as error:
            return CommandAnswer(text=f"{error}\n")
