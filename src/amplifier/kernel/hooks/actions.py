"""Which actions an event takes from its handlers, and what `modify` may change of what runs.

A decision that cannot be carried out is a failure of its handler, and the failure of a blocking handler is a
denial. Events that are not in the table, such as those of modules, take every action: whoever emits one says what
comes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast, get_args

import attrs

from amplifier_sdk.decisions import HOOK_DECIDED
from amplifier_sdk.events import (
    ALL_EVENTS,
    APPROVAL_GRANTED,
    DEPRECATED_EVENTS,
    PROMPT_SUBMIT,
    PROVIDER_REQUEST,
    PROVIDER_RESOLVE,
    PROVIDER_RESPONSE,
    PROVIDER_TOOL_SEQUENCE_REPAIRED,
    SESSION_RESUME,
    SESSION_START,
    TOOL_ERROR,
    TOOL_POST,
    TOOL_PRE,
)
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import HookAction, HookResult, InjectionRole, ToolResult
from amplifier_sdk.values import Value

__all__ = [
    "EVENT_ACTIONS",
    "DecisionError",
    "EventActions",
    "actions_of",
    "checked_result",
]

_Read: TypeAlias = Callable[[object], object]

_NOTHING: Final[Mapping[str, _Read]] = {}
_ALL: Final[frozenset[HookAction]] = frozenset(get_args(HookAction))
_ROLES: Final = frozenset(get_args(InjectionRole))


class DecisionError(TypeError):
    """A handler decided what cannot be carried out; the message says what, and what its event takes."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EventActions(Value):
    """What an event takes from its handlers.

    Args:
        actions: what they may answer. `modify` may change any key for the handlers that hear the event later.
        changes: the keys whose change reaches what runs, each with what reads the new value; it raises a `TypeError`
            or a `ValueError` for what does not fit.
        fixed: the keys that say what runs and cannot be changed.
    """

    actions: frozenset[HookAction]
    changes: Mapping[str, _Read] = _NOTHING
    fixed: frozenset[str] = frozenset()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {type(value).__name__}")
    return value


def _text_or_none(value: object) -> str | None:
    if value is None:
        return None
    return _text(value)


def _object(value: object) -> Mapping[str, JSONValue]:
    if not isinstance(value, Mapping):
        raise TypeError(f"expected an object, got {type(value).__name__}")
    return value


def _messages(value: object) -> Sequence[Mapping[str, JSONValue]]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise TypeError(f"expected a list of messages, got {type(value).__name__}")
    return [_object(message) for message in value]


def _result(value: object) -> ToolResult:
    """Read a result, or the data that a result is as JSON."""
    from amplifier_sdk.convert import from_json  # few handlers change a result

    if isinstance(value, ToolResult):
        return value
    fields = dict(_object(value))
    if not fields:
        raise ValueError("expected a ToolResult or its fields, got an empty object")
    # the orchestrator contract's sample writes a result like this
    if "is_error" in fields and "success" not in fields:
        fields["success"] = fields.pop("is_error") is False
    return from_json(cast("JSONValue", fields), ToolResult)


def _media(value: object) -> object:
    """Read the descriptions of what is shown with a prompt; which of them there are is not for handlers to say."""
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(item, Mapping) for item in value
    ):
        raise ValueError("expected the descriptions of the prompt's media, in order")
    return value


# `modify` is for the handlers behind: redaction takes secrets out before logs hear.
_OBSERVED: Final = EventActions(actions=frozenset({"continue", "modify"}))
_INJECTING: Final = EventActions(
    actions=frozenset({"continue", "modify", "inject_context"})
)

# What stands further down replaces what stands before: an event that is not named
# is observed.
EVENT_ACTIONS: Final[Mapping[str, EventActions]] = {
    **dict.fromkeys(
        (*map(str, ALL_EVENTS), *DEPRECATED_EVENTS, str(HOOK_DECIDED)), _OBSERVED
    ),
    **dict.fromkeys(
        map(
            str,
            (
                SESSION_START,
                SESSION_RESUME,
                PROVIDER_RESPONSE,
                PROVIDER_TOOL_SEQUENCE_REPAIRED,
                TOOL_ERROR,
            ),
        ),
        _INJECTING,
    ),
    str(PROMPT_SUBMIT): EventActions(
        actions=_ALL, changes={"prompt": _text, "media": _media, "metadata": _object}
    ),
    str(PROVIDER_RESOLVE): EventActions(
        actions=_ALL, changes={"provider": _text, "model": _text_or_none}
    ),
    str(PROVIDER_REQUEST): EventActions(
        actions=_ALL,
        changes={"messages": _messages},
        fixed=frozenset({"provider", "model", "max_reached"}),
    ),
    str(TOOL_PRE): EventActions(
        actions=_ALL,
        changes={"tool_input": _object},
        fixed=frozenset({"tool_name", "tool_call_id"}),
    ),
    str(TOOL_POST): EventActions(
        actions=_ALL, changes={"result": _result, "tool_result": _result}
    ),
    str(APPROVAL_GRANTED): EventActions(
        actions=frozenset({"continue", "modify", "deny"})
    ),
}
"""What each canonical event takes."""

_ANY: Final = EventActions(actions=_ALL)


def actions_of(event: str) -> EventActions:
    """Return what an event takes: an unknown one everything."""
    return EVENT_ACTIONS.get(event, _ANY)


def checked_result(
    event: str, result: HookResult, shown: Mapping[str, object]
) -> HookResult:
    """Return an answer as it can be carried out, with the changed values as they were read.

    Args:
        event: the event's name.
        result: what a handler answered.
        shown: the data that it was shown.

    Raises:
        DecisionError: it cannot be carried out.
    """
    taken = actions_of(event)
    if result.action not in taken.actions:
        known = ", ".join(
            action for action in get_args(HookAction) if action in taken.actions
        )
        raise DecisionError(
            f"{event} does not take {result.action!r}; it takes {known}"
        )
    if (
        result.action == "inject_context"
        and result.context_injection_role not in _ROLES
    ):
        raise DecisionError(
            f"it injects with the role {result.context_injection_role!r}; known: {', '.join(get_args(InjectionRole))}"
        )
    if result.action != "modify":
        return result
    if not isinstance(result.data, Mapping):
        raise DecisionError(
            f"modify needs data, an object of what changes; got {type(result.data).__name__}"
        )
    # an event that only reports: nothing that a handler changes runs
    if not taken.changes and not taken.fixed:
        return result
    return attrs.evolve(
        result,
        data={
            key: _checked(event, key, value, shown)
            for key, value in result.data.items()
        },
    )


def _checked(
    event: str, key: str, value: object, shown: Mapping[str, object]
) -> object:
    """Read what a handler changed of one key; what it left as it was stays."""
    taken = actions_of(event)
    # many handlers give back all the data that they were shown
    if key in shown and (value is shown[key] or value == shown[key]):
        return value
    if key in taken.fixed:
        raise DecisionError(
            f"modify cannot change {key!r} of {event}; it can change {', '.join(taken.changes)}"
        )
    read = taken.changes.get(key)
    if read is None:
        return value
    try:
        return read(value)
    except (TypeError, ValueError) as error:
        raise DecisionError(f"modify of {event}, {key}: {error}") from error
