"""Where a plan is stored: a private file beside its session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
from anyio import to_thread

from amplifier_kit.files.names import folder_name
from amplifier_kit.files.private import PrivateFile
from amplifier_kit.open_data import as_object
from amplifier_kit.redaction import redactor_of
from amplifier_kit.todos import MAX_TEXT, TodoItem
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["TodoFile", "todo_file"]


@attrs.define(eq=False)
class TodoFile:
    """The file of one session's plan; it need not exist."""

    file: PrivateFile
    _coordinator: Coordinator

    async def load(self) -> tuple[TodoItem, ...]:
        """Return the stored plan; an empty one when there is none.

        Raises:
            OSError: the file cannot be read, is damaged, or others may have written it.
        """
        return _read(await to_thread.run_sync(self.file.read), self.file.path)

    async def save(self, items: Sequence[TodoItem]) -> None:
        """Keep a plan without its secrets, all at once.

        Raises:
            OSError: the file cannot be written; what was stored stays.
        """
        plain: list[JSONValue] = [item.to_json() for item in items]
        redacted = redactor_of(self._coordinator).redact(plain)
        content: JSONObject = {"version": 1, "todos": redacted}
        await to_thread.run_sync(self.file.update, lambda _: content)


def todo_file(coordinator: Coordinator) -> TodoFile | None:
    """Return where a session's plan is stored: `sessions/ID/todos.json` in the application's folder for sessions."""
    folder = coordinator.get_capability("session.dir")
    if not isinstance(folder, (str, Path)):
        return None
    path = (
        Path(folder).absolute()
        / "sessions"
        / folder_name(coordinator.session_id)
        / "todos.json"
    )
    return TodoFile(PrivateFile(path), coordinator)


def _read(content: JSONValue, path: Path) -> tuple[TodoItem, ...]:
    if content is None:
        return ()
    todos = as_object(content).get("todos")
    try:
        if not isinstance(todos, list):
            raise ValueError("it holds no list 'todos'")
        return tuple(TodoItem.read(_cut(todo)) for todo in todos)
    except ValueError as error:
        raise OSError(f"{path} holds no plan: {error}; remove it") from error


def _cut(todo: JSONValue) -> JSONValue:
    """Cut texts that became longer when their secrets were taken out."""
    if not isinstance(todo, dict):
        return todo
    return {
        key: value[:MAX_TEXT] if isinstance(value, str) else value
        for key, value in todo.items()
    }
