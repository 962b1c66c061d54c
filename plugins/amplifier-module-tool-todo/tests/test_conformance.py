"""The module has every behaviour of its type."""

from __future__ import annotations

from amplifier.testing.conformance import ToolSamples, conformance
from amplifier_module_tool_todo import Todo

STEP = {
    "content": "Run the tests",
    "activeForm": "Running the tests",
    "status": "pending",
}

TestTodo = conformance(
    "tool",
    Todo,
    samples=ToolSamples(
        bad_config={"max_items": 0},
        arguments={
            "todo": (
                {"action": "create", "todos": [STEP]},
                {"action": "update", "todos": []},
                {"action": "list"},
            )
        },
        failing={
            "todo": (
                {"action": "create"},
                {"action": "update", "todos": [{**STEP, "content": " "}]},
            )
        },
    ),
)
