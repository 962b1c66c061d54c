"""What a turn left in the store for a person to answer, asked in their editor.

The session is not open meanwhile: a question may be answered anywhere, and whoever gives the last answer continues the
turn.
"""

from __future__ import annotations

import getpass
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import anyio
import attrs
from anyio import to_thread

from amplifier.acp.errors import explain
from amplifier.acp.permissions import AskEditor, OptionKind, choose, kind_of
from amplifier.acp.tool_calls import CallView, text_content
from amplifier.acp.updates import Send
from amplifier.app.questions.answer_commands import SHOWN_ID, answer_command
from amplifier.app.questions.stored_approvals import HELD, is_open
from amplifier.app.sessions.later_turns import LaterTurn
from amplifier.app.store.file_store import FileSessionStore
from amplifier.kernel.groups import open_group
from amplifier_kit.open_data import as_list, as_object
from amplifier_kit.rpc.frames import RpcError
from amplifier_kit.terminal import one_line
from amplifier_sdk.errors import AmplifierError, QuestionClosedError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.legible import escaped
from amplifier_sdk.person_questions import answer_text, choices_of
from amplifier_sdk.stores import StoredQuestion

__all__ = ["StoredQuestions"]

_POLL: Final = 0.25
_DECLINES: Final = "Do not answer"


@attrs.define(eq=False, kw_only=True)
class StoredQuestions:
    """The questions of one turn of a session.

    Args:
        store: where the session stands.
        session_id: the session.
        later: the turn.
        ask: asks the editor.
        send: sends an update.
        tell: shows the person a line.
        view: shows tool calls.
    """

    store: FileSessionStore
    session_id: str
    later: LaterTurn
    ask: AskEditor
    send: Send
    tell: Callable[[str], Awaitable[None]]
    view: CallView
    _shown: set[str] = attrs.field(factory=set, init=False)
    _is_last: bool = attrs.field(default=False, init=False)

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
        asked = {
            each.question_id: each
            for each in await self.store.questions(self.session_id)
        }
        question = asked.get(question_id)
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
        told = _outcome(await self._found(id_), is_ours=is_ours)
        if id_ in self._shown:
            self._shown.remove(id_)
            await self._show_end(id_, told)
        await self.tell(f"question {id_[:SHOWN_ID]} {told}")

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
        await self._tell_command(question)
        return False

    async def _store(self, question: StoredQuestion, answer: str) -> bool:
        try:
            by = getpass.getuser()
            await self.store.answer(question.question_id, answer, by=by)
        except QuestionClosedError as error:
            await self.tell(f"your answer was not taken: {error}")
            return False
        except (AmplifierError, OSError) as error:
            await self.tell(f"the answer was not stored: {explain(error)}")
            await self._tell_command(question)
            return False
        self._is_last = self._is_last or not await self.open()
        return True

    async def _chosen(
        self, question: StoredQuestion, answers: Mapping[str, str]
    ) -> str | None:
        """Return the answer that the person chose, as stores have it; `None` for whatever else the editor says."""
        shown = await to_thread.run_sync(self._call_of, question)
        self._shown.add(question.question_id)
        await self.send({"sessionUpdate": "tool_call", **shown})
        # what a tool asks for is its own to name
        kind = kind_of if question.schema is None else _kind_of_choice
        try:
            chosen = await choose(
                self.ask, shown, [(option, kind(option)) for option in answers]
            )
        except RpcError as error:
            await self.tell(f"the editor did not ask: {error}")
            return None
        return None if chosen is None else [*answers.values()][chosen]

    def _call_of(self, question: StoredQuestion) -> JSONObject:
        """Describe what is asked about, with the question as its content."""
        name = str(question.details.get("tool", ""))
        arguments = as_object(question.details.get("arguments"))
        shown = self.view.shown(_call_id(question.question_id), name, arguments, None)
        asked = [escaped(question.prompt)]
        agents = [str(each) for each in as_list(question.details.get("agents"))]
        if agents:
            asked.append(escaped(f"It is asked by the agent {' > '.join(agents)}."))
        return {
            **shown,
            "status": "pending",
            "content": [
                *self.view.diffs(name, arguments),
                *(text_content(each) for each in asked),
            ],
        }

    async def _tell_command(self, question: StoredQuestion) -> None:
        id_ = question.question_id[:SHOWN_ID]
        command = answer_command(id_, is_approval=question.schema is None)
        asked = one_line(escaped(question.prompt), 200)
        await self.tell(f"question {id_} waits: {asked}\n{command} answers it")

    async def _close_shown(self) -> None:
        """Let the editor ask no more what it was asked."""
        left, self._shown = self._shown, set()
        for each in left:
            with anyio.move_on_after(1):
                await self._show_end(each, "is not asked here any more")

    async def _show_end(self, question_id: str, told: str) -> None:
        shown = f"question {question_id[:SHOWN_ID]} {told}"
        content = text_content(self.view.redactor.redact_text(shown))
        await self.send(
            {
                "sessionUpdate": "tool_call_update",
                "toolCallId": _call_id(question_id),
                "status": "completed",
                "content": [content],
            }
        )


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
    told = f"was answered {one_line(escaped(closed.answer), 200)}"
    if is_ours:
        return told
    by = one_line(escaped(str(closed.answered_by)), 100)
    return f"{told} elsewhere, by {by}"
