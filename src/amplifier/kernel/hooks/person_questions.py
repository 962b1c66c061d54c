"""Asking the person what a running tool wants to know: by whoever asks them to approve."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import attrs

from amplifier.kernel.budgets.deadlines import deadlines_held
from amplifier.kernel.hooks.approvals import Approvals
from amplifier.kernel.hooks.questions import CANCELLED
from amplifier_sdk.contracts import ApprovalSystem
from amplifier_sdk.errors import (
    ApprovalPendingError,
    ApprovalTimeoutError,
    ApprovalUnavailableError,
)
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.person_questions import (
    PersonQuestion,
    QuestionProvider,
    StoredQuestionProvider,
    choices_of,
    misfit_of,
)

if TYPE_CHECKING:
    import anyio

__all__ = ["PersonQuestions"]

_DECLINES: Final = "Do not answer"
_NOBODY: Final = "nobody is there to answer a tool"
_NOT_STORED: Final = "whoever asks the person does not say when the answer is there"
_MUST_WRITE: Final = "whoever asks the person offers choices alone"


@attrs.frozen(eq=False)
class PersonQuestions:
    """The questions that a session's tools ask.

    Args:
        approvals: the session's questions to the person.
    """

    approvals: Approvals

    async def ask(self, question: PersonQuestion) -> JSONValue:
        """Return what the person answers; `None` where they decline. No deadline runs meanwhile.

        Raises:
            ApprovalTimeoutError: nobody answered in time.
            ApprovalUnavailableError: nobody can be asked, the answer does not fit, or the turn is asked to stop.
        """
        approvals = self.approvals
        timeout = inf if question.timeout is None else question.timeout
        answer, is_answered = None, False
        with deadlines_held():
            try:
                async with approvals.turn:
                    with approvals.waiting(timeout):
                        answer, is_answered = await self._put(question), True
            except ApprovalPendingError:
                # without the lock: others may be asked while this one waits
                with approvals.waiting(timeout) as wait:
                    answer, is_answered = await self._later(question, wait), True
        if is_answered:
            return _fitting(question, answer)
        if approvals.cancellation.is_cancelled:
            raise ApprovalUnavailableError(CANCELLED)
        raise ApprovalTimeoutError(question.prompt)

    async def _put(self, question: PersonQuestion) -> JSONValue:
        approvals = self.approvals
        if approvals.cancellation.is_cancelled:  # while another question was open
            raise ApprovalUnavailableError(CANCELLED)
        provider = self._provider
        if provider is not None:
            return await provider.ask_person(question)
        if approvals.system is not None:
            return await _choose(approvals.system, question)
        raise ApprovalUnavailableError(_NOBODY)

    async def _later(
        self, question: PersonQuestion, wait: anyio.CancelScope
    ) -> JSONValue:
        """Wait for an answer that comes later: the turn is left meanwhile, or a call that cannot be repeated stays."""
        if question.is_repeatable:
            with self.approvals.suspension.call_waiting():
                await self.approvals.suspension.wait(wait)
        provider = self._provider
        if not isinstance(provider, StoredQuestionProvider):
            raise ApprovalUnavailableError(_NOT_STORED)
        return await provider.wait_for_person(question)

    @property
    def _provider(self) -> QuestionProvider | None:
        """Whoever can ask for more than an approval."""
        # the first that may approve is the one that is asked
        asker: object = self.approvals.system or self.approvals.provider
        return asker if isinstance(asker, QuestionProvider) else None


async def _choose(system: ApprovalSystem, question: PersonQuestion) -> JSONValue:
    """Ask what has a few answers as an approval is asked for."""
    choices = choices_of(question.schema)
    if not choices:
        raise ApprovalUnavailableError(_MUST_WRITE)
    timeout = inf if question.timeout is None else question.timeout
    options = [*choices, _DECLINES]
    reply = await system.request_approval(question.prompt, options, timeout, "deny")
    return choices.get(reply)


def _fitting(question: PersonQuestion, answer: JSONValue) -> JSONValue:
    problem = misfit_of(question.schema, answer)
    if problem is not None:
        raise ApprovalUnavailableError(f"the answer does not fit: {problem}")
    return answer
