"""The module has every behaviour of its type."""

from __future__ import annotations

from typing import Final

from amplifier.testing.conformance import ToolSamples, conformance
from amplifier_module_tool_task import mount
from amplifier_sdk.errors import LLMError


async def spawn(
    *, agent_name: str, instruction: str, sub_session_id: str, **_: object
) -> dict[str, object]:
    """An application's own way to run an agent."""
    if instruction == "fail":
        raise LLMError("the model is not there")
    return {
        "output": f"{agent_name} did it",
        "session_id": sub_session_id,
        "status": "completed",
    }


SAMPLES: Final = ToolSamples(
    bad_config={"max_answer_chars": 0},
    capabilities={"session.spawn": spawn},
    arguments={
        "task": (
            {
                "agent": "self",
                "instruction": "Do it.",
                "inherit_context": "all",
                "context_scope": "full",
            },
            {"action": "describe", "instruction": "write tests"},
        )
    },
    failing={
        "task": (
            {"agent": "nobody", "instruction": "Do it."},
            {"agent": "self", "instruction": "fail"},
            {"session_id": "nowhere", "instruction": "Go on."},
        )
    },
)

TestTask = conformance("tool", mount, samples=SAMPLES)
