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
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.person_questions import PersonQuestion
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
        details = request.details
        prompt = str(details.get("prompt", request.action))
        shown = self._redacted(details, prompt, {})
        if "tool_input" in details:
            arguments = digest(details["tool_input"])
            definition = self._definition(request.tool_name)
        else:  # what is asked about is an event
            arguments, definition = digest(request.action), digest(None)
        # the words and the agents too: what it is asked about, and on whose behalf
        words = [details.get("prompt"), details.get("hook")]
        asked = digest([*words, *_agents(details)])
        key = digest([self.session_id, arguments, definition, asked, *bound])
        return self._made(
            key,
            shown,
            options,
            tool=request.tool_name,
            arguments_sha256=arguments,
            definition_sha256=definition,
            risk=request.risk_level,
        )

    def of_tool(self, question: PersonQuestion, *bound: str) -> StoredQuestion:
        """Return the question that a tool asks in a call.

        Args:
            question: what it asks.
            bound: what else an answer is bound to.

        Raises:
            ApprovalUnavailableError: as for `of`.
        """
        details, schema = question.details, dict(question.schema)
        shown = self._redacted(details, question.prompt, schema)
        arguments = digest(details["tool_input"])
        definition = self._definition(question.tool_name)
        asked = [details.get("message"), details.get("number"), schema]
        # of another form than the key of an approval: no answer is ever one to the other
        said = digest(["question", *asked, *_agents(details)])
        key = digest([self.session_id, arguments, definition, said, *bound])
        return self._made(
            key,
            shown,
            (),
            tool=question.tool_name,
            arguments_sha256=arguments,
            definition_sha256=definition,
            schema=shown["schema"],
        )

    def _made(
        self,
        key: str,
        shown: Mapping[str, JSONValue],
        options: tuple[str, ...],
        **more: JSONValue,
    ) -> StoredQuestion:
        details: JSONObject = {
            **more,
            "arguments": shown["arguments"],
            "agents": shown["agents"],
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

    def _redacted(
        self, details: Mapping[str, object], prompt: str, schema: JSONObject
    ) -> Mapping[str, JSONValue]:
        """Return what a person reads, as JSON data without secrets.

        Raises:
            ApprovalUnavailableError: it has no JSON form, or cannot be redacted.
        """
        arguments, agents = details.get("tool_input"), _agents(details)
        try:
            text = json.dumps(
                {"arguments": arguments, "agents": agents, "schema": schema}
            )
        except (TypeError, ValueError) as error:
            problem = f"what it asks about has no JSON form: {error}"
            raise ApprovalUnavailableError(problem) from error
        copied: JSONObject = {**json.loads(text), "prompt": prompt}
        shown = redactor_of(self.coordinator).redact(copied)
        if not isinstance(shown, Mapping):
            raise ApprovalUnavailableError("what it asks about cannot be redacted")
        return shown

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
            problem = f"the session has no tool {name!r}, so an answer could not be limited to what it is now"
            raise ApprovalUnavailableError(problem)
        info = ToolInfo.of(tool)
        effects = sorted(info.effects or ())
        return digest([info.name, info.description, info.input_schema, effects])


def digest(value: object) -> str:
    """Return the SHA-256 of a value as JSON text."""
    # sorted, since the model may name the same arguments in another order
    text = json.dumps(value, sort_keys=True, default=repr)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _agents(details: Mapping[str, object]) -> list[str]:
    """Return the agents that led from the root session to the call, its own the last."""
    named = details.get("agents")
    if not isinstance(named, list | tuple):
        return []
    return [str(each) for each in named]
