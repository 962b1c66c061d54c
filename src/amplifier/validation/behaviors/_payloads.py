"""The canonical events with the data they carry, as the kernel, loops and modules send them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amplifier_sdk import events
from amplifier_sdk.chat import ChatResponse, Usage
from amplifier_sdk.content import TextBlock
from amplifier_sdk.results import ToolResult
from amplifier_sdk.streaming import TextDelta

_USAGE: Final = Usage(input_tokens=3, output_tokens=2, total_tokens=5)
_RESULT: Final = ToolResult(output={"lines": 3})
_CALL: Final = {
    "tool_name": "read_file",
    "tool_input": {"file_path": "notes.txt", "options": {"depth": 1}},
    "tool_call_id": "call_1",
    "parallel_group_id": None,
}
_MODEL: Final = {"provider": "vendor", "model": "model-1"}
_ERROR: Final = {
    "type": "NetworkError",
    "message": "the line went dead",
    "msg": "the line went dead",
}

# With values that each sender really sends: a handler may read any of them.
PAYLOADS: Final[Mapping[str, Mapping[str, object]]] = {
    events.SESSION_START: {"metadata": {"title": "A session"}},
    events.SESSION_RESUME: {"metadata": {"title": "A session"}},
    events.SESSION_END: {"status": "completed", "stats": {"turns": 1}},
    events.SESSION_FORK: {"parent": "parent-session"},
    events.PROMPT_SUBMIT: {"prompt": "What is in notes.txt?"},
    events.PROMPT_COMPLETE: {
        "prompt": "Hi",
        "response": "Hello.",
        "response_preview": "Hello.",
        "length": 6,
    },
    events.PLAN_START: {"prompt": "Plan it."},
    events.PLAN_END: {"plan": ["read", "write"]},
    events.PROVIDER_REQUEST: {**_MODEL, "iteration": 0},
    events.PROVIDER_RESPONSE: {
        **_MODEL,
        "response": ChatResponse(
            content=[TextBlock(text="Hello.")], usage=_USAGE, finish_reason="stop"
        ),
        "usage": _USAGE,
        "tool_calls": False,
        "duration": 0.2,
    },
    events.PROVIDER_ERROR: {
        **_MODEL,
        "error": _ERROR,
        "retryable": True,
        "status_code": None,
    },
    events.PROVIDER_RETRY: {
        **_MODEL,
        "attempt": 1,
        "max_retries": 3,
        "delay": 1.0,
        "retry_after": None,
        "error_type": "NetworkError",
        "error_message": "the line went dead",
    },
    events.PROVIDER_THROTTLE: {
        **_MODEL,
        "reason": "few requests left",
        "dimension": "requests",
        "remaining": 1,
        "limit": 50,
        "delay": 1.0,
    },
    events.PROVIDER_TOOL_SEQUENCE_REPAIRED: {
        "provider": "vendor",
        "repair_count": 1,
        "repairs": [{"id": "call_1"}],
    },
    events.PROVIDER_RESOLVE: {
        "role": "chat",
        "candidates": ["vendor"],
        "provider": "vendor",
    },
    events.LLM_REQUEST: {**_MODEL, "message_count": 2},
    events.LLM_RESPONSE: {
        **_MODEL,
        "status": "ok",
        "duration_ms": 20.0,
        "usage": {"input_tokens": 3},
    },
    events.CONTENT_BLOCK_START: {"block_type": "text", "block_index": 0},
    events.CONTENT_BLOCK_DELTA: {"block_index": 0, "delta": TextDelta(text="Hello.")},
    events.CONTENT_BLOCK_END: {
        "block_index": 0,
        "block": {"type": "text", "text": "Hello."},
        "total_blocks": 1,
    },
    events.THINKING_DELTA: {"text": "Let me see."},
    events.THINKING_FINAL: {"text": "Let me see."},
    events.TOOL_PRE: _CALL,
    events.TOOL_POST: {
        **_CALL,
        "result": _RESULT,
        "tool_result": _RESULT,
        "duration": 0.1,
    },
    events.TOOL_ERROR: {**_CALL, "error": _ERROR},
    events.CONTEXT_PRE_COMPACT: {
        "message_count": 9,
        "token_count": 900,
        "before_messages": 9,
        "before_tokens": 900,
        "strategy": "progressive",
    },
    events.CONTEXT_POST_COMPACT: {
        "message_count": 4,
        "token_count": 400,
        "after_messages": 4,
        "after_tokens": 400,
        "removed_messages": 5,
        "removed_tokens": 500,
        "strategy": "progressive",
    },
    events.CONTEXT_COMPACTION: {
        "before_tokens": 900,
        "after_tokens": 400,
        "before_messages": 9,
        "after_messages": 4,
        "messages_removed": 5,
        "budget": 500,
    },
    events.CONTEXT_INCLUDE: {"path": "notes.txt", "source": "mention"},
    events.ORCHESTRATOR_COMPLETE: {
        "orchestrator": "loop-basic",
        "turn_count": 2,
        "status": "success",
    },
    events.EXECUTION_START: {"prompt": "Hi"},
    events.EXECUTION_END: {"response": "Hello.", "status": "success"},
    events.USER_NOTIFICATION: {
        "message": "Half of the budget is spent.",
        "level": "info",
        "source": "budget",
    },
    events.ARTIFACT_WRITE: {"path": "notes.txt", "bytes": 12},
    events.ARTIFACT_READ: {"path": "notes.txt", "bytes": 12},
    events.POLICY_VIOLATION: {"policy": "paths", "reason": "outside the directory"},
    events.APPROVAL_REQUIRED: {
        "prompt": "Allow it?",
        "tool_name": "write_file",
        "options": ["Allow", "Deny"],
    },
    events.APPROVAL_GRANTED: {
        "prompt": "Allow it?",
        "tool_name": "write_file",
        "reason": "Allow",
    },
    events.APPROVAL_DENIED: {
        "prompt": "Allow it?",
        "tool_name": "write_file",
        "reason": "Deny",
    },
    events.CANCEL_REQUESTED: {"state": "graceful"},
    events.CANCEL_COMPLETED: {"was_immediate": False},
    events.MODULE_LOAD_FAILED: {
        "module_id": "tool-x",
        "module_type": "tool",
        "error": "not found",
        "reason_code": "missing_source",
    },
    events.MODULE_ON_SESSION_READY_FAILED: {
        "module_id": "tool-x",
        "error": "not ready",
    },
}
"""What each canonical event may carry; the kernel adds the ids of `EventFields`."""

REQUIRED: Final[Mapping[str, frozenset[str]]] = {
    events.CONTEXT_PRE_COMPACT: frozenset({"message_count", "token_count"}),
    events.CONTEXT_POST_COMPACT: frozenset({"message_count", "token_count"}),
    events.PROMPT_SUBMIT: frozenset({"prompt"}),
    events.PROVIDER_REQUEST: frozenset({"provider"}),
    events.PROVIDER_RESPONSE: frozenset({"provider", "response", "usage"}),
    events.TOOL_PRE: frozenset({"tool_name", "tool_input"}),
    events.TOOL_POST: frozenset({"tool_name", "tool_input", "result", "tool_result"}),
    events.TOOL_ERROR: frozenset({"tool_name", "error"}),
    events.ARTIFACT_WRITE: frozenset({"path", "bytes"}),
    events.ARTIFACT_READ: frozenset({"path", "bytes"}),
    events.USER_NOTIFICATION: frozenset({"message"}),
    events.PROVIDER_RETRY: frozenset({"provider", "attempt", "max_retries", "delay"}),
    events.LLM_REQUEST: frozenset({"provider", "model", "message_count"}),
    events.LLM_RESPONSE: frozenset({"provider", "model", "status", "duration_ms"}),
}
"""The keys that whoever reads a canonical event relies on."""


OPTIONAL: Final = frozenset(
    {
        "session_id",
        "parent_id",
        "turn_id",
        "span_id",
        "parent_span_id",
        "iteration",
        "timestamp",
        "metadata",
        "plan",
        "role",
        "candidates",
        "request_id",
        "total_blocks",
        "tool_call_id",
        "parallel_group_id",
        "duration",
        "options",
        "policy",
        "source",
        "level",
    }
)
"""The keys that any event may come without: ids outside a turn, and what not every sender knows."""

NULLABLE: Final = frozenset(
    {
        "parent_id",
        "parent_span_id",
        "model",
        "usage",
        "status_code",
        "retry_after",
        "parallel_group_id",
    }
)
"""The keys whose value may be null."""


def copied(value: object) -> object:
    """Copy the mappings and lists of an event's data; other values are shared, as the kernel shares them."""
    if isinstance(value, dict):
        return {key: copied(part) for key, part in value.items()}
    if isinstance(value, list):
        return [copied(part) for part in value]
    return value


def payload(data: Mapping[str, object]) -> dict[str, object]:
    """Copy an event's data for one handler."""
    return {key: copied(part) for key, part in data.items()}
