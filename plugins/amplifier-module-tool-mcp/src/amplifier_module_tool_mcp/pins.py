"""Which definitions a person has agreed to: stored outside every project, by server, in the words that were seen."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Self

import attrs

from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.files.private import PrivateFile, PrivateFileError
from amplifier_module_tool_mcp.definitions import Definition
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["ServerPins", "difference"]


@attrs.frozen
class ServerPins:
    """The store, in one file; several processes may use it. Its functions block."""

    file: PrivateFile

    @classmethod
    def in_home(cls) -> Self:
        """Return the person's own: `mcp/definitions.json` in the home folder of this product."""
        return cls(PrivateFile(amplifier_home() / "mcp" / "definitions.json"))

    def of(self, key: str) -> Mapping[str, JSONObject] | None:
        """Return what was agreed to of a server, by tool; `None` for a server that was never seen.

        Raises:
            OSError: the file is damaged, cannot be read, or others may have written it.
        """
        found = _servers(self.file, self.file.read()).get(key)
        if not isinstance(found, dict):
            return None
        return {name: raw for name, raw in found.items() if isinstance(raw, dict)}

    def keep(self, key: str, definitions: Mapping[str, Definition]) -> None:
        """Agree to all that a server defines now.

        Raises:
            OSError: the file cannot be written.
        """
        entry: JSONValue = {
            name: definition.raw for name, definition in definitions.items()
        }

        def change(content: JSONValue) -> JSONValue:
            return {**_servers(self.file, content), key: entry}

        self.file.update(change)


def difference(before: JSONObject | None, after: Definition) -> str:
    """Show how a definition changed, line by line."""
    if before is None:
        return f"New tool {after.name!a}:\n{_lines(after.raw)}"
    old, new = _lines(before).splitlines(), _lines(after.raw).splitlines()
    changed = "\n".join(list(difflib.unified_diff(old, new, lineterm="", n=1))[2:])
    return f"Changed tool {after.name!a}:\n{changed}"


def _lines(raw: JSONObject) -> str:
    return json.dumps(raw, indent=1, sort_keys=True, ensure_ascii=True)


def _servers(file: PrivateFile, content: JSONValue) -> JSONObject:
    if content is None or isinstance(content, dict):
        return content or {}
    raise PrivateFileError(file.path, "holds no object; repair or remove it")
