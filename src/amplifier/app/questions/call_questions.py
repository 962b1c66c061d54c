"""What a person is asked about a call, as a store has it: shown without secrets, and bound to the call as it is.

An answer covers what the question names: the tool as it is defined, its arguments, the words of the question, and the
agents that led to the call. Where any of it is another, the question is another one.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from hashlib import sha256

import attrs

from amplifier_kit.redaction import redactor_of
from amplifier_sdk.approvals import ApprovalRequest
from amplifier_sdk.contracts import Coordinator, Tool
from amplifier_sdk.errors import ApprovalUnavailableError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import StoredQuestion
from amplifier_sdk.toolinfo import ToolInfo

__all__ = ["CallQuestions", "digest"]


@attrs.frozen(eq=False)
class CallQuestions:
    """Makes the questions of a session and of all that come of it.

    Args:
        session_id: the root session.
        coordinator: its coordinator, which has the tools and what takes secrets out.
    """

    session_id: str
    coordinator: Coordinator

    def of(
        self, request: ApprovalRequest, options: tuple[str, ...], *bound: str
    ) -> StoredQuestion:
        """Return the question about a call.

        Args:
            request: what is asked.
            options: what the person may answer.
            bound: what else an answer is bound to.

        Raises:
            ApprovalUnavailableError: what it asks about cannot be shown, or changes of it could not be seen.
        """
        shown = redactor_of(self.coordinator).redact(_shown(request))
        if not isinstance(shown, Mapping):
            raise ApprovalUnavailableError("what it asks about cannot be redacted")
        if "tool_input" in request.details:
            arguments = digest(request.details["tool_input"])
            definition = self._definition(request.tool_name)
        else:  # what is asked about is an event
            arguments, definition = digest(request.action), digest(None)
        # the words and the agents too: what it is asked about, and on whose behalf
        words = [request.details.get("prompt"), request.details.get("hook")]
        asked = digest([*words, *_agents(request)])
        key = digest([self.session_id, arguments, definition, asked, *bound])
        details: JSONObject = {
            "tool": request.tool_name,
            "arguments": shown["arguments"],
            "arguments_sha256": arguments,
            "definition_sha256": definition,
            "agents": shown["agents"],
            "risk": request.risk_level,
            "asked_at": time.time(),
            "key": key,
        }
        return StoredQuestion(
            question_id=key,
            session_id=self.session_id,
            prompt=str(shown["prompt"]),
            options=options,
            details=details,
        )

    def _definition(self, name: str) -> str:
        """Return the hash of what a tool says it is.

        Raises:
            ApprovalUnavailableError: the session has no such tool, so that nobody could see it change.
        """
        tools = self.coordinator.get("tools")
        tool: Tool | None = None
        if isinstance(tools, Mapping):
            tool = tools.get(name)
        if tool is None:
            told = f"the session has no tool {name!r}, so an answer could not be limited to what it is now"
            raise ApprovalUnavailableError(told)
        info = ToolInfo.of(tool)
        effects = sorted(info.effects or ())
        return digest([info.name, info.description, info.input_schema, effects])


def digest(value: object) -> str:
    """Return the SHA-256 of a value as JSON text."""
    # sorted, since the model may name the same arguments in another order
    text = json.dumps(value, sort_keys=True, default=repr)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _shown(request: ApprovalRequest) -> JSONObject:
    """Return what a person reads, as JSON data.

    Raises:
        ApprovalUnavailableError: it has no JSON form.
    """
    arguments = request.details.get("tool_input")
    try:
        copied: JSONObject = json.loads(
            json.dumps({"arguments": arguments, "agents": _agents(request)})
        )
    except (TypeError, ValueError) as error:
        told = f"what it asks about has no JSON form: {error}"
        raise ApprovalUnavailableError(told) from error
    return {**copied, "prompt": str(request.details.get("prompt", request.action))}


def _agents(request: ApprovalRequest) -> list[str]:
    """Return the agents that led from the root session to the call, its own the last."""
    named = request.details.get("agents")
    if not isinstance(named, list | tuple):
        return []
    return [str(each) for each in named]
