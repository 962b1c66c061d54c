"""The answers of OpenAI's `/v1/responses`, from the events of a turn."""

from __future__ import annotations

from time import time

import attrs

from amplifier.serving.json_answers import json_bytes
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["ResponseEncoder", "status_of"]


@attrs.define(eq=False)
class ResponseEncoder:
    """Writes the events of one response, and the response itself.

    Args:
        model: what the agent is called.
        id: of the response.
    """

    model: str
    id: str
    _text: str = ""
    _is_behind_tool: bool = False
    _number: int = 0
    _created: float = attrs.field(factory=time)

    def __call__(self, _number: int, event: JSONObject) -> bytes:
        """Write what an event comes to; nothing for most."""
        match event["type"]:
            case "turn_started":
                return self._begin()
            case "text_delta":
                return self._delta(str(event["text"]))
            case "tool_finished":
                self._is_behind_tool = bool(self._text)
                return b""
            case "turn_finished":
                return self._end(event)
            case "turn_failed":
                return self._fail(event["error"])
            case "turn_cancelled":
                error = {"code": "cancelled", "message": "The turn was cancelled"}
                return self._fail(error)
            case "gap":
                error = {"code": "gap", "message": "The stream was read too slowly"}
                return self._fail(error)
            case _:
                return b""

    def response(
        self, status: str, text: str | None = None, usage: JSONValue = None
    ) -> JSONObject:
        """Write the response as it stands."""
        output: list[JSONValue] = [] if text is None else [self._item(text, status)]
        answer: JSONObject = {
            "id": f"resp_{self.id}",
            "object": "response",
            "created_at": int(self._created),
            "model": self.model,
            "status": status,
            "output": output,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        if isinstance(usage, dict):
            answer["usage"] = {
                "input_tokens": usage["input_tokens"],
                "input_tokens_details": {
                    "cached_tokens": usage.get("cache_read_tokens", 0),
                    "cache_write_tokens": usage.get("cache_write_tokens", 0),
                },
                "output_tokens": usage["output_tokens"],
                "output_tokens_details": {
                    "reasoning_tokens": usage.get("reasoning_tokens", 0)
                },
                "total_tokens": usage["total_tokens"],
            }
        return answer

    def _begin(self) -> bytes:
        response = self.response("in_progress")
        return b"".join(
            [
                self._line("response.created", response=response),
                self._line("response.in_progress", response=response),
                self._line(
                    "response.output_item.added",
                    output_index=0,
                    item={**self._item("", "in_progress"), "content": []},
                ),
                self._part("response.content_part.added", part=_text_part("")),
            ]
        )

    def _delta(self, text: str) -> bytes:
        # the text behind a tool's call begins on a line of its own
        if self._is_behind_tool:
            self._is_behind_tool = False
            text = f"\n\n{text}"
        self._text += text
        return self._part("response.output_text.delta", delta=text, logprobs=[])

    def _end(self, event: JSONObject) -> bytes:
        before = b""
        # a provider that does not stream has its text here alone
        if not self._text and event["text"]:
            before = self._delta(str(event["text"]))
        status, text = status_of(event["finish_reason"]), self._text
        kind = "response.completed"
        response = self.response(status, text, event["usage"])
        if status == "incomplete":
            kind = "response.incomplete"
            response["incomplete_details"] = {"reason": "max_output_tokens"}
        return before + b"".join(
            [
                self._part("response.output_text.done", text=text, logprobs=[]),
                self._part("response.content_part.done", part=_text_part(text)),
                self._line(
                    "response.output_item.done",
                    output_index=0,
                    item=self._item(text, status),
                ),
                self._line(kind, response=response),
            ]
        )

    def _fail(self, error: JSONValue) -> bytes:
        response = {**self.response("failed"), "error": error}
        return self._line("response.failed", response=response)

    def _item(self, text: str, status: str) -> JSONObject:
        return {
            "type": "message",
            "id": f"msg_{self.id}",
            "role": "assistant",
            "status": status,
            "content": [_text_part(text)],
        }

    def _part(self, kind: str, **fields: JSONValue) -> bytes:
        place: JSONObject = {
            "item_id": f"msg_{self.id}",
            "output_index": 0,
            "content_index": 0,
        }
        return self._line(kind, **place, **fields)

    def _line(self, kind: str, **fields: JSONValue) -> bytes:
        event: JSONObject = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode("ascii"), json_bytes(event))


def status_of(finish_reason: JSONValue) -> str:
    """Say whether a response is complete."""
    if finish_reason in ("length", "content_filter"):
        return "incomplete"
    return "completed"


def _text_part(text: str) -> JSONObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
