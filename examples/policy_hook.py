"""A hook that decides: it refuses tool calls that its policy does not allow.

    python examples/policy_hook.py

A handler of `tool:pre` runs before every tool call. What it denies does not run, and the model is told why. If the
handler itself fails, the call is denied as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

import anyio
import attrs

from amplifier import AmplifierSession, ModuleLoader
from amplifier_sdk import HookResult, JSONValue, hook, on, tool
from amplifier_sdk.events import TOOL_PRE, ToolPre


@attrs.frozen(kw_only=True)
class PolicyConfig:
    """What the plan's `config` may say.

    Args:
        deny: patterns of tool names that are refused.
        reason: what the model is told.
    """

    deny: tuple[str, ...] = ()
    reason: str = "the policy of this session forbids it"


@hook
class Policy:
    """Refuses the tools that its configuration names."""

    def __init__(self, config: PolicyConfig) -> None:
        self._config = config

    @on(TOOL_PRE, priority=-100)
    async def check(self, event: str, data: ToolPre) -> HookResult | None:
        """Deny a forbidden tool; `None` lets the call go on."""
        if any(
            fnmatchcase(data["tool_name"], pattern) for pattern in self._config.deny
        ):
            return HookResult.deny(self._config.reason)
        return None


@tool
def list_files() -> list[str]:
    """List the files."""
    return ["notes.txt", "plan.txt"]


@tool
def delete_file(name: str) -> str:
    """Delete a file.

    Args:
        name: the file's name.
    """
    print("DELETED", name)
    return f"{name} is gone"


PLAN: Final[Mapping[str, JSONValue]] = {
    "session": {"orchestrator": "loop-basic", "context": "context-simple"},
    "providers": [
        {
            "module": "provider-scripted",
            "config": {
                "responses": [
                    {
                        "tool_calls": [
                            {"name": "list_files"},
                            {"name": "delete_file", "arguments": {"name": "plan.txt"}},
                        ]
                    },
                    "I may not delete plan.txt.",
                ]
            },
        }
    ],
    "tools": ["list_files", "delete_file"],
    "hooks": [
        {
            "module": "hooks-policy",
            "config": {"deny": ["delete_*"], "reason": "this session is read-only"},
        }
    ],
}


async def main() -> None:
    """Run one turn; print every tool's result and the answer."""
    modules = {
        "list_files": list_files,
        "delete_file": delete_file,
        "hooks-policy": Policy,
    }
    async with AmplifierSession(PLAN, ModuleLoader(modules=modules)) as session:
        print(await session.execute("Delete the plan."))
        for message in await session.coordinator.context.get_messages():
            if message["role"] == "tool":
                print(f"{message['name']}: {message['content']}")


if __name__ == "__main__":
    anyio.run(main)
