"""What a model asks of the tool, read from its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import attrs

from amplifier_sdk.delegation import ProviderPreference
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONValue

if TYPE_CHECKING:  # most agents begin with nothing
    from amplifier_module_tool_task.forms import Scope
    from amplifier_module_tool_task.inheritance import Depth

__all__ = ["Action", "Request"]

Action: TypeAlias = Literal["run", "describe", "wait", "stop"]
"""What a call does."""


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
