"""The JSON Schema of everything that a turn's event stream may hold."""

from __future__ import annotations

from typing import Final

from amplifier_sdk.event_json import STREAM_EVENT_SCHEMAS
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["ERROR_SCHEMA", "EVENT_SCHEMA"]

_TEXT: Final[JSONObject] = {"type": "string"}
_NUMBER: Final[JSONObject] = {"type": "integer", "minimum": 1}

ERROR_SCHEMA: Final[JSONObject] = {
    "type": "object",
    "properties": {"code": _TEXT, "message": _TEXT},
    "required": ["code", "message"],
    "additionalProperties": False,
}
"""What is wrong: `code` for programs, `message` for people."""


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


_EVENTS: Final[dict[str, JSONObject]] = {
    **STREAM_EVENT_SCHEMAS,
    "turn_finished": _with_session(STREAM_EVENT_SCHEMAS["turn_finished"]),
    "turn_started": _event(
        "turn_started", "The turn runs.", session_id=_TEXT, turn_id=_TEXT
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
    "gap": _event(
        "gap",
        "The events from `first` to `last` are not stored any more.",
        first=_NUMBER,
        last=_NUMBER,
    ),
}

EVENT_SCHEMA: Final[JSONObject] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Event",
    "description": "One event of a turn; `type` says which.",
    "oneOf": [{"$ref": f"#/$defs/{name}"} for name in _EVENTS],
    "$defs": dict(_EVENTS),
}
"""The schema of one event."""
