"""The arguments that the tool takes, as a model reads them, and what it asks by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

import attrs

from amplifier_kit.open_data import as_object
from amplifier_sdk.delegation import ProviderPreference
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

if TYPE_CHECKING:
    from amplifier_module_tool_task.forms import Scope
    from amplifier_module_tool_task.inheritance import Depth

__all__ = ["Action", "Request", "input_schema", "roles_of"]

Action: TypeAlias = Literal["run", "describe", "wait", "stop"]
"""What a call does."""

_AGENT: Final = "The agent that does the work. Not needed with session_id. Agents:\n"


def input_schema(
    catalogue: str, *, preferences: bool, roles: Sequence[str], background: bool
) -> JSONObject:
    """Return the JSON Schema of the arguments.

    Args:
        catalogue: the list of agents.
        preferences: whether a provider and a model may be chosen.
        roles: the roles of models that the session's loop knows.
        background: whether an agent may work in the background.
    """
    properties: JSONObject = {
        "instruction": {
            "type": "string",
            "description": "The whole task. An agent knows nothing but this and what it inherits: say what to do, what"
            " is known, and what to answer with.",
        },
        "agent": {"type": "string", "description": _AGENT + catalogue},
        "session_id": {
            "type": "string",
            "description": "Resume the agent of an earlier result, which remembers its work.",
        },
        "action": {
            "type": "string",
            "enum": ["run", "describe"],
            "default": "run",
            "description": "'describe' runs nothing: it describes the agent, or without one those that fit the"
            " instruction.",
        },
        "inherit_context": {
            "type": "string",
            "enum": ["none", "recent", "all"],
            "default": "none",
            "description": "How much of this conversation a new agent is given.",
        },
        "inherit_context_turns": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "default": 5,
            "description": "How many of the last turns 'recent' means.",
        },
        "context_scope": {
            "type": "string",
            "enum": ["conversation", "agents", "full"],
            "default": "conversation",
            "description": "What is inherited: texts; agents' answers too; all tool calls and results.",
        },
    }
    if preferences:
        properties["provider_preferences"] = _PREFERENCES
    required: list[JSONValue] = ["instruction"]
    if background:
        properties["background"] = _BACKGROUND
        properties["action"] = _ACTIONS
        required = []  # some actions need none
    if roles:
        properties["model_role"] = {
            "type": "string",
            "enum": list(roles),
            "description": "The kind of model that a new agent asks.",
        }
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


_BACKGROUND: Final[JSONObject] = {
    "type": "boolean",
    "default": False,
    "description": "Let the agent work in the background: the call returns at once, and you are informed when the agent"
    " has ended, also in a later turn. For long work that nothing waits for.",
}
_ACTIONS: Final[JSONObject] = {
    "type": "string",
    "enum": ["run", "describe", "wait", "stop"],
    "default": "run",
    "description": "'run' and 'describe' need an instruction; 'describe' runs nothing: it describes the agent, or"
    " without one those that fit the instruction. 'wait' and 'stop' are for the agent of session_id in the background.",
}
_PREFERENCES: Final[JSONObject] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "provider": {
                "type": "string",
                "description": "A provider's name, which may be a glob.",
            },
            "model": {
                "type": "string",
                "description": "One of its models, which may be a glob.",
            },
        },
        "required": ["provider", "model"],
        "additionalProperties": False,
    },
    "description": "The model that a new agent asks: the first that there is.",
}


def roles_of(plan: Mapping[str, object]) -> list[str]:
    """Return the roles of models that a plan's loop knows, in their order."""
    loop = as_object(as_object(plan.get("session")).get("orchestrator"))
    configs = (as_object(plan.get("orchestrator")).get("config"), loop.get("config"))
    return list(
        dict.fromkeys(
            str(role)
            for config in configs
            for role in as_object(as_object(config).get("roles"))
        )
    )


@attrs.frozen(kw_only=True)
class Request:
    """A call's arguments; empty texts count as left out."""

    instruction: str
    agent: str | None = None
    session_id: str | None = None
    action: Action = "run"
    background: bool = False
    depth: Depth = "none"
    turns: int = 5
    scope: Scope = "conversation"
    preferences: Sequence[ProviderPreference] = ()
    role: str | None = None

    @classmethod
    def read(cls, given: Mapping[str, JSONValue]) -> Request:
        """Read arguments that fit the tool's schema, as the kernel has checked.

        Raises:
            ToolError: the instruction says nothing, or the agent is not named.
        """
        action = cast("Action", given.get("action", "run"))
        instruction = _text(given.get("instruction"))
        session_id = _text(given.get("session_id"))
        if action in ("run", "describe") and instruction is None:
            raise ToolError("The instruction is empty; say what the agent shall do")
        if action in ("wait", "stop") and session_id is None:
            raise ToolError(f"Name the session_id of the agent to {action}")
        return cls(
            instruction=instruction or "",
            agent=_text(given.get("agent")),
            session_id=session_id,
            action=action,
            background=given.get("background") is True,
            depth=cast("Depth", given.get("inherit_context", "none")),
            turns=cast("int", given.get("inherit_context_turns", 5)),
            scope=cast("Scope", given.get("context_scope", "conversation")),
            preferences=cast(
                "Sequence[ProviderPreference]", given.get("provider_preferences", ())
            ),
            role=_text(given.get("model_role")),
        )

    def check_resumed(self) -> None:
        """Refuse what only a new agent can be given.

        Raises:
            ToolError: names what, and what to do instead.
        """
        asked = {
            "inherit_context": self.depth != "none",
            "provider_preferences": bool(self.preferences),
            "model_role": self.role is not None,
        }
        if names := [name for name, is_asked in asked.items() if is_asked]:
            raise ToolError(
                f"{' and '.join(names)} cannot be given to a resumed session: it keeps its history and its model."
                " Leave that out, or leave session_id out to begin anew"
            )


def _text(value: JSONValue) -> str | None:
    if isinstance(value, str):
        # Models fill what they do not need with empty texts.
        return value.strip() or None
    return None
