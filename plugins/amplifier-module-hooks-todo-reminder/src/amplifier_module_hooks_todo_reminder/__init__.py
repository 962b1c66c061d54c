"""The hook module `hooks-todo-reminder`: reminds the model of the plan that it keeps."""

from __future__ import annotations

from amplifier_module_hooks_todo_reminder.reminder import ReminderConfig, mount

__all__ = ["ReminderConfig", "mount"]
