"""Several approval providers: one after the other, until one can ask."""

from __future__ import annotations

import attrs

from amplifier_sdk.approvals import ApprovalProvider, ApprovalRequest, ApprovalResponse
from amplifier_sdk.errors import ApprovalUnavailableError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.person_questions import (
    PersonQuestion,
    QuestionProvider,
    StoredQuestionProvider,
)

__all__ = ["ApprovalProviders"]


@attrs.frozen
class ApprovalProviders:
    """Providers in the order in which they were registered; all share the question's deadline."""

    providers: tuple[ApprovalProvider, ...]

    @classmethod
    def of(cls, earlier: ApprovalProvider, later: ApprovalProvider) -> ApprovalProvider:
        """Return one provider for both; one that is there already keeps its place."""
        if isinstance(earlier, cls):
            known = earlier.providers
        else:
            known = (earlier,)
        if any(later is provider for provider in known):
            return earlier
        return cls((*known, later))

    async def request_approval(self, request: ApprovalRequest, /) -> ApprovalResponse:
        """Return the answer of the first that can ask; a refusal, a failure and silence are final.

        Raises:
            ApprovalUnavailableError: none of them can ask; the message has all their reasons.
        """
        reasons = []
        for provider in self.providers:
            try:
                return await provider.request_approval(request)
            except ApprovalUnavailableError as error:
                reasons.append(str(error))
        raise ApprovalUnavailableError("; ".join(reasons))

    async def ask_person(self, question: PersonQuestion, /) -> JSONValue:
        """Return the answer of the first that asks more than approvals.

        Raises:
            ApprovalUnavailableError: none of them does.
        """
        return await self._asker().ask_person(question)

    async def wait_for_person(self, question: PersonQuestion, /) -> JSONValue:
        """Return the answer to a question that it stored.

        Raises:
            ApprovalUnavailableError: it stores none.
        """
        asker = self._asker()
        if isinstance(asker, StoredQuestionProvider):
            return await asker.wait_for_person(question)
        raise ApprovalUnavailableError("the approval provider stores no question")

    def _asker(self) -> QuestionProvider:
        for provider in self.providers:
            if isinstance(provider, QuestionProvider):
                return provider
        raise ApprovalUnavailableError("none of the approval providers asks for a tool")
