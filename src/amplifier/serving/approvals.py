"""Questions to the person at the other end: an event asks, and a second request answers."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Literal
from uuid import uuid4

import anyio
import attrs

from amplifier.serving.errors import RequestError
from amplifier.serving.event_log import EventLog
from amplifier_sdk.errors import ApprovalUnavailableError
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["ServedApprovals"]


@attrs.define(eq=False)
class _Pending:
    """A question that waits for its answer."""

    prompt: str
    options: tuple[str, ...]
    timeout: float
    id: str = attrs.field(factory=lambda: str(uuid4()))
    answer: str | None = None
    answered: anyio.Event = attrs.field(factory=anyio.Event)

    def to_json(self) -> JSONObject:
        timeout = None if self.timeout == inf else self.timeout
        return {
            "approval_id": self.id,
            "prompt": self.prompt,
            "options": list(self.options),
            "timeout": timeout,
        }


@attrs.define(eq=False)
class ServedApprovals:
    """The approval system of a served session.

    Args:
        log: the events of the turn that runs; `None` where none does.
    """

    log: EventLog | None = None
    _pending: dict[str, _Pending] = attrs.field(factory=dict)

    async def request_approval(
        self,
        prompt: str,
        options: Sequence[str],
        timeout: float,
        default: Literal["allow", "deny"],  # noqa: ARG002  # the kernel's, when nobody answers
        /,
    ) -> str:
        """Ask by an event and wait for the answer; a question that is withdrawn says so by another one.

        Raises:
            ApprovalUnavailableError: no turn runs whose reader could be asked.
        """
        log = self.log
        if log is None:
            raise ApprovalUnavailableError("No turn runs whose reader could be asked")
        question = _Pending(prompt, tuple(options), timeout)
        self._pending[question.id] = question
        log.append({"type": "approval_requested", **question.to_json()})
        try:
            await question.answered.wait()
        finally:
            self._pending.pop(question.id, None)
            option = question.answer
            kind = "approval_withdrawn" if option is None else "approval_answered"
            answer: JSONObject = {} if option is None else {"option": option}
            log.append({"type": kind, "approval_id": question.id, **answer})
        assert option is not None
        return option

    def answer(self, approval_id: str, option: str) -> None:
        """Give the answer to a question, once.

        Raises:
            RequestError: there is no such question, or it has no such option.
        """
        question = self._pending.get(approval_id)
        if question is None:
            raise RequestError(404, "not_found", "There is no such open question")
        if option not in question.options:
            known = ", ".join(map(repr, question.options))
            raise RequestError(
                422, "invalid_request", f"option: expected one of {known}"
            )
        del self._pending[approval_id]
        question.answer = option
        question.answered.set()

    def to_json(self) -> list[JSONObject]:
        """Describe the open questions."""
        return [question.to_json() for question in self._pending.values()]
