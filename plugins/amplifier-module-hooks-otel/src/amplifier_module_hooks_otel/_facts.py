"""Facts of events as attributes of spans."""

from __future__ import annotations

from collections.abc import Mapping

from amplifier_kit.open_data import as_object
from amplifier_module_hooks_otel import _names as names
from amplifier_module_hooks_otel._steps import Attributes, OpenSpan, short
from amplifier_sdk import ChatResponse, ToolResult, Usage

__all__ = [
    "answer",
    "child_name",
    "error_type",
    "finish_reason",
    "tool_error",
    "usage_of",
    "with_error",
]


def answer(response: ChatResponse) -> Attributes:
    """Return the attributes of an answer, without its content."""
    attributes: Attributes = {names.FINISH_REASONS: [finish_reason(response)]}
    for key, value in (response.metadata or {}).items():
        if not isinstance(value, str) or not value:
            continue
        # Vendors' facts have the vendor's name in front.
        match key.rpartition(":")[2]:
            case "model":
                attributes[names.RESPONSE_MODEL] = short(value)
            case "response_id" | "message_id" | "id":
                attributes[names.RESPONSE_ID] = value
            case _:
                pass
    if response.usage is not None:
        attributes.update(usage_of(response.usage))
    return attributes


def usage_of(usage: Usage) -> Attributes:
    """Return the tokens, and the cost where it is known."""
    counts = {name: getattr(usage, field) for field, name in names.USAGE.items()}
    attributes: Attributes = {
        name: count for name, count in counts.items() if count is not None
    }
    if usage.cost_usd is not None:
        attributes[names.COST] = float(usage.cost_usd)
    return attributes


def finish_reason(response: ChatResponse) -> str:
    """Return why the model stopped; one that says nothing stopped by itself."""
    return response.finish_reason or ("tool_calls" if response.tool_calls else "stop")


def error_type(data: Mapping[str, object]) -> str:
    """Return the kind of error in an event."""
    return short(str(as_object(data.get("error")).get("type") or "error"))


def tool_error(result: object) -> str | None:
    """Return what kind of failure a result is, or `None`."""
    if not isinstance(result, ToolResult) or result.success:
        return None
    return short(str((result.error or {}).get("type") or "tool_error"))


def with_error(step: OpenSpan) -> dict[str, str]:
    """Return the attributes that a step's metrics have."""
    if step.error is None:
        return step.labels
    return {**step.labels, names.ERROR_TYPE: step.error}


def child_name(session_id: str, parent_id: str | None) -> str | None:
    """Return the agent that the id of a child session names: `PARENT-NUMBER_AGENT`."""
    if parent_id is None or not session_id.startswith(f"{parent_id}-"):
        return None
    return session_id.removeprefix(f"{parent_id}-").partition("_")[2] or None
