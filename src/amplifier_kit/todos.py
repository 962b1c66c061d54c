"""The plan that an agent keeps of its work: what modules share about it.

The module `tool-todo` offers a session's plan as the capability `todos` and announces each change as the event
`todo:updated`. Whoever shows the plan, or reminds the model of it, reads it here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import attrs

from amplifier_kit.trust.untrusted import without_unseen
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.events import Event, EventFields
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "MAX_TEXT",
    "TODOS",
    "TODO_STATUSES",
    "TODO_UPDATED",
    "TodoItem",
    "TodoList",
    "TodoStatus",
    "TodosUpdated",
    "todos_of",
]

TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed"]
"""How far an item is."""

TODO_STATUSES: Final[tuple[TodoStatus, ...]] = get_args(TodoStatus)
"""All of them, in the order in which an item passes through them."""

TODOS: Final = "todos"
"""The capability under which a session's plan is offered."""

MAX_TEXT: Final = 500
"""How many characters an item's texts have at most."""


@attrs.frozen(kw_only=True)
class TodoItem:
    """One step of a plan.

    Args:
        content: what is to be done, as an order: `Run the tests`.
        active_form: the same while it is being done: `Running the tests`.
        status: how far it is.
    """

    content: str
    active_form: str
    status: TodoStatus = "pending"

    @classmethod
    def read(cls, value: JSONValue) -> TodoItem:
        """Read an item as models write it; each text becomes one line without characters that nobody sees.

        Raises:
            ValueError: a key is missing, or a value does not fit; the message names it.
        """
        if not isinstance(value, Mapping):
            raise ValueError(
                f"an item is an object with content, activeForm and status; got {type(value).__name__}"
            )
        status = value.get("status")
        known = next((name for name in TODO_STATUSES if name == status), None)
        if known is None:
            raise ValueError(
                f"status is one of {', '.join(TODO_STATUSES)}; got {status!r:.60}"
            )
        return cls(
            content=_line(value, "content"),
            active_form=_line(value, "activeForm"),
            status=known,
        )

    @property
    def text(self) -> str:
        """What is shown of it: the active form while it is being done."""
        if self.status == "in_progress":
            return self.active_form
        return self.content

    def to_json(self) -> JSONObject:
        """Return the item as models write it."""
        return {
            "content": self.content,
            "activeForm": self.active_form,
            "status": self.status,
        }


class TodosUpdated(EventFields):
    """A plan changed; `todos` are all its items, as `TodoItem.to_json` writes them."""

    todos: list[JSONObject]
    total: int
    pending: int
    in_progress: int
    completed: int


TODO_UPDATED: Final = Event[TodosUpdated]("todo:updated")
"""Emitted by `tool-todo` when the model has written its plan."""


@runtime_checkable
class TodoList(Protocol):
    """A session's plan."""

    @property
    def shown(self) -> int:
        """How often the model wrote or read the plan in this session."""

    async def items(self) -> Sequence[TodoItem]:
        """Return the plan as it is now; of a resumed session the stored one."""


def todos_of(coordinator: Coordinator) -> TodoList | None:
    """Return a session's plan, or `None` where no module keeps one."""
    offered = coordinator.get_capability(TODOS)
    if isinstance(offered, TodoList):
        return offered
    return None


def _line(value: Mapping[str, JSONValue], key: str) -> str:
    text = value.get(key)
    if not isinstance(text, str):
        raise ValueError(
            f"{key} is a text; got {type(text).__name__ if key in value else 'nothing'}"
        )
    line = " ".join(without_unseen(text).split())
    if not line:
        raise ValueError(f"{key} says nothing")
    if len(line) > MAX_TEXT:
        raise ValueError(
            f"{key} has {len(line)} characters, at most {MAX_TEXT} are stored; say it shorter"
        )
    return line
