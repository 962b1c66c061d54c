"""Questions of a turn to a person that stand in a store: nobody waits for the answer, which may come days later.

An approval suspends the turn, and so does what a tool asks that can run again from its beginning. When the turn is
continued everything is asked anew, and finds its answer. Any other tool waits in the process that runs its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import time
from typing import Final

import attrs
from anyio import to_thread

from amplifier.app.questions.books import QuestionBook
from amplifier.app.questions.call_questions import CallQuestions, digest
from amplifier_sdk.approvals import ApprovalRequest, ApprovalResponse
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import (
    ApprovalPendingError,
    ApprovalTimeoutError,
    ApprovalUnavailableError,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.person_questions import PersonQuestion, answer_of
from amplifier_sdk.results import HookResult
from amplifier_sdk.stores import StoredQuestion

__all__ = [
    "HELD",
    "StoredApprovals",
    "described_question",
    "is_lasting",
    "is_open",
    "is_waited_for",
]

HELD: Final = "held"
"""The key of a question's details that says whether its call waits for the answer in the process that asked."""

_ALWAYS: Final = "allow always"
_ID: Final = 32
_LEFT_OUT: Final = (
    "its arguments hold a secret, or what looks like one, and a call that waits for an answer is stored without any;"
    " let what runs take it from a variable or a file"
)
_UNSAID: Final = HookResult().approval_timeout
"""Seconds for which a person at a screen is waited for where nothing is said of it; a store has more time."""


@attrs.frozen(eq=False)
class StoredApprovals:
    """Asks a person, for a session and for all that come of it, by questions that are stored.

    Args:
        session_id: the root session.
        turn_id: its turn.
        book: where the questions stand.
        coordinator: the root session's, which has the tools and what takes secrets out.
        shows: takes what is shown of a question, as the event that it is.
        roles: who may answer; empty for whoever has the store.
        is_patient: whether an approval waits as long as it takes, whatever the handler that asks says.
    """

    session_id: str
    turn_id: str
    book: QuestionBook
    coordinator: Coordinator
    shows: Callable[[JSONObject], None]
    roles: tuple[str, ...] = ()
    is_patient: bool = False

    async def request_approval(self, request: ApprovalRequest, /) -> ApprovalResponse:
        """Return what was answered to the question about this call, as it is now.

        Raises:
            ApprovalPendingError: nobody answered yet; the question is stored.
            ApprovalTimeoutError: nobody answered in time.
            ApprovalUnavailableError: what it asks about cannot be shown, changes of it could not be seen, or its
                arguments hold a secret: the call could not be made once there is an answer.
        """
        question = await to_thread.run_sync(self._approval, request)
        if any(_covers(each, question) for each in await self.book.questions()):
            return ApprovalResponse(approved=True, reason="allowed always")
        stored = await self._stored(question)
        if stored.answer is None:
            raise ApprovalPendingError(question.question_id)
        allowing = request.details.get("allowing")
        if isinstance(allowing, Sequence) and stored.answer in allowing:
            # as it was chosen: whoever asked offers some that hold longer than once
            is_always = _normal(stored.answer) == _ALWAYS
            return ApprovalResponse(
                approved=True, reason=stored.answer, remember=is_always
            )
        reason = f"answered {stored.answer!r} by {stored.answered_by}"
        return ApprovalResponse(approved=False, reason=reason)

    async def ask_person(self, question: PersonQuestion, /) -> JSONValue:
        """Return what was answered to what a tool asks; `None` where the person declined.

        Raises:
            ApprovalPendingError: nobody answered yet; the question is stored.
            ApprovalTimeoutError: nobody answered in time.
            ApprovalUnavailableError: as for `request_approval`.
        """
        asked = await to_thread.run_sync(self._of_tool, question)
        stored = await self._stored(asked)
        if stored.answer is None:
            raise ApprovalPendingError(asked.question_id)
        return answer_of(stored.answer)

    async def wait_for_person(self, question: PersonQuestion, /) -> JSONValue:
        """Return what is answered to a question that was stored, once it is; one that nobody waits for is withdrawn.

        Raises:
            ApprovalTimeoutError: it takes no answer any more.
        """
        asked = await to_thread.run_sync(self._of_tool, question)
        is_answered = False
        try:
            while (stored := await self._stored(asked)).answer is None:
                await self.book.changed()
            is_answered = True
            return answer_of(stored.answer)
        finally:
            if not is_answered and await self.book.withdraw(asked.question_id):
                self._withdrawn(asked.question_id)

    async def withdraw_left(self) -> None:
        """Withdraw what calls of the turn wait for that ended with the process which ran them."""
        for question in await self.book.questions():
            is_left = question.details.get("turn_id") == self.turn_id
            if not (is_left and question.details.get(HELD) and is_open(question)):
                continue
            if await self.book.withdraw(question.question_id):
                self._withdrawn(question.question_id)

    async def _stored(self, question: StoredQuestion) -> StoredQuestion:
        """Return a question as it stands by now, answered or not; it is stored where it is not there.

        Raises:
            ApprovalTimeoutError: it takes no answer any more.
        """
        known = {each.question_id: each for each in await self.book.questions()}
        stored = known.get(question.question_id)
        if stored is None:
            await self.book.ask(question)
            shown = described_question(question)
            self.shows({"type": "approval_requested", **shown})
            return question
        if stored.answer is None:
            if not is_open(stored):
                raise ApprovalTimeoutError(question.question_id)
            return stored
        answered = {"approval_id": stored.question_id, "option": stored.answer}
        self.shows({"type": "approval_answered", **answered})
        return stored

    def _approval(self, request: ApprovalRequest) -> StoredQuestion:
        details = request.details
        options = details.get("options")
        made = CallQuestions(self.session_id, self.coordinator).of(
            request,
            tuple(map(str, options if isinstance(options, Sequence) else ())),
            self.turn_id,
            str(details.get("session_id")),
            str(details.get("tool_call_id")),
        )
        shown = digest(made.details["arguments"])
        if "tool_input" in details and shown != digest(details["tool_input"]):
            raise ApprovalUnavailableError(_LEFT_OUT)
        covers = details.get("covers")
        covered = [covers, made.details["definition_sha256"]]
        more: JSONObject = {
            "covers_sha256": None if covers is None else digest(covered)
        }
        is_unsaid = request.timeout == _UNSAID
        timeout = None if self.is_patient or is_unsaid else request.timeout
        return self._of_turn(made, timeout, more)

    def _of_tool(self, question: PersonQuestion) -> StoredQuestion:
        details = question.details
        made = CallQuestions(self.session_id, self.coordinator).of_tool(
            question,
            self.turn_id,
            str(details.get("session_id")),
            str(details.get("tool_call_id")),
        )
        return self._of_turn(made, question.timeout, {HELD: not question.is_repeatable})

    def _of_turn(
        self, made: StoredQuestion, timeout: float | None, more: JSONObject
    ) -> StoredQuestion:
        roles: JSONObject = {"roles": list(self.roles)} if self.roles else {}
        return attrs.evolve(
            made,
            question_id=made.question_id[:_ID],
            # the store refuses an answer for which nobody waits any more
            expires=None if timeout is None else time() + timeout,
            details={**made.details, "turn_id": self.turn_id, **more, **roles},
        )

    def _withdrawn(self, question_id: str) -> None:
        self.shows({"type": "approval_withdrawn", "approval_id": question_id})


