"""The JSON Schema of everything that a turn's event stream may hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amplifier_kit.event_json import STREAM_EVENT_SCHEMAS
from amplifier_sdk.jsontypes import JSONObject

__all__ = [
    "ERROR_SCHEMA",
    "EVENT_SCHEMA",
    "EVENT_SCHEMAS",
    "SESSION_SCHEMA",
    "TURN_SCHEMA",
]

_TEXT: Final[JSONObject] = {"type": "string"}
_NUMBER: Final[JSONObject] = {"type": "integer", "minimum": 1}

ERROR_SCHEMA: Final[JSONObject] = {
    "type": "object",
    "properties": {"code": _TEXT, "message": _TEXT},
    "required": ["code", "message"],
    "additionalProperties": False,
}
"""What is wrong: `code` for programs, `message` for people."""

TURN_SCHEMA: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "turn_id": _TEXT,
        "state": {"enum": ["queued", "running", "finished", "failed", "cancelled"]},
        "output": {"description": "The answer of a turn that finished."},
        "error": ERROR_SCHEMA,
        "text": {**_TEXT, "description": "What a cancelled turn had written."},
    },
    "required": ["turn_id", "state"],
    "additionalProperties": False,
}
"""How a turn stands."""

_QUESTION: Final[dict[str, JSONObject]] = {
    "approval_id": _TEXT,
    "prompt": {**_TEXT, "description": "All that the person should read."},
    "options": {"type": "array", "items": _TEXT},
    "timeout": {"type": ["number", "null"], "description": "Seconds to answer."},
}
_ASKED: Final[dict[str, JSONObject]] = {
    "schema": {
        "type": "object",
        "description": "The JSON Schema of the answer, where a tool asks and there are no options; only where sessions"
        " are stored.",
    },
    "agents": {
        "type": "array",
        "items": _TEXT,
        "description": "The agents from the session to the one that asks; only where sessions are stored.",
    },
}
"""What a question may have besides."""

SESSION_SCHEMA: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "session_id": _TEXT,
        "state": {"enum": ["idle", "running"]},
        "turns": {"type": "array", "items": TURN_SCHEMA},
        "approvals": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {**_QUESTION, **_ASKED},
                "required": list(_QUESTION),
                "additionalProperties": False,
            },
        },
    },
    "required": ["session_id", "state", "turns", "approvals"],
    "additionalProperties": False,
}
"""A session with its last turns and open questions."""


def _event(kind: str, description: str, **properties: JSONObject) -> JSONObject:
    return {
        "type": "object",
        "description": description,
        "properties": {"type": {"const": kind}, **properties},
        "required": ["type", *properties],
        "additionalProperties": False,
    }


def _with_session(schema: JSONObject) -> JSONObject:
    """Add the session's id to an event's object."""
    properties, required = schema["properties"], schema["required"]
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    return {
        **schema,
        "properties": {**properties, "session_id": _TEXT},
        "required": [*required, "session_id"],
    }


def _with_prompt(schema: JSONObject) -> JSONObject:
    """Let an event have what was asked."""
    message = "What was asked, redacted; only where sessions are stored."
    return _with_properties(schema, {"prompt": {**_TEXT, "description": message}})


def _with_properties(schema: JSONObject, more: Mapping[str, JSONObject]) -> JSONObject:
    """Let an event have more than it must."""
    properties = schema["properties"]
    assert isinstance(properties, dict)
    return {**schema, "properties": {**properties, **more}}


EVENT_SCHEMAS: Final[dict[str, JSONObject]] = {
    **STREAM_EVENT_SCHEMAS,
    "turn_finished": _with_session(STREAM_EVENT_SCHEMAS["turn_finished"]),
    "turn_started": _with_prompt(
        _event("turn_started", "The turn runs.", session_id=_TEXT, turn_id=_TEXT)
    ),
    "turn_result": _event(
        "turn_result",
        "The turn's last event: `output` is its answer, text or a value of the agent's output type.",
        output={},
    ),
    "turn_failed": _event(
        "turn_failed", "The turn's last event: it failed.", error=ERROR_SCHEMA
    ),
    "turn_cancelled": {
        **_event(
            "turn_cancelled", "The turn's last event: it was cancelled.", text=_TEXT
        ),
        "required": ["type"],
    },
    "approval_requested": _with_properties(
        _event(
            "approval_requested", "The turn waits for a person's answer.", **_QUESTION
        ),
        _ASKED,
    ),
    "approval_answered": _event(
        "approval_answered",
        "The question was answered.",
        approval_id=_TEXT,
        option=_TEXT,
    ),
    "approval_withdrawn": _event(
        "approval_withdrawn",
        "Nobody answered the question in time, or the turn was cancelled.",
        approval_id=_TEXT,
    ),
    "gap": _event(
        "gap",
        "The events from `first` to `last` are not stored any more.",
        first=_NUMBER,
        last=_NUMBER,
    ),
}
"""The JSON Schema of each event's object, by its `type`."""

EVENT_SCHEMA: Final[JSONObject] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Event",
    "description": "One event of a turn; `type` says which.",
    "oneOf": [{"$ref": f"#/$defs/{name}"} for name in EVENT_SCHEMAS],
    "$defs": dict(EVENT_SCHEMAS),
}
"""The schema of one event."""
