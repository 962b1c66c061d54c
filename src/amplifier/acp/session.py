"""One session that an editor drives: it lives in a task of its own, which runs its prompts one by one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import attrs
from anyio import to_thread
from anyio.abc import TaskStatus

from amplifier.acp.errors import explain
from amplifier.acp.permissions import EditorApproval
from amplifier.acp.prompts import AcpPrompt
from amplifier.acp.replay import replayed, replayed_waiting
from amplifier.acp.stored_questions import StoredQuestions
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
from amplifier.app.commands.modes import MODES, ModeName, PlanMode, SessionModes
from amplifier.app.commands.registry import CommandRegistry, Typed, read_line
from amplifier.app.commands.talk import Talk
from amplifier.app.sessions.later_turns import LaterTurn
from amplifier.app.sessions.opened import OpenSession, TurnEvents, open_session
from amplifier.app.sessions.selection import SelectedSession, opening_notices
from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.reader import read_history
from amplifier.kernel.groups import open_group
from amplifier.kernel.reports import report
from amplifier_kit.commands import CommandAnswer, CommandError, CommandPrompt
from amplifier_kit.redaction import SinkRedactor, StrictRedactor, redactor_of
from amplifier_kit.rpc.frames import INVALID_PARAMS, INVALID_REQUEST, RpcError
from amplifier_kit.todos import TODO_UPDATED, TodosUpdated
from amplifier_sdk.chat import Usage
from amplifier_sdk.errors import TurnCancelled, TurnSuspendedError
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
_WAITS: Final = "A turn of this session was left until a person answers. It continues then; another prompt ends it."
_NOT_HERE: Final = (
    "The turn is not continued here; load the session again to see what became of it."
)
_NO_COMMAND: Final = "a turn of the session waits for an answer: no command works until it is over; a prompt ends it"
_MODE_NAMES: Final = {
    "ask": ("Ask", "Asks before it changes anything."),
    "accept-edits": ("Accept edits", "Edits files without asking."),
    "plan": ("Plan", "Reads and plans, and changes nothing."),
}


@attrs.define(eq=False)
class _RunningTurn:
    """A turn that runs, or a command, and how it ended."""

    ended: anyio.Event = attrs.field(factory=anyio.Event)
    cancelled: anyio.Event = attrs.field(factory=anyio.Event)
    in_turn: bool = False
    stop: StopReason = "cancelled"
    usage: Usage | None = None
    error: Exception | None = None


@attrs.define(eq=False, kw_only=True)
class _Prompted(_RunningTurn):
    """A prompt that runs."""

    prompt: AcpPrompt


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
        later: its turn that was left until a person answers, and is continued here once they did.
    """

    selected: SelectedSession
    send: Send
    ask: Callable[[JSONObject], Awaitable[JSONValue]]
    is_replayed: bool = False
    later: LaterTurn | None = None
    closed: anyio.Event = attrs.field(factory=anyio.Event)
    _scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    _running: _RunningTurn | None = None
    _is_waiting: bool = attrs.field(init=False)
    _asking: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    _announced: anyio.Event = attrs.field(factory=anyio.Event)
    _talk: Talk | None = None
    _modes: SessionModes | None = None
    _chosen_mode: ModeName = "ask"
    _registry: CommandRegistry = attrs.field(factory=CommandRegistry)
    _approval: EditorApproval = attrs.field(init=False)
    _messages: EditorMessages = attrs.field(init=False)
    _prompts: MemoryObjectSendStream[_Prompted] = attrs.field(init=False)
    _asked: MemoryObjectReceiveStream[_Prompted] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._approval = EditorApproval(self.ask)
        self._messages = EditorMessages(self.send)
        self._is_waiting = self.later is not None
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
        if self._modes is None:
            return self._chosen_mode
        return self._modes.current

    def choose_mode(self, name: str) -> None:
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
        self._chosen_mode = mode
        if self._modes is not None:
            self._modes.choose(mode)

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
        if self._is_waiting:
            if read_line(prompt.typed) is not None:
                raise RpcError(INVALID_REQUEST, _NO_COMMAND)
            self._asking.cancel()
        asked = _Prompted(prompt=prompt)
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
        self._announced.set()

    # -- in a task of its own

    async def serve(self, *, task_status: TaskStatus[None]) -> None:
        """Open the session, answer prompts until it is closed, and release everything."""
        is_known = False
        try:
            with self._scope:
                if self.later is not None:
                    await self._begin_waiting()
                    is_known = True
                    task_status.started()
                    await self._wait_for_answers(self.later)
                async with self._opening(approval=self._approval) as opened:
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

    def _opening(
        self,
        *,
        approval: EditorApproval | None = None,
        later: LaterTurn | None = None,
        shows: Callable[[JSONObject], None] | None = None,
    ) -> AbstractAsyncContextManager[OpenSession]:
        """Open the session for prompts with `approval`, or for its turn that waits."""
        return open_session(
            self.selected.composition,
            record=self.selected.record,
            store=self.selected.store,
            display=self._messages,
            approval=approval,
            accepted=frozenset(later.accepted) if later else frozenset(),
            shown=_SHOWN,
            turn_id=later.turn_id if later else None,
            asks=later.asks(shows) if later and shows else None,
        )

    async def _begin(self, opened: OpenSession) -> None:
        talk = Talk.of(opened)
        self._talk = talk
        await self._equip(opened, talk.modes)
        hooks = opened.session.coordinator.hooks
        hooks.register(TOOL_PRE, self._approval.note_call, -2000, _NAME, decides=False)
        self._registry, problems = await make_registry(talk)
        selected = self.selected.notices if self.later is None else ()
        for line in (*selected, *opening_notices(opened), *problems):
            await self._messages.tell(line)
        if self.is_replayed and self.later is None:
            for update in replayed(await talk.said(), self._view(opened)):
                await self.send(update)

    async def _equip(self, opened: OpenSession, modes: SessionModes) -> None:
        """Have an open session show what it does, in the mode that was chosen."""
        coordinator = opened.session.coordinator
        coordinator.hooks.register(
            TODO_UPDATED, self._show_plan, 0, _NAME, decides=False
        )
        self._messages.redactor = redactor_of(coordinator)
        before, self._modes = self._mode, modes
        if self._chosen_mode != "ask":
            modes.choose(self._chosen_mode)
        await self._report_mode(before)

    # -- while a turn of it waits for answers

    async def _begin_waiting(self) -> None:
        """Show the history of a session whose turn waits; it is not opened, which would hold it."""
        for line in (*self.selected.notices, _WAITS):
            await self._messages.tell(line)
        if self.is_replayed:
            assert self.selected.store is not None  # else nothing could wait
            folder = self.selected.store.folder(self.id)
            history = await to_thread.run_sync(read_history, folder)
            for update in replayed_waiting(history, self._stored_view()):
                await self.send(update)

    async def _wait_for_answers(self, later: LaterTurn) -> None:
        """Ask what a turn waits for and continue it, until it is over or a prompt comes in its place."""
        assert self.selected.store is not None
        questions = StoredQuestions(
            store=FileSessionStore(self.selected.store),
            session_id=self.id,
            later=later,
            ask=self.ask,
            send=self.send,
            tell=self._messages.tell,
            view=self._stored_view(),
        )
        # an editor cannot place a question before it knows the session
        await self._announced.wait()
        is_answered = not await questions.open()
        is_over = False
        while self._running is None and not is_over:
            with anyio.CancelScope() as self._asking:
                if not is_answered and not await questions.settle():
                    await self._messages.tell(_NOT_HERE)
                    await anyio.sleep_forever()
            # whoever gave a prompt has it answered once the session is open
            if self._running is None:
                is_over = await self._continue(later, questions)
            is_answered = False
        self._is_waiting = False

    async def _continue(self, later: LaterTurn, questions: StoredQuestions) -> bool:
        """Continue a turn whose questions were answered, as `amplifier answer` does; return whether it is over."""
        turn = self._running = _RunningTurn()
        is_over = False
        try:
            async with open_group() as group:

                def show(event: JSONObject) -> None:
                    if event["type"] == "approval_requested":
                        id_ = str(event["approval_id"])
                        group.start_soon(questions.settle_held, id_)

                async with self._opening(later=later, shows=show) as opened:
                    is_over = await self._run_later(turn, opened, later)
                group.cancel_scope.cancel()
        except Exception as error:  # modules fail as they like; prompts are answered
            turn.error = error
        finally:
            before = self._mode
            self._running = self._modes = None
            turn.ended.set()
        await self._report_mode(before)
        if is_over:
            await self._messages.tell(_end_of(turn))
        elif turn.error is not None and not isinstance(turn.error, TurnSuspendedError):
            told = f"The answer is stored, and the turn was not continued: {explain(turn.error)}"
            await self._messages.tell(told)
        return is_over

    async def _run_later(
        self, turn: _RunningTurn, opened: OpenSession, later: LaterTurn
    ) -> bool:
        """Run a turn that was left before; return whether it is over, rather than left again."""
        coordinator = opened.session.coordinator
        await self._equip(opened, SessionModes(coordinator, PlanMode(coordinator)))
        for line in opening_notices(opened):
            await self._messages.tell(line)
        if later.is_over(opened):  # somebody else continued it
            turn.stop = "end_turn"
            return True
        updates = TurnUpdates(self.send, self._view(opened), coordinator.tools)
        answer = partial(_answer_later, turn, updates, opened, later)
        async with later.under_way(opened):
            await self._take_turn(turn, opened, answer)
        await updates.end_text()
        return not opened.session.is_suspended

    def _stored_view(self) -> CallView:
        """Show calls of the session while it is not open: what is stored of them holds no secrets."""
        places = self.selected.composition.places
        return CallView(
            working_dir=places.working_dir,
            root=places.root,
            redactor=SinkRedactor(StrictRedactor()),
        )

    # -- its turns

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
            await self._take_turn(asked, opened, partial(self._answer, asked, updates))
            # Before the answer to the prompt: an editor may take nothing of a turn behind it.
            await updates.end_text()
            await self._report_mode(mode)
        finally:
            self._approval.updates = None
            self._running = None
            asked.ended.set()

    async def _report_mode(self, before: ModeName) -> None:
        """Show the mode where it is another than before."""
        if self._mode != before:
            update: JSONObject = {"sessionUpdate": "current_mode_update"}
            await self.send({**update, "currentModeId": self._mode})

    async def _take_turn(
        self,
        asked: _RunningTurn,
        opened: OpenSession,
        answer: Callable[[], Awaitable[StopReason]],
    ) -> None:
        """Run a turn until the answer, or a cancellation, ends it; its error is the prompt's."""
        try:
            async with open_group() as group:
                scope = anyio.CancelScope()
                group.start_soon(self._cancel_when_asked, asked, scope, opened)
                with scope:
                    asked.stop = await answer()
                group.cancel_scope.cancel()
        except TurnCancelled:
            asked.stop = "cancelled"
        except Exception as error:  # providers and tools fail as they like
            asked.error = error

    async def _cancel_when_asked(
        self, asked: _RunningTurn, scope: anyio.CancelScope, opened: OpenSession
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
        turn = self._talk.stream(
            asked.prompt.shown(made.text),
            made.metadata,
            typed=typed,
            written=made.written,
        )
        async with turn as events:
            return stop_reason(await _show(asked, updates, events))

    async def _command(self, line: Typed) -> CommandPrompt | CommandAnswer:
        try:
            return await self._registry.find(line.name).make(line.arguments)
        except CommandError as error:
            return CommandAnswer(text=f"{error}\n")


async def _answer_later(
    turn: _RunningTurn, updates: TurnUpdates, opened: OpenSession, later: LaterTurn
) -> StopReason:
    """Run a turn as it was begun."""
    stream = opened.stream(later.prompt, typed=later.typed, schema=later.schema)
    async with stream as events:
        return stop_reason(await _show(turn, updates, events))


async def _show(
    asked: _RunningTurn, updates: TurnUpdates, events: TurnEvents
) -> TurnFinished | None:
    """Send the events of a turn, and return its end."""
    finished = None
    asked.in_turn = True
    async for event in events:
        await updates.take(event)
        if isinstance(event, TurnFinished):
            finished, asked.usage = event, event.usage
    return finished


def _end_of(turn: _RunningTurn) -> str:
    """Say how a turn ended that no prompt waits for."""
    if turn.error is not None:
        return f"The turn failed: {explain(turn.error)}"
    if turn.stop == "cancelled":
        return "The turn was cancelled, and what it asked takes no answer any more."
    return "The turn is over."


def _input_of(hint: str) -> JSONObject:
    if hint:
        return {"input": {"hint": hint}}
    return {}
