"""Approvals that wait in the store: the call is refused for now, and allowed when it is made again after the answer.

The answer covers one call: of the same tool, defined as it was, with the same arguments, asked about for the same
reason. Whatever changed since, the question is another one. Handlers decide anew when the call is made again.
Nothing is held meanwhile, no task, lock or connection, so that the answer may come days later and from another program.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

import attrs
from anyio import to_thread

from amplifier.app.store.stored_questions import changing_questions
from amplifier_kit.redaction import redactor_of
from amplifier_sdk.approvals import ApprovalRequest, ApprovalResponse
from amplifier_sdk.contracts import Coordinator, Tool
from amplifier_sdk.errors import ApprovalUnavailableError
from amplifier_sdk.events import CancelCompleted
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import StoredQuestion
from amplifier_sdk.toolinfo import ToolInfo

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
        question = await to_thread.run_sync(self._question, request)
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

    def _question(self, request: ApprovalRequest) -> StoredQuestion:
        shown = redactor_of(self.coordinator).redact(_shown(request))
        if not isinstance(shown, Mapping):
            raise ApprovalUnavailableError("what it asks about cannot be redacted")
        arguments = _digest(request.details.get("tool_input"))
        definition = self._definition(request.tool_name)
        # the words and the agents too: what it is asked about, and on whose behalf
        words = [request.details.get("prompt"), request.details.get("hook")]
        asked = _digest([*words, *_agents(request)])
        key = _digest([self.session_id, arguments, definition, asked])
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
            question_id=key[:12],
            session_id=self.session_id,
            prompt=str(shown["prompt"]),
            options=(ALLOW, DENY),
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
        return _digest([info.name, info.description, info.input_schema, effects])


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


def _digest(value: object) -> str:
    # sorted, since the model may name the same arguments in another order
    text = json.dumps(value, sort_keys=True, default=repr)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
