"""The arguments that the tool takes, as a model reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from amplifier_kit.open_data import as_object
from amplifier_sdk.jsontypes import JSONObject, JSONValue

if TYPE_CHECKING:
    pass

__all__ = ["input_schema", "roles_of"]


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
