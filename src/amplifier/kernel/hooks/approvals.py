"""Asking the person: one question at a time, and whatever is no clear permission is a denial.

A question that is stored, to be answered later, keeps no other one from being stored beside it.

An "Allow always" is remembered while the session lives, for what the person saw and nothing else: the same
handler, event, text, tool and arguments. A handler may widen that by naming a scope, and then the person reads
its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import anyio
import attrs

from amplifier.kernel.budgets.deadlines import deadlines_held
from amplifier.kernel.cancellation import CancellationToken
from amplifier.kernel.hooks.dispatcher import HookDispatcher
from amplifier.kernel.hooks.questions import (
    ALLOWED_BY_DEFAULT,
    CANCELLED,
    NOBODY_TO_ASK,
    REMEMBERED,
    Question,
)
from amplifier.kernel.reports import report
from amplifier.kernel.suspension import Suspension
from amplifier_sdk.approvals import ApprovalProvider, ApprovalResponse
from amplifier_sdk.contracts import ApprovalSystem
from amplifier_sdk.errors import (
    ApprovalPendingError,
    ApprovalTimeoutError,
    ApprovalUnavailableError,
)
from amplifier_sdk.events import (
    APPROVAL_DENIED,
    APPROVAL_GRANTED,
    APPROVAL_REQUIRED,
    ApprovalDenied,
    ApprovalGranted,
    ApprovalRequired,
)
from amplifier_sdk.results import HookResult

__all__ = ["Approvals"]


@attrs.frozen
class _Answer:
    """What the person said, whether that allows the operation, and whether it holds for the session."""

    reason: str
    allowed: bool = False
    always: bool = False


@attrs.define(eq=False)
class Approvals:
    """A session's questions to the person.

    `turn` is held while a question is open, and shared with the sessions that ask the same person, as `suspension` is:
    what waits for an answer that comes later.
    """

    hooks: HookDispatcher
    cancellation: CancellationToken = attrs.field(factory=CancellationToken)
    system: ApprovalSystem | None = None
    provider: ApprovalProvider | None = None
    turn: anyio.Lock = attrs.field(factory=anyio.Lock)
    suspension: Suspension = attrs.field(factory=Suspension)
    _always: set[str] = attrs.field(factory=set)

    async def ask(self, questions: Sequence[Question]) -> HookResult | None:
        """Return a denial, or `None` when the person allows the operation.

        Of several questions about one operation the first one is asked that the person has not allowed
        already. When nobody answers, the operation runs only if every one of them says so.
        """
        open_questions = [
            question for question in questions if question.key not in self._always
        ]
        if not open_questions:
            return await self._grant(questions[0], REMEMBERED)
        question = open_questions[0]
        # who does not answer allows nothing that any of the handlers would deny
        if any(other.default == "deny" for other in open_questions):
            question = attrs.evolve(question, default="deny")
        if self.system is None and self.provider is None:
            return await self._refuse(question, NOBODY_TO_ASK)
        # a person must not be shown a choice in which every option denies
        if not question.can_be_allowed:
            return await self._refuse(question, question.no_option_allows)
        await self._announce(question)
        # around the wait for the lock too: the question before may stay open for long
        with deadlines_held():
            async with self.turn:
                answer = await self._put(question)
                if answer is not None and answer.always and question.key is not None:
                    self._always.add(question.key)
            if answer is None:
                answer = await self._left(question)
        if not answer.allowed:
            return await self._refuse(question, answer.reason)
        return await self._grant(question, answer.reason)

    async def _put(self, question: Question) -> _Answer | None:
        """Wait for the answer: until the question's own deadline, or until the turn is asked to stop.

        `None` where the answer comes later.
        """
        answer = _by_default(question)
        try:
            with self.waiting(question.timeout):
                answer = await self._answer(question)
        except ApprovalPendingError:
            return None
        except ApprovalTimeoutError:
            answer = _by_default(question)
        except ApprovalUnavailableError as error:
            answer = _Answer(f"Nobody can be asked: {error}")
        except (Exception, SystemExit) as error:  # foreign code
            report("approval.failed", error, prompt=question.asked)
            answer = _Answer(
                f"The approval system failed: {type(error).__name__}: {error}"
            )
        if self.cancellation.is_cancelled:
            return _Answer(CANCELLED)
        return answer

    async def _left(self, question: Question) -> _Answer:
        """Wait until the turn is suspended; return what is said where it was not before the question's deadline."""
        with (
            anyio.move_on_after(question.timeout) as scope,
            self.cancellation.ending(scope),
        ):
            await self.suspension.wait(scope)
        if self.cancellation.is_cancelled:
            return _Answer(CANCELLED)
        return _by_default(question)

    @contextmanager
    def waiting(self, timeout: float) -> Iterator[anyio.CancelScope]:
        """Let nothing wait for a person longer than that, or than the turn runs; yield the scope of the wait."""
        with (
            anyio.move_on_after(timeout) as scope,
            self.cancellation.ending(scope),
        ):
            yield scope

    async def _answer(self, question: Question) -> _Answer:
        if self.cancellation.is_cancelled:  # asked for while another question was open
            return _Answer(CANCELLED)
        # said so to the same question of a call beside this one
        if question.key in self._always:
            return _Answer(REMEMBERED, allowed=True)
        if self.system is not None:
            reply = await self.system.request_approval(
                question.prompt,
                list(question.options),
                question.timeout,
                question.default,
            )
            return _read_option(question, reply)
        assert self.provider is not None
        return _read_response(
            question, await self.provider.request_approval(question.to_request())
        )

    async def _announce(self, question: Question) -> None:
        payload = ApprovalRequired(
            prompt=question.prompt,
            action=question.asked,
            options=question.options,
            risk_level=question.risk,
        )
        _name_tool(payload, question)
        await self.hooks.emit(APPROVAL_REQUIRED, payload)

    async def _grant(self, question: Question, reason: str) -> HookResult | None:
        """Announce that it is allowed; a handler that cannot accept it, such as one that stores records, denies it."""
        payload = ApprovalGranted(prompt=question.prompt, reason=reason)
        _name_tool(payload, question)
        emission = await self.hooks.emit(APPROVAL_GRANTED, payload)
        if not emission.denied:
            return None
        return await self._refuse(
            question,
            f"{emission.decided_by} took the permission back: {emission.reason}",
        )

    async def _refuse(self, question: Question, reason: str) -> HookResult:
        payload = ApprovalDenied(prompt=question.prompt, reason=reason)
        _name_tool(payload, question)
        await self.hooks.emit(APPROVAL_DENIED, payload)
        return HookResult.deny(reason)


def _name_tool(
    payload: ApprovalRequired | ApprovalGranted | ApprovalDenied, question: Question
) -> None:
    if question.tool_name is not None:
        payload["tool_name"] = question.tool_name


def _by_default(question: Question) -> _Answer:
    if question.default == "allow":
        return _Answer(ALLOWED_BY_DEFAULT, allowed=True)
    return _Answer(question.late_answer)


def _read_option(question: Question, reply: object) -> _Answer:
    """Read the chosen option; what is no option that allows, denies."""
    if not isinstance(reply, str) or not question.allows(reply):
        return _Answer(question.denial())
    return _Answer(reply.strip(), allowed=True, always=question.allows_always(reply))


def _read_response(question: Question, response: ApprovalResponse) -> _Answer:
    # by identity: a provider's `"false"` or `1` is no permission
    if response.approved is not True:
        return _Answer(question.denial(response.reason))
    return _Answer(
        response.reason or "Allow", allowed=True, always=response.remember is True
    )
