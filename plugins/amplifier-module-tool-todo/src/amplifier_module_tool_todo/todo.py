"""The tool: what a model calls, and the plan that others read; and what can be set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import anyio
import attrs

from amplifier_kit.todos import (
    MAX_TEXT,
    TODO_STATUSES,
    TODO_UPDATED,
    TODOS,
    TodoItem,
    TodosUpdated,
)
from amplifier_module_tool_todo.store import todo_file
from amplifier_sdk.bounds import count
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.decorators import toolset
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import ToolResult

__all__ = ["Todo", "TodoConfig"]


@toolset
class Todo:
    """The plan of one session; the capability `todos`.

    It lives in memory and, where the application has a folder for sessions, in a file that a resumed session reads.
    """

    name: Final = "todo"
    description: Final = (
        "Keep the plan of your work, which the person sees. Use it for work of several steps: write the plan before"
        " you begin, and write it anew, whole, after each step. Keep exactly one item in_progress while you work, and"
        " mark an item completed as soon as it is done, never before. Take out what no longer matters.\n"
        "Each item has content, an order ('Run the tests'); activeForm, the same while it is done ('Running the"
        " tests'); and status. 'create' and 'update' replace the whole plan, 'list' reads it."
    )
    read_only: Final = False
    effects: Final = ("read",)  # it changes nothing but its own list

    def __init__(self, config: TodoConfig, coordinator: Coordinator) -> None:
        self.input_schema: Final = _schema(config.max_items)
        self._hooks = coordinator.hooks
        self._coordinator = coordinator
        if config.keep:
            self._file = todo_file(coordinator)
        else:
            self._file = None
        self._lock = anyio.Lock()
        self._items: tuple[TodoItem, ...] | None = None
        self._problem: str | None = None
        self._shown = 0
        coordinator.register_capability(TODOS, self)
        coordinator.register_contributor(
            "observability.events", "tool-todo", lambda: [str(TODO_UPDATED)]
        )

    @property
    def shown(self) -> int:
        """How often the model wrote or read the plan in this session."""
        return self._shown

    async def items(self) -> Sequence[TodoItem]:
        """Return the plan as it is now; of a resumed session the stored one."""
        if self._items is None:
            async with self._lock:
                await self._load()
        return self._items or ()

    async def execute(self, input: JSONObject, /) -> ToolResult:
        """Write the plan, or read it.

        Args:
            input: `action` and, to write, `todos`: the whole plan.
        """
        action = input.get("action")
        if action == "list":
            return await self._list()
        if action not in ("create", "update"):
            return ToolResult.failure(
                f"action is create, update or list; got {action!r:.60}"
            )
        todos = input.get("todos")
        if not isinstance(todos, list):
            return ToolResult.failure(
                f"{action} needs 'todos', the whole plan; give [] to end it"
            )
        try:
            items = tuple(_read(index, todo) for index, todo in enumerate(todos))
        except ValueError as error:
            return ToolResult.failure(f"{error}. The plan stays as it was")
        await self._replace(items)
        return self._written(action, items)

    async def _list(self) -> ToolResult:
        items = await self.items()
        self._shown += 1
        data: JSONObject = {
            "status": "listed",
            "count": len(items),
            "todos": _plain(items),
        }
        return ToolResult(output=data | _warnings(self._problem))

    def _written(self, action: str, items: Sequence[TodoItem]) -> ToolResult:
        counts = _counts(items)
        data: JSONObject = {
            "status": "created" if action == "create" else "updated",
            "count": len(items),
        }
        if action == "create":
            data["todos"] = _plain(items)
        else:
            data.update(counts)
        busy = counts["in_progress"]
        too_many = None
        if busy > 1:
            too_many = f"{busy} items are in_progress; keep it at one, the step that you work on"
        return ToolResult(output=data | _warnings(too_many, self._problem))

    async def _replace(self, items: tuple[TodoItem, ...]) -> None:
        async with self._lock:
            self._take(items)
            self._shown += 1
            self._problem = None
            if self._file is not None:
                try:
                    await self._file.save(items)
                except OSError as error:  # the plan serves this session all the same
                    self._problem = (
                        f"the plan is not stored for a later session: {error}"
                    )
        if self._hooks.has_handlers(TODO_UPDATED):
            counts = _counts(items)
            payload = TodosUpdated(
                todos=[item.to_json() for item in items],
                total=len(items),
                pending=counts["pending"],
                in_progress=counts["in_progress"],
                completed=counts["completed"],
            )
            await self._hooks.emit(TODO_UPDATED, payload)

    async def _load(self) -> None:
        if self._items is not None:
            return
        items: tuple[TodoItem, ...] = ()
        if self._file is not None:
            try:
                items = await self._file.load()
            except OSError as error:
                # a session without its old plan can make a new one
                self._problem = (
                    f"the plan of the session before cannot be read: {error}"
                )
        self._take(items)

    def _take(self, items: tuple[TodoItem, ...]) -> None:
        self._items = items
        # Hook modules of the original read the plan here.
        self._coordinator.todo_state = _plain(items)  # type: ignore[attr-defined]  # an attribute that modules add


def _read(index: int, todo: JSONValue) -> TodoItem:
    try:
        return TodoItem.read(todo)
    except ValueError as error:
        raise ValueError(f"todos[{index}]: {error}") from error


def _plain(items: Sequence[TodoItem]) -> list[JSONValue]:
    return [item.to_json() for item in items]


def _counts(items: Sequence[TodoItem]) -> dict[str, int]:
    found = Counter(item.status for item in items)
    return {status: found[status] for status in TODO_STATUSES}


def _warnings(*problems: str | None) -> JSONObject:
    message = "; ".join(filter(None, problems))
    if message:
        return {"warning": message}
    return {}


def _schema(max_items: int) -> Mapping[str, JSONValue]:
    item: JSONObject = {
        "type": "object",
        "properties": {
            "content": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_TEXT,
                "description": "What is to be done, as an order: 'Run the tests'.",
            },
            "activeForm": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_TEXT,
                "description": "The same while it is being done: 'Running the tests'.",
            },
            "status": {
                "type": "string",
                "enum": list(TODO_STATUSES),
                "description": "How far it is.",
            },
        },
        "required": ["content", "status", "activeForm"],
    }
    return {
        "type": "object",
        "properties": {
            "action": {
                "type": "string",
                "enum": ["create", "update", "list"],
                "description": "create or update: replace the whole plan; list: read it.",
            },
            "todos": {
                "type": "array",
                "items": item,
                "maxItems": max_items,
                "description": "The whole plan, in the order of the work; for create and update.",
            },
        },
        "required": ["action"],
        "additionalProperties": False,
    }


@attrs.frozen(kw_only=True)
class TodoConfig:
    """What `config` of the plan may hold.

    Args:
        max_items: how many items a plan has at most.
        keep: whether the plan is stored beside the session, where the application has a folder for sessions.
    """

    max_items: int = attrs.field(default=100, validator=count)
    keep: bool = True
