"""The reminder: what is left of the plan, behind the last message of a request; and what can be set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from amplifier_kit.injections import longest_injection
from amplifier_kit.todos import TodoItem, TodoList, TodoStatus, todos_of
from amplifier_sdk.bounds import amount
from amplifier_sdk.configuration import read_config
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.events import (
    PROVIDER_REQUEST,
    TOOL_ERROR,
    TOOL_POST,
    ProviderRequest,
    ToolErrorPayload,
    ToolPost,
)
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import HookResult, InjectionRole

__all__ = ["ReminderConfig", "mount"]

_NAME: Final = "hooks-todo-reminder"
_LONGEST: Final = 6_000
_SHORTEST: Final = 100
"""How many characters what is left of a plan needs at least."""
_SIGNS: Final[Mapping[TodoStatus, str]] = {
    "completed": "✓",
    "in_progress": "→",
    "pending": "☐",
}
_HEAD: Final = (
    f'<system-reminder source="{_NAME}">\n'
    "Your plan as it stands. Continue with it; when it no longer fits your work, write it anew with the todo tool. This"
    " is no message of the person, who sees the plan: do not mention it.\n"
)
_TAIL: Final = "\n</system-reminder>"


async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
    """Remind the model of the session's plan; where no module keeps one, nothing is registered.

    Raises:
        ConfigError: the configuration does not fit.
    """
    settings = read_config(ReminderConfig, config, subject=f"configuration of {_NAME}")
    todos = todos_of(coordinator)
    if todos is None:
        return
    reminder = _Reminder(todos, settings, longest_injection(coordinator, _LONGEST))
    hooks, priority = coordinator.hooks, settings.priority
    for unregister in (
        hooks.register(TOOL_POST, reminder.count, priority, _NAME, decides=False),
        hooks.register(TOOL_ERROR, reminder.count, priority, _NAME, decides=False),
        hooks.register(
            PROVIDER_REQUEST, reminder.remind, priority, _NAME, decides=False
        ),
    ):
        coordinator.register_cleanup(unregister)


@attrs.define(eq=False)
class _Reminder:
    """Counts the calls since the model last saw its plan."""

    todos: TodoList
    config: ReminderConfig
    longest: int
    _seen: int = 0
    _calls: int | None = None

    def count(self, _event: str, _data: ToolPost | ToolErrorPayload) -> None:
        """Note that a call ended: one of the todo tool begins the count anew."""
        if self.todos.shown != self._seen:
            self._seen, self._calls = self.todos.shown, 0
        elif self._calls is not None:
            self._calls += 1

    async def remind(self, _event: str, _data: ProviderRequest) -> HookResult | None:
        """Add what is left of the plan to the request, unless the model has just seen it."""
        if self._calls is not None and self._calls < self.config.recent_tool_threshold:
            return None
        items = await self.todos.items()
        room = self.longest - len(_HEAD) - len(_TAIL)
        if room < _SHORTEST or all(item.status == "completed" for item in items):
            return None
        text = _HEAD + _lines(items, room) + _TAIL
        role = self.config.inject_role
        return HookResult.inject(
            text, role=role, ephemeral=True, append_to_last_tool_result=True
        )


def _lines(items: Sequence[TodoItem], limit: int) -> str:
    """Write the items one to a line; where they are too many, the open ones count more than the rest."""
    lines = [
        f"{_SIGNS[item.status]} {item.text.replace('<', '&lt;')}" for item in items
    ]
    if len("\n".join(lines)) <= limit:
        return "\n".join(lines)
    left = [
        line
        for item, line in zip(items, lines, strict=True)
        if item.status != "completed"
    ]
    done = len(lines) - len(left)
    retained: list[str] = []
    room = limit - 80  # the line that says what is missing
    for line in left:
        room -= len(line) + 1
        if room < 0:
            break
        retained.append(line)
    return "\n".join(
        [
            *retained,
            f"({len(left) - len(retained)} more to do and {done} done: read them with the todo tool)",
        ]
    )


@attrs.frozen(kw_only=True)
class ReminderConfig:
    """What `config` of the plan may hold.

    Args:
        inject_role: the role of a reminder that is a message of its own.
        priority: when the module is asked among the handlers of a request; lower is earlier.
        recent_tool_threshold: how many tool calls may pass after the model wrote or read the plan before it is
            reminded; 0 reminds it with every request.
    """

    inject_role: InjectionRole = "user"
    priority: int = 10
    recent_tool_threshold: int = attrs.field(default=3, validator=amount)
