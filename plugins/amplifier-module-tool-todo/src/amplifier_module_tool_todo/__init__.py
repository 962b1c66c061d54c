"""The tool module `tool-todo`: the plan that an agent keeps of its work, for a person to watch."""

from __future__ import annotations

from amplifier_module_tool_todo.todo import Todo, TodoConfig

__all__ = ["Todo", "TodoConfig"]
