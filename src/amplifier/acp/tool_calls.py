"""Tool calls as an editor shows them: their kind, where they work, and what an edit changes."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs

from amplifier.app.directories import is_below
from amplifier_kit.open_data import as_list, as_object
from amplifier_kit.redaction import SinkRedactor
from amplifier_kit.terminal import one_line
from amplifier_sdk.effects import ONLY_READS, effects_of
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["CallView", "ToolKind", "call_update", "text_content"]

ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "fetch", "other"
]

_KINDS: Final[Mapping[str, ToolKind]] = {
    "read_file": "read",
    "list_directory": "read",
    "glob": "search",
    "grep": "search",
    "web_search": "search",
    "write_file": "edit",
    "edit_file": "edit",
    "move": "move",
    "delete": "delete",
}
_PATHS: Final = ("file_path", "path", "source", "destination")
_SUBJECTS: Final = (*_PATHS, "command", "pattern", "url", "query", "name")
_MAX_TITLE: Final = 200
_MAX_FILE: Final = 1_000_000
"""Bytes of a file of which the editor is shown what it was before."""


def text_content(text: str) -> JSONObject:
    """Return a text as the content of a tool call."""
    return {"type": "content", "content": {"type": "text", "text": text}}


def call_update(call_id: str, status: str, *content: JSONObject) -> JSONObject:
    """Return what becomes of a call that was shown; `content` replaces what stands there."""
    update: JSONObject = {"toolCallId": call_id, "status": status}
    if content:
        update["content"] = [*content]
    return {"sessionUpdate": "tool_call_update", **update}


@attrs.frozen(kw_only=True)
class CallView:
    """Shows the calls of one session.

    Args:
        working_dir: where paths are relative to.
        root: the project's folder; of nothing outside the contents are read.
        redactor: takes secrets out of what is shown.
    """

    working_dir: Path
    root: Path
    redactor: SinkRedactor

    def kind(self, name: str, tool: object) -> ToolKind:
        """Say what a tool does, by its name or by its effects."""
        known = _KINDS.get(name)
        if known is not None:
            return known
        effects = effects_of(tool, name=name)
        if effects is None:
            return "other"
        if "exec" in effects:
            return "execute"
        if "network" in effects:
            return "fetch"
        if effects == ONLY_READS:
            return "read"
        return "edit"

    def title(self, name: str, arguments: Mapping[str, JSONValue]) -> str:
        """Return one line that says what is called."""
        subject = next(
            (arguments[key] for key in _SUBJECTS if arguments.get(key)), None
        )
        if not isinstance(subject, str):
            return one_line(name, _MAX_TITLE)
        return one_line(f"{name} {self.redactor.redact_text(subject)}", _MAX_TITLE)

    def locations(self, arguments: Mapping[str, JSONValue]) -> list[JSONValue]:
        """Return the files that a call works on."""
        found: list[JSONValue] = []
        for key in _PATHS:
            path = arguments.get(key)
            if isinstance(path, str) and path:
                found.append({"path": str(self._absolute(path))})
        return found

    def diffs(self, name: str, arguments: Mapping[str, JSONValue]) -> list[JSONValue]:
        """Return what an edit changes, before it ran; blocks."""
        path = arguments.get("file_path")
        if not isinstance(path, str) or not path:
            return []
        if name == "write_file":
            return [self._diff(path, self._before(path), arguments.get("content"))]
        if name != "edit_file":
            return []
        edits = [as_object(edit) for edit in as_list(arguments.get("edits"))]
        return [
            self._diff(path, edit.get("old_string"), edit.get("new_string"))
            for edit in edits or [dict(arguments)]
        ]

    def shown(
        self, call_id: str, name: str, arguments: Mapping[str, JSONValue], tool: object
    ) -> JSONObject:
        """Describe a call without what it changes."""
        return {
            "toolCallId": call_id,
            "title": self.title(name, arguments),
            "kind": self.kind(name, tool),
            "locations": self.locations(arguments),
            "rawInput": self.redactor.redact(dict(arguments)),
        }

    def _diff(self, path: str, old: JSONValue, new: JSONValue) -> JSONObject:
        return {
            "type": "diff",
            "path": str(self._absolute(path)),
            "oldText": self._text(old),
            "newText": self._text(new) or "",
        }

    def _text(self, value: JSONValue) -> str | None:
        if isinstance(value, str):
            return self.redactor.redact_text(value)
        return None

    def _before(self, path: str) -> str | None:
        """Return what a file of the project holds; `None` where that cannot be shown."""
        place = self._absolute(path)
        if not is_below(place, self.root):
            return None
        try:
            # Not to wait for a writer of a named pipe, and not to follow a link that was
            # put there since the check.
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW
            descriptor = os.open(place, flags)
        except (OSError, ValueError):
            return None
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            data = file.read(_MAX_FILE + 1)
        if len(data) > _MAX_FILE:
            return None
        try:
            return data.decode()
        except UnicodeDecodeError:
            return None

    def _absolute(self, path: str) -> Path:
        return Path(os.path.normpath(self.working_dir / path))
