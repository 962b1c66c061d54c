"""A turn of an editor's session that was left until a person answers: what it asks is asked here, and it is continued.

Meanwhile the session is not open, which would hold it: whoever gives the last answer continues the turn, anywhere.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import anyio
import attrs
from anyio import to_thread

from amplifier.acp.errors import explain
from amplifier.acp.permissions import OptionKind, choose, kind_of
from amplifier.acp.replay import replayed_waiting
from amplifier.acp.session_editor import SHOWN, SessionEditor
from amplifier.acp.tool_calls import CallView, call_update, text_content
from amplifier.acp.updates import RunningTurn
from amplifier.app.commands.modes import PlanMode, SessionModes
from amplifier.app.questions.answer_commands import SHOWN_ID, answer_command
from amplifier.app.questions.stored_approvals import HELD, is_open
from amplifier.app.sessions.later_turns import LaterTurn
from amplifier.app.sessions.opened import OpenSession, open_session
from amplifier.app.sessions.selection import SelectedSession, opening_notices
from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.reader import read_history
from amplifier.kernel.groups import open_group
from amplifier_kit.open_data import as_list, as_object
from amplifier_kit.rpc.frames import RpcError
from amplifier_kit.terminal import one_line
from amplifier_sdk.errors import AmplifierError, QuestionClosedError, TurnSuspendedError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.legible import escaped
from amplifier_sdk.person_questions import answer_text, choices_of
from amplifier_sdk.stores import StoredQuestion

__all__ = ["WaitingTurn"]

_WAITS: Final = "A turn of this session was left until a person answers. It continues then; another prompt ends it."
_NOT_HERE: Final = (
    "The turn is not continued here; load the session again to see what became of it."
)

_POLL: Final = 0.25
_DECLINES: Final = "Do not answer"


@attrs.define(eq=False)
class WaitingTurn:
    """The turn of a session that waits for answers.

    Args:
        later: the turn.
        selected: the session, which is stored.
        editor: its editor.
        running: the turn while it is continued.
    """

    later: LaterTurn
    selected: SelectedSession
    editor: SessionEditor
    running: RunningTurn | None = attrs.field(default=None, init=False)
    _questions: _Questions = attrs.field(init=False)
    _is_dismissed: bool = attrs.field(default=False, init=False)
    _asking: anyio.CancelScope = attrs.field(factory=anyio.CancelScope, init=False)

    def __attrs_post_init__(self) -> None:
        assert self.selected.store is not None  # else nothing could wait
        self._questions = _Questions(
            store=FileSessionStore(self.selected.store),
            session_id=self.selected.record.session_id,
            later=self.later,
            editor=self.editor,
        )

    async def load(self, *, is_replayed: bool) -> None:
        """Say that the turn waits, after what was said before where that is replayed."""
        for line in (*self.selected.notices, _WAITS):
            await self.editor.report(line)
        if is_replayed:
            files = self._questions.store.files
            folder = files.folder(self.selected.record.session_id)
            history = await to_thread.run_sync(read_history, folder)
            for update in replayed_waiting(history, self.editor.view()):
                await self.editor.send(update)

    async def settle(self) -> None:
        """Ask what the turn waits for and continue it, until it is over or dismissed."""
        is_answered = not await self._questions.open()
        is_over = False
        while not (is_over or self._is_dismissed):
            with anyio.CancelScope() as self._asking:
                if not is_answered and not await self._questions.settle():
                    await self.editor.report(_NOT_HERE)
                    await anyio.sleep_forever()
            if not self._is_dismissed:
                is_over = await self._continue()
            is_answered = False

    def dismiss(self) -> None:
        """Ask no more: a prompt comes in its place, which is answered once the session is open."""
        self._is_dismissed = True
        self._asking.cancel()

    async def _continue(self) -> bool:
        """Continue the turn, as `amplifier answer` does; return whether it is over."""
        turn = self.running = RunningTurn()
        is_over = False
        try:
            async with open_group() as group:

                def show(event: JSONObject) -> None:
                    if event["type"] == "approval_requested":
                        id_ = str(event["approval_id"])
                        group.start_soon(self._questions.settle_held, id_)

                is_over = await self._run(turn, show)
                group.cancel_scope.cancel()
        except Exception as error:  # modules fail as they like; prompts are answered
            turn.error = error
        finally:
            self.running = None
        await self.editor.modes.follow(None)
        if is_over:
            await self.editor.report(_end_of(turn))
        elif turn.error is not None and not isinstance(turn.error, TurnSuspendedError):
            message = f"The answer is stored, and the turn was not continued: {explain(turn.error)}"
            await self.editor.report(message)
        return is_over

    async def _run(
        self, turn: RunningTurn, shows: Callable[[JSONObject], None]
    ) -> bool:
        """Run the turn in its session; return whether it is over, rather than left again."""
        opening = open_session(
            self.selected.composition,
            record=self.selected.record,
            store=self.selected.store,
            display=self.editor,
            accepted=frozenset(self.later.accepted),
            shown=SHOWN,
            turn_id=self.later.turn_id,
            asks=self.later.asks(shows),
        )
        async with opening as opened:
            coordinator = opened.session.coordinator
            modes = SessionModes(coordinator, PlanMode(coordinator))
            await self.editor.follow(opened, modes)
            for line in opening_notices(opened):
                await self.editor.report(line)
            if self.later.is_over(opened):  # somebody else continued it
                turn.stop = "end_turn"
                return True
            return await self._take(turn, opened)

    async def _take(self, turn: RunningTurn, opened: OpenSession) -> bool:
        updates = self.editor.updates(opened)
        stream = opened.stream(
            self.later.prompt, typed=self.later.typed, schema=self.later.schema
        )
        async with self.later.under_way(opened):
            await turn.run(opened.session, partial(turn.show, stream, updates))
        await updates.end_text()
        return not opened.session.is_suspended


@attrs.define(eq=False, kw_only=True)
class _Questions:
    """What the turn asked, which may be answered anywhere."""

    store: FileSessionStore
    session_id: str
    later: LaterTurn
    editor: SessionEditor
    _view: CallView = attrs.field(init=False)
    _shown: set[str] = attrs.field(factory=set, init=False)
    _is_last: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._view = self.editor.view()

    async def open(self) -> tuple[StoredQuestion, ...]:
        """Return what the turn waits for."""
        return await self.later.open_questions(self.store, self.session_id)

    async def settle(self) -> bool:
        """Ask all that is open, until nothing is; return whether the last answer came from the editor."""
        self._is_last = False
        try:
            async with open_group() as group:
                for each in await self.open():
                    group.start_soon(self._settle, each)
        finally:
            with anyio.CancelScope(shield=True):
                await self._close_shown()
        return self._is_last

    async def settle_held(self, question_id: str) -> None:
        """Ask what a running call waits for in this process; nothing of what suspends the turn."""
        question = await self._found(question_id)
        if question is not None and question.details.get(HELD) and is_open(question):
            await self._settle(question)

    async def _settle(self, question: StoredQuestion) -> None:
        """Ask a question, until it takes no answer any more, wherever it was given."""
        id_ = question.question_id
        is_ours = False
        async with open_group() as group:
            group.start_soon(self._watch, id_, group.cancel_scope)
            is_ours = await self._ask(question)
            if is_ours:
                group.cancel_scope.cancel()
        outcome = _outcome(await self._found(id_), is_ours=is_ours)
        if id_ in self._shown:
            self._shown.remove(id_)
            await self._show_end(id_, outcome)
        await self.editor.report(f"question {id_[:SHOWN_ID]} {outcome}")

    async def _watch(self, question_id: str, scope: anyio.CancelScope) -> None:
        """Cancel a scope once a question takes no answer any more."""
        while True:
            found = await self._found(question_id)
            if found is None or not is_open(found):
                break
            # files do not say when they change
            await anyio.sleep(_POLL)
        scope.cancel()

    async def _found(self, question_id: str) -> StoredQuestion | None:
        known = await self.store.questions(self.session_id)
        return next((q for q in known if q.question_id == question_id), None)

    async def _ask(self, question: StoredQuestion) -> bool:
        """Have the editor ask a question, and store the answer; say how else it is answered where there is none."""
        answers = _answers_of(question)
        chosen = await self._chosen(question, answers) if answers else None
        if chosen is not None:
            # whoever watches may see the answer before this knows that it was the last
            with anyio.CancelScope(shield=True):
                return await self._store(question, chosen)
        await self._report_command(question)
        return False

    async def _store(self, question: StoredQuestion, answer: str) -> bool:
        try:
            by = getpass.getuser()
            await self.store.answer(question.question_id, answer, by=by)
        except QuestionClosedError as error:
            await self.editor.report(f"your answer was not taken: {error}")
            return False
        except (AmplifierError, OSError) as error:
            await self.editor.report(f"the answer was not stored: {explain(error)}")
            await self._report_command(question)
            return False
        self._is_last = self._is_last or not await self.open()
        return True

    async def _chosen(
        self, question: StoredQuestion, answers: Mapping[str, str]
    ) -> str | None:
        """Return the answer that the person chose, as stores have it; `None` for whatever else the editor says."""
        shown = await to_thread.run_sync(self._call_of, question)
        self._shown.add(question.question_id)
        await self.editor.send({"sessionUpdate": "tool_call", **shown})
        # what a tool asks for is its own to name
        kind = kind_of if question.schema is None else _kind_of_choice
        try:
            chosen = await choose(self.editor.ask, shown, answers, kind)
        except RpcError as error:
            await self.editor.report(f"the editor did not ask: {error}")
            return None
        return None if chosen is None else [*answers.values()][chosen]

    def _call_of(self, question: StoredQuestion) -> JSONObject:
        """Describe what is asked about, with the question as its content."""
        name = str(question.details.get("tool", ""))
        arguments = as_object(question.details.get("arguments"))
        shown = self._view.shown(_call_id(question.question_id), name, arguments, None)
        asked = [escaped(question.prompt)]
        agents = [str(each) for each in as_list(question.details.get("agents"))]
        if agents:
            asked.append(escaped(f"It is asked by the agent {' > '.join(agents)}."))
        return {
            **shown,
            "status": "pending",
            "content": [
                *self._view.diffs(name, arguments),
                *(text_content(each) for each in asked),
            ],
        }

    async def _report_command(self, question: StoredQuestion) -> None:
        id_ = question.question_id[:SHOWN_ID]
        command = answer_command(id_, is_approval=question.schema is None)
        asked = one_line(escaped(question.prompt), 200)
        await self.editor.report(f"question {id_} waits: {asked}\n{command} answers it")

    async def _close_shown(self) -> None:
        """Let the editor ask no more what it was asked."""
        left, self._shown = self._shown, set()
        for each in left:
            with anyio.move_on_after(1):
                await self._show_end(each, "is not asked here any more")

    async def _show_end(self, question_id: str, outcome: str) -> None:
        shown = f"question {question_id[:SHOWN_ID]} {outcome}"
        content = text_content(self._view.redactor.redact_text(shown))
        id_ = _call_id(question_id)
        await self.editor.send(call_update(id_, "completed", content))


def _end_of(turn: RunningTurn) -> str:
    """Say how the turn ended: no prompt waits for it."""
    if turn.error is not None:
        return f"The turn failed: {explain(turn.error)}"
    if turn.stop == "cancelled":
        return "The turn was cancelled, and what it asked takes no answer any more."
    return "The turn is over."


def _answers_of(question: StoredQuestion) -> Mapping[str, str]:
    """Return what a person can choose, with the answer as stores have it; nothing where they have to write."""
    if question.schema is None:
        return {option: option for option in question.options}
    choices = choices_of(question.schema)
    if not choices:
        return {}
    answers = {name: answer_text(value) for name, value in choices.items()}
    return {**answers, _DECLINES: answer_text(None)}


def _kind_of_choice(option: str) -> OptionKind:
    """Say what a choice does, as an editor shows it: what a tool asks approves nothing, whatever its words."""
    return "reject_once" if option == _DECLINES else "allow_once"


def _call_id(question_id: str) -> str:
    return f"question-{question_id[:SHOWN_ID]}"


def _outcome(closed: StoredQuestion | None, *, is_ours: bool) -> str:
    """Say what became of a question."""
    if closed is None or closed.is_void:
        return "was withdrawn"
    if closed.answer is None:
        return "was not answered in time"
    answered = f"was answered {one_line(escaped(closed.answer), 200)}"
    if is_ours:
        return answered
    by = one_line(escaped(str(closed.answered_by)), 100)
    return f"{answered} elsewhere, by {by}"
