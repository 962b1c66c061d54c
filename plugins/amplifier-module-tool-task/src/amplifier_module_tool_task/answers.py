"""What a model reads of an agent's work: the answer first, then how to go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from amplifier_kit.trust.untrusted import UNTRUSTED, mark_untrusted, without_marks
from amplifier_module_tool_task.truncation import shortened
from amplifier_sdk.content import TextBlock
from amplifier_sdk.delegation import ChildResult
from amplifier_sdk.errors import BudgetExceededError, ChildNotFoundError, did_you_mean
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import ToolResult

__all__ = ["Answers", "read_result"]

_LONGEST_ERROR: Final = 2_000
_LONGEST_NAME: Final = 200
_MAX_NAMED: Final = 10


def read_result(result: object) -> ChildResult:
    """Read what `session.spawn` gave; one that an application wrote may give a mapping.

    Raises:
        TypeError: it is neither, or has no output and no session id.
    """
    if isinstance(result, ChildResult):
        return result
    if (
        not isinstance(result, Mapping)
        or "output" not in result
        or "session_id" not in result
    ):
        raise TypeError(
            f"session.spawn gives a ChildResult, or a mapping with 'output' and 'session_id'; got {result!r:.100}"
        )
    limit, turns = result.get("limit"), result.get("turn_count")
    return ChildResult(
        output=str(result["output"]),
        session_id=str(result["session_id"]),
        status="cancelled" if result.get("status") == "cancelled" else "completed",
        limit=limit if isinstance(limit, str) else None,
        turn_count=turns if isinstance(turns, int) else 1,
        spending=spending
        if isinstance(spending := result.get("spending"), Mapping)
        else {},
    )


@attrs.frozen(kw_only=True)
class Answers:
    """Writes what came of one agent's turn.

    Args:
        agent: the agent's name, or its session where that is not known.
        session_id: the agent's session.
        limit: characters of an answer.
    """

    agent: str
    session_id: str
    limit: int

    def of(self, result: ChildResult) -> ToolResult:
        """Write an answer, or what there is of one that was cancelled.

        The model reads the answer and a line behind it; a program finds the same by name in `output`.
        """
        if result.status == "cancelled":
            message = f"The agent {self._name} was cancelled before it had finished"
            return self._failure(message, "cancelled", result.output, can_resume=True)
        response = self._marked(result.output)
        output: JSONObject = {
            "response": response,
            "session_id": result.session_id,
            "trust": UNTRUSTED,
        }
        ended = ""
        if result.limit is not None:
            output["limit"] = result.limit
            ended = f"; its turn ended early at the limit {result.limit!r}"
        # behind the marks: the agent itself cannot write this line
        text = f"{response}\n\n[session_id: {result.session_id}{ended}]"
        return ToolResult(output=output, content=[TextBlock(text=text)])

    def stopped(self) -> ToolResult:
        """Write that an agent was stopped, by the model, or with its session."""
        message = f"The agent {self._name} was stopped before it had finished"
        return self._failure(message, "cancelled", "", can_resume=True)

    def interrupted(self, *, can_resume: bool) -> ToolResult:
        """Write that the program ended while an agent worked.

        Args:
            can_resume: whether its session is stored.
        """
        message = (
            f"The agent {self._name} was interrupted: the program ended while it worked"
        )
        return self._failure(message, "interrupted", "", can_resume=can_resume)

    def failed(
        self, error: Exception, *, can_resume: bool, known: Sequence[str]
    ) -> ToolResult:
        """Write why there is no answer.

        Args:
            error: what the agent's turn raised.
            can_resume: whether its session has begun.
            known: the sessions that could be resumed.
        """
        if isinstance(error, ChildNotFoundError):
            asked = self.session_id[:_LONGEST_NAME]
            hint = (
                did_you_mean(asked, known)
                or f"; it has {', '.join(known[-_MAX_NAMED:]) or 'none'}."
            )
            message = f"No agent of this session has the session {asked!r}{hint} Leave session_id out to begin anew"
            return ToolResult.failure(message, type="unknown_session")
        if isinstance(error, BudgetExceededError):
            reached = f"the limit {error.limit!r} of {error.amount} is reached"
            message = f"The agent {self._name} was stopped: {reached}"
            return self._failure(
                message,
                "limit",
                error.partial_text,
                can_resume=can_resume,
                limit=error.limit,
            )
        # an error may quote the agent, whose text could close the marks
        said = without_marks(shortened(str(error), _LONGEST_ERROR)).strip()
        if said:
            reason = f"{type(error).__name__}: {said}"
        else:
            reason = type(error).__name__
        return self._failure(
            f"The agent {self._name} failed: {reason}",
            "agent_failed",
            "",
            can_resume=can_resume,
        )

    def _failure(
        self,
        message: str,
        kind: str,
        written: str,
        *,
        can_resume: bool,
        **details: JSONValue,
    ) -> ToolResult:
        error: JSONObject = {"type": kind, **details}
        # what there is of an answer may hold all that was wanted
        if written:
            error |= {"response": self._marked(written), "trust": UNTRUSTED}
        # Without the id the model would begin anew and lose what the agent has done.
        if can_resume:
            error["session_id"] = self.session_id
        return ToolResult(success=False, error={"message": message, **error})

    def _marked(self, text: str) -> str:
        said = shortened(
            text, self.limit, "; resume the agent's session to ask for them"
        )
        return mark_untrusted(
            said if said.strip() else "(an empty answer)",
            f"agent:{self.agent[:_LONGEST_NAME]}",
        )

    @property
    def _name(self) -> str:
        return repr(without_marks(self.agent[:_LONGEST_NAME]))
