"""Approvals that wait in the store: the call is refused for now, and allowed when it is made again after the answer.

The answer covers one call: of the same tool, defined as it was, with the same arguments, asked about for the same
reason. Whatever changed since, the question is another one. Handlers decide anew when the call is made again.
Nothing is held meanwhile, no task, lock or connection, so that the answer may come days later and from another program.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

import attrs
from anyio import to_thread

from amplifier.app.questions.call_questions import CallQuestions
from amplifier.app.store.stored_questions import changing_questions
from amplifier_sdk.approvals import ApprovalRequest, ApprovalResponse
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import ApprovalUnavailableError
from amplifier_sdk.events import CancelCompleted
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import StoredQuestion

__all__ = ["ALLOW", "DENY", "StoredApprovals"]

ALLOW: Final = "allow"
DENY: Final = "deny"

_WAITS: Final = (
    "the person is asked later, as question {0}. Do not make this call again before the answer: say what you wait for"
    " and end your turn"
)


@attrs.define(eq=False)
class StoredApprovals:
    """Stores the questions of a session and of all that come of it with the session, and finds their answers there.

    Args:
        session_id: the root session.
        folder: where it is stored.
        coordinator: its coordinator, which has the tools and what takes secrets out.
    """

    session_id: str
    folder: Path
    coordinator: Coordinator
    _waiting: set[str] = attrs.field(factory=set)

    async def request_approval(self, request: ApprovalRequest, /) -> ApprovalResponse:
        """Return what was answered to this question before; an answer counts once.

        Raises:
            ApprovalUnavailableError: nobody answered yet; the question is stored.
        """
        questions = CallQuestions(self.session_id, self.coordinator)
        made = await to_thread.run_sync(questions.of, request, (ALLOW, DENY))
        # short: a person types it
        question = attrs.evolve(made, question_id=made.question_id[:12])
        stored = await to_thread.run_sync(_settle, self.folder, question)
        if stored.answer is None:
            self._waiting.add(stored.question_id)
            raise ApprovalUnavailableError(_WAITS.format(stored.question_id))
        reason = f"answered {stored.answer!r} by {stored.answered_by}"
        return ApprovalResponse(approved=stored.answer == ALLOW, reason=reason)

    async def withdraw(self, event: str, data: CancelCompleted) -> None:  # noqa: ARG002  # a handler's
        """Let what was asked since the session was opened take no answer any more: the session was cancelled."""
        waiting, self._waiting = self._waiting, set()
        if waiting:
            await to_thread.run_sync(_void, self.folder, waiting)


def _settle(folder: Path, question: StoredQuestion) -> StoredQuestion:
    """Store a question that is not there, or use up its answer, in one step; return it as it was stored."""
    base, number = question.question_id, 0
    with changing_questions(folder) as known:
        # one whose answer was used is asked anew: the same call may be meant twice
        while not _is_open(known.get(question.question_id), question):
            number += 1
            question = attrs.evolve(question, question_id=f"{base}-{number}")
        found = known.setdefault(question.question_id, question)
        if found.answer is not None:
            used: JSONObject = {**found.details, "is_used": True}
            known[found.question_id] = attrs.evolve(found, details=used)
        return found


def _void(folder: Path, ids: Collection[str]) -> None:
    with changing_questions(folder) as known:
        for id_ in ids:
            question = known.get(id_)
            if question is not None and question.answer is None:
                known[id_] = attrs.evolve(question, is_void=True)


def _is_open(stored: StoredQuestion | None, question: StoredQuestion) -> bool:
    """Tell whether a question can be stored in the place of one, or is that one and may use its answer."""
    if stored is None:
        return True
    # compared in full: the id is the beginning of the key
    is_same = stored.details.get("key") == question.details["key"]
    if not is_same or stored.is_void or stored.details.get("is_used"):
        return False
    # an answer in time counts later too; without one it would wait for ever
    expires = stored.expires
    return stored.answer is not None or expires is None or expires > time.time()
