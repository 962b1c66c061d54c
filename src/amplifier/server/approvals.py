"""Questions of a running turn to a person: stored, and answered through whichever process the person reaches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from math import isinf
from time import time
from typing import Literal
from uuid import uuid4

import anyio
import attrs

from amplifier.server.recorder import EventRecorder
from amplifier.server.records import CANCEL, approval_of
from amplifier_sdk.stores import Lease, SessionStore, StoredQuestion

__all__ = ["StoredApprovals"]


@attrs.define(eq=False)
class StoredApprovals:
    """The approval system of a served turn.

    Args:
        store: where questions stand.
        lease: of whoever runs the turn.
        turn_id: the turn.
        recorder: shows that something was asked.
    """

    store: SessionStore
    lease: Lease
    turn_id: str
    recorder: EventRecorder
    _answers: dict[str, str] = attrs.field(factory=dict)
    _changed: anyio.Event = attrs.field(factory=anyio.Event)

    async def request_approval(
        self,
        prompt: str,
        options: Sequence[str],
        timeout: float,
        default: Literal["allow", "deny"],  # noqa: ARG002  # the kernel's, when nobody answers
        /,
    ) -> str:
        """Store a question and wait for its answer."""
        question = StoredQuestion(
            question_id=str(uuid4()),
            session_id=self.lease.session_id,
            prompt=self.recorder.redactor.redact_text(prompt),
            options=tuple(options),
            details={"turn_id": self.turn_id},
            # the store refuses an answer for which nobody waits any more
            expires=None if isinf(timeout) else time() + timeout,
        )
        await self.store.ask(self.lease, question)
        self.recorder.add({"type": "approval_requested", **approval_of(question)})
        answer = None
        try:
            while answer is None:
                await self._changed.wait()
                answer = self._answers.get(question.question_id)
        finally:
            id_ = question.question_id
            if answer is None:
                self.recorder.add({"type": "approval_withdrawn", "approval_id": id_})
            else:
                answered = {"approval_id": id_, "option": answer}
                self.recorder.add({"type": "approval_answered", **answered})
        return answer

    async def watch(self, cancel: Callable[[bool], Awaitable[None]]) -> None:
        """Pass answers on to who waits for them, and cancel the turn when somebody asks for that; until cancelled.

        Args:
            cancel: ends the turn, given whether at once.
        """
        seen, done = "", set[str]()
        while True:
            seen = await self.store.wait_for_change(
                self.lease.session_id, seen, max_wait=self.lease.period
            )
            for question in await self.store.questions(self.lease.session_id):
                id_, answer = question.question_id, question.answer
                if question.details.get("turn_id") != self.turn_id or answer is None:
                    continue
                if question.details.get("kind") != CANCEL:
                    self._answers[id_] = answer
                elif id_ not in done:
                    done.add(id_)
                    await cancel(answer == "immediate")
            self._changed.set()
            self._changed = anyio.Event()
