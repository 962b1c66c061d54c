"""The answers of OpenAI's `/v1/chat/completions`, from the events of a turn."""

from __future__ import annotations

from time import time

import attrs

from amplifier.serving.json_answers import json_bytes
from amplifier_sdk.chat import Usage
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.streaming import TurnFinished

__all__ = ["ChatEncoder", "chat_completion"]


@attrs.define(eq=False)
class ChatEncoder:
    """Writes the chunks of one answer.

    Args:
        model: what the agent is called.
        has_usage: whether the caller wants the usage as well.
    """

    model: str
    id: str
    has_usage: bool = False
    _text: str = ""
    _is_behind_tool: bool = False
    _head: JSONObject = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._head = {
            "id": f"chatcmpl-{self.id}",
            "object": "chat.completion.chunk",
            "created": int(time()),
            "model": self.model,
        }

    def __call__(self, _number: int, event: JSONObject) -> bytes:
        """Write what an event comes to; nothing for most."""
        match event["type"]:
            case "turn_started":
                return self._delta({"role": "assistant", "content": ""})
            case "text_delta":
                return self._delta({"content": self._joined(str(event["text"]))})
            case "tool_finished":
                self._is_behind_tool = bool(self._text)
                return b""
            case "turn_finished":
                return self._end(event)
            case "turn_result":
                return b"data: [DONE]\n\n"
            case "turn_failed":
                return _line({"error": event["error"]})
            case "turn_cancelled":
                error = {"code": "cancelled", "message": "The turn was cancelled"}
                return _line({"error": error})
            case "gap":
                error = {"code": "gap", "message": "The stream was read too slowly"}
                return _line({"error": error})
            case _:
                return b""

    def _joined(self, text: str) -> str:
        """Begin the text behind a tool's call on a line of its own."""
        if self._is_behind_tool:
            self._is_behind_tool = False
            text = f"\n\n{text}"
        self._text += text
        return text

    def _end(self, event: JSONObject) -> bytes:
        whole = b""
        # a provider that does not stream has its text here alone
        if not self._text and event["text"]:
            whole = self._delta({"content": event["text"]})
        whole += self._delta({}, _finish_reason(event["finish_reason"]))
        if self.has_usage and isinstance(event["usage"], dict):
            usage = _usage_of(event["usage"])
            whole += _line({**self._head, "choices": [], "usage": usage})
        return whole

    def _delta(self, delta: JSONObject, finish_reason: str | None = None) -> bytes:
        choice: JSONObject = {
            "index": 0,
            "delta": delta,
            "finish_reason": finish_reason,
        }
        return _line({**self._head, "choices": [choice]})


def chat_completion(model: str, turn_id: str, finished: TurnFinished) -> JSONObject:
    """Write the answer to a caller that does not read a stream."""
    choice: JSONObject = {
        "index": 0,
        "message": {"role": "assistant", "content": finished.text},
        "finish_reason": _finish_reason(finished.finish_reason),
    }
    answer: JSONObject = {
        "id": f"chatcmpl-{turn_id}",
        "object": "chat.completion",
        "created": int(time()),
        "model": model,
        "choices": [choice],
    }
    if finished.usage is not None:
        answer["usage"] = _usage(finished.usage)
    return answer


def _finish_reason(reason: JSONValue) -> str:
    if reason in ("length", "content_filter"):
        return str(reason)
    return "stop"


def _usage(usage: Usage) -> JSONObject:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }


def _usage_of(usage: JSONObject) -> JSONObject:
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
    }


def _line(chunk: JSONObject) -> bytes:
    return b"data: %b\n\n" % json_bytes(chunk)
