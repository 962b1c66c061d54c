"""Questions of a served turn to a person: stored, and answered through whichever process the person reaches.

Nobody waits for the answer: the turn is suspended until it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import time

import attrs
from anyio import to_thread

from amplifier.app.questions.call_questions import CallQuestions, digest
from amplifier.server.recorder import EventRecorder
from amplifier.server.records import approval_of
from amplifier_sdk.approvals import ApprovalRequest, ApprovalResponse
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import ApprovalPendingError, ApprovalTimeoutError
from amplifier_sdk.stores import Lease, SessionStore, StoredQuestion

__all__ = ["StoredApprovals"]

_ALWAYS = "allow always"


@attrs.frozen(eq=False)
class StoredApprovals:
    """The approval provider of a served turn.

    Args:
        store: where questions stand.
        lease: of whoever runs the turn.
        turn_id: the turn.
        recorder: shows that something was asked.
        coordinator: the session's.
    """

    store: SessionStore
    lease: Lease
    turn_id: str
    recorder: EventRecorder
    coordinator: Coordinator

    async def request_approval(self, request: ApprovalRequest, /) -> ApprovalResponse:
        """Return what was answered to the question about this call, as it is now.

        Raises:
            ApprovalPendingError: nobody answered yet; the question is stored.
            ApprovalTimeoutError: nobody answered in time.
        """
        question = await to_thread.run_sync(self._question, request)
        questions = await self.store.questions(self.lease.session_id)
        if any(_covers(known, question) for known in questions):
            return ApprovalResponse(approved=True, reason="allowed always")
        known = {each.question_id: each for each in questions}
        stored = known.get(question.question_id)
        if stored is None:
            await self.store.ask(self.lease, question)
            self.recorder.add({"type": "approval_requested", **approval_of(question)})
            raise ApprovalPendingError(question.question_id)
        if stored.answer is None:
            is_late = stored.expires is not None and stored.expires <= time()
            if is_late or stored.is_void:
                raise ApprovalTimeoutError(question.question_id)
            raise ApprovalPendingError(question.question_id)
        answered = {"approval_id": stored.question_id, "option": stored.answer}
        self.recorder.add({"type": "approval_answered", **answered})
        allowing = request.details.get("allowing")
        return ApprovalResponse(
            approved=isinstance(allowing, Sequence) and stored.answer in allowing,
            reason=f"answered {stored.answer!r} by {stored.answered_by}",
            remember=_normal(stored.answer) == _ALWAYS,
        )

    def _question(self, request: ApprovalRequest) -> StoredQuestion:
        details, timeout = request.details, request.timeout
        options = details.get("options")
        made = CallQuestions(self.lease.session_id, self.coordinator).of(
            request,
            tuple(map(str, options if isinstance(options, Sequence) else ())),
            self.turn_id,
            str(details.get("session_id")),
            str(details.get("tool_call_id")),
        )
        covers = details.get("covers")
        covered = [covers, made.details["definition_sha256"]]
        return attrs.evolve(
            made,
            question_id=made.question_id[:32],
            # the store refuses an answer for which nobody waits any more
            expires=None if timeout is None else time() + timeout,
            details={
                **made.details,
                "turn_id": self.turn_id,
                "covers_sha256": None if covers is None else digest(covered),
            },
        )


def _covers(known: StoredQuestion, question: StoredQuestion) -> bool:
    """Whether an answer for the rest of the session covers a question."""
    if known.answer is None or _normal(known.answer) != _ALWAYS:
        return False
    covers = question.details["covers_sha256"]
    # of what cannot be distinguished from others it covers nothing
    return covers is not None and known.details.get("covers_sha256") == covers


def _normal(option: str) -> str:
    return option.strip().casefold()
