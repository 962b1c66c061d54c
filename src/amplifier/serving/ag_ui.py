"""The Agent User Interaction Protocol: the events of a turn as its front ends read them."""

from __future__ import annotations

import json
from typing import Final

import attrs

from amplifier.serving.json_answers import json_bytes
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["AgUiEncoder"]

_CANCELLED: Final[JSONObject] = {"type": "cancelled"}
_TEXT: Final = "TEXT_MESSAGE"
_REASONING: Final = "REASONING_MESSAGE"
_CALL: Final = "TOOL_CALL"


@attrs.define(eq=False)
class AgUiEncoder:
    """Writes the events of one run; of messages and calls, one is open at a time.

    Args:
        thread_id: the conversation's id, as the caller gave it.
        run_id: the run's id, likewise.
    """

    thread_id: str
    run_id: str
    _session_id: str = ""
    _open: tuple[str, str] | None = None  # which kind of thing, and its id
    _messages: int = 0
    _calls: set[str] = attrs.field(factory=set)
    _has_text: bool = False

    def __call__(self, _number: int, event: JSONObject) -> bytes:
        """Write what an event comes to, nothing for some."""
        return b"".join(map(_line, self._events(event)))

    def _events(self, event: JSONObject) -> list[JSONObject]:
        match event["type"]:
            case "text_delta":
                self._has_text = True
                return self._piece(_TEXT, event["text"], role="assistant")
            case "thinking_delta":
                return self._piece(_REASONING, event["text"], role="reasoning")
            case "tool_call_delta":
                return self._call_piece(event, event["arguments"])
            case "tool_started":
                return self._whole_call(event)
            case "tool_finished":
                return [*self._whole_call(event), self._result(event)]
            case "turn_finished":
                return self._late_text(event)
            case _:
                return self._run_event(event)

    def _run_event(self, event: JSONObject) -> list[JSONObject]:
        """Write an event that is about the run."""
        run: JSONObject = {"threadId": self.thread_id, "runId": self.run_id}
        match event["type"]:
            case "turn_started":
                self._session_id = str(event["session_id"])
                return [{"type": "RUN_STARTED", **run}]
            case "turn_result":
                result: JSONObject = {"result": event["output"]}
                done: JSONObject = {"outcome": {"type": "success"}}
                return [
                    *self._close(),
                    {"type": "RUN_FINISHED", **run, **result, **done},
                ]
            case "turn_cancelled":
                outcome: JSONObject = {"outcome": _CANCELLED}
                return [*self._close(), {"type": "RUN_FINISHED", **run, **outcome}]
            case "turn_failed":
                error = event["error"]
                assert isinstance(error, dict)
                return [*self._close(), {"type": "RUN_ERROR", **error}]
            case "gap":
                message = "The stream was read too slowly"
                return [{"type": "RUN_ERROR", "code": "gap", "message": message}]
            case kind:
                # the protocol's place for what it has no word for
                value = {**event, "session_id": self._session_id}
                return [{"type": "CUSTOM", "name": kind, "value": value}]

    def _piece(self, kind: str, text: JSONValue, *, role: str) -> list[JSONObject]:
        """Write a piece of a message; the first one opens it."""
        if not text:
            return []
        before: list[JSONObject] = []
        if self._open is None or self._open[0] != kind:
            before = self._close()
            self._messages += 1
            message_id = f"{self.run_id}-{self._messages}"
            self._open = (kind, message_id)
            if kind == _REASONING:
                before.append({"type": "REASONING_START", "messageId": message_id})
            start: JSONObject = {"messageId": message_id, "role": role}
            before.append({"type": f"{kind}_START", **start})
        content: JSONObject = {"messageId": self._open[1], "delta": text}
        return [*before, {"type": f"{kind}_CONTENT", **content}]

    def _call_piece(self, event: JSONObject, arguments: JSONValue) -> list[JSONObject]:
        """Write a piece of a call's arguments; the first one opens the call."""
        call_id = str(event["id"])
        before: list[JSONObject] = []
        if self._open != (_CALL, call_id):
            before = self._close()
            self._open = (_CALL, call_id)
            self._calls.add(call_id)
            start: JSONObject = {"toolCallId": call_id, "toolCallName": event["name"]}
            before.append({"type": "TOOL_CALL_START", **start})
        if not arguments:
            return before
        piece: JSONObject = {"toolCallId": call_id, "delta": arguments}
        return [*before, {"type": "TOOL_CALL_ARGS", **piece}]

    def _whole_call(self, event: JSONObject) -> list[JSONObject]:
        """Write a call that did not stream; and close one that did."""
        if str(event["id"]) in self._calls:
            return self._close()
        arguments = json.dumps(event["arguments"])
        return [*self._call_piece(event, arguments), *self._close()]

    def _result(self, event: JSONObject) -> JSONObject:
        self._messages += 1
        return {
            "type": "TOOL_CALL_RESULT",
            "messageId": f"{self.run_id}-{self._messages}",
            "toolCallId": event["id"],
            "content": event["output"],
            "role": "tool",
        }

    def _late_text(self, event: JSONObject) -> list[JSONObject]:
        """Write the text of a provider that does not stream."""
        if self._has_text:
            return self._close()
        return [*self._piece(_TEXT, event["text"], role="assistant"), *self._close()]

    def _close(self) -> list[JSONObject]:
        if self._open is None:
            return []
        kind, opened = self._open
        self._open = None
        key = "toolCallId" if kind == _CALL else "messageId"
        ends: list[JSONObject] = [{"type": f"{kind}_END", key: opened}]
        if kind == _REASONING:
            ends.append({"type": "REASONING_END", key: opened})
        return ends


def _line(event: JSONObject) -> bytes:
    return b"data: %b\n\n" % json_bytes(event)
