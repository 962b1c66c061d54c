"""The module has every behaviour of its type."""

from __future__ import annotations

from collections.abc import Sequence

from amplifier.testing.conformance import HookSamples, conformance
from amplifier_kit.todos import TODOS, TodoItem
from amplifier_module_hooks_todo_reminder import mount


class Plan:
    """A plan of one step that the model has not seen yet."""

    shown = 0

    async def items(self) -> Sequence[TodoItem]:
        return [TodoItem(content="Run the tests", active_form="Running the tests")]


TestReminder = conformance(
    "hook",
    mount,
    samples=HookSamples(
        bad_config={"recent_tool_threshold": -1}, capabilities={TODOS: Plan()}
    ),
)