def is_open(question: StoredQuestion) -> bool:
    """Tell whether a question takes an answer."""
    is_expired = question.expires is not None and question.expires <= time()
    return question.answer is None and not question.is_void and not is_expired


def is_waited_for(question: StoredQuestion, turn_id: str) -> bool:
    """Tell whether a question is one for which a turn was suspended."""
    details = question.details
    is_ours = details.get("turn_id") == turn_id and "key" in details
    return is_ours and not details.get(HELD)


def is_lasting(question: StoredQuestion) -> bool:
    """Tell whether the answer to a question covers calls of later turns as well."""
    if question.answer is None or _normal(question.answer) != _ALWAYS:
        return False
    # of what cannot be distinguished from others it covers nothing
    return question.details.get("covers_sha256") is not None


def described_question(question: StoredQuestion) -> JSONObject:
    """Describe a question as its event does."""
    timeout = None
    if question.expires is not None:
        timeout = max(0.0, question.expires - time())
    described: JSONObject = {
        "approval_id": question.question_id,
        "prompt": question.prompt,
        "options": list(question.options),
        "timeout": timeout,
    }
    if question.schema is not None:
        described["schema"] = {**question.schema}
    agents = question.details.get("agents")
    if agents:
        described["agents"] = agents
    return described


def _covers(known: StoredQuestion, question: StoredQuestion) -> bool:
    """Whether an answer for the rest of the session covers a question."""
    covers = question.details["covers_sha256"]
    return is_lasting(known) and known.details["covers_sha256"] == covers


def _normal(option: str) -> str:
    return option.strip().casefold()
