"""What a running call asks a person, and what is recorded of it so that nothing is asked or done twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from amplifier.kernel.hooks.person_questions import PersonQuestions
from amplifier.kernel.hooks.questions import person_prompt
from amplifier.kernel.spans import current_turn_id
from amplifier.kernel.turn.replay import asks_first, is_idempotent
from amplifier_sdk.errors import (
    ApprovalTimeoutError,
    ApprovalUnavailableError,
    ToolError,
)
from amplifier_sdk.journal import CallAnswered, CallAsked
from amplifier_sdk.person_questions import PersonQuestion

if TYPE_CHECKING:
    from amplifier.kernel.turn.services import SessionServices
    from amplifier_sdk.chat import ToolCall
    from amplifier_sdk.contracts import Tool
    from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["ToolQuestions"]


@attrs.define(eq=False)
class ToolQuestions:
    """The questions of one call.

    A question is known by its words and by how many of the same words came before it, so that a call which runs again
    finds what was answered.
    """

    call: ToolCall
    tool: Tool
    arguments: JSONObject
    services: SessionServices
    _count: int = 0
    _same: Counter[str] = attrs.field(factory=Counter)

    async def ask(
        self, message: str, schema: Mapping[str, JSONValue], timeout: float | None, /
    ) -> JSONValue:
        """Ask a person; see `ToolContext.ask`.

        Raises:
            ToolError: nobody can be asked, or nobody answered.
        """
        question = self._question(message, schema, timeout)
        approvals = self.services.decisions.approvals
        number, self._count = self._count, self._count + 1
        journal, turn_id = self.services.journal, current_turn_id()
        is_noted = journal is not None and asks_first(self.tool)
        if is_noted and journal is not None:
            asked = CallAsked(turn_id=turn_id, call_id=self.call.id, number=number)
            await journal.append(asked)
        try:
            answer = await PersonQuestions(approvals).ask(question)
        except ApprovalTimeoutError as error:
            raise ToolError(f"Nobody answered in time: {message:.200}") from error
        except ApprovalUnavailableError as error:
            raise ToolError(f"Nobody can be asked: {error}") from error
        if is_noted and journal is not None:
            answered = CallAnswered(
                turn_id=turn_id, call_id=self.call.id, number=number
            )
            await journal.append(answered)
        return answer

    def _question(
        self, message: str, schema: Mapping[str, JSONValue], timeout: float | None
    ) -> PersonQuestion:
        services, call = self.services, self.call
        agents = services.decisions.agents
        before, self._same[message] = self._same[message], self._same[message] + 1
        return PersonQuestion(
            tool_name=call.name,
            prompt=person_prompt(agents, call.name, self.arguments, message),
            schema=schema,
            timeout=timeout,
            is_repeatable=is_idempotent(self.tool) or asks_first(self.tool),
            details={
                "tool_input": self.arguments,
                "tool_call_id": call.id,
                "session_id": services.session_id,
                "agents": list(agents),
                "message": message,
                "number": before,
            },
        )
