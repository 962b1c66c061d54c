"""What of a server is offered: the tools that the configuration lists, as they were when a person agreed to them.

What was agreed to is stored outside every project, by server, in the words that were seen.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Self

import attrs
from anyio import to_thread

from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.files.private import PrivateFile, PrivateFileError
from amplifier_module_tool_mcp.config import McpConfig, ServerConfig
from amplifier_module_tool_mcp.definitions import (
    Definition,
    UnfitError,
    is_listed,
    read_definition,
)
from amplifier_module_tool_mcp.results import one_line
from amplifier_sdk.jsontypes import JSONObject, JSONValue

if TYPE_CHECKING:
    from mcp_types import Tool  # takes most of a second to import

__all__ = ["Offers", "ServerPins", "difference"]

_CHANGED: Final = "its definition is not the one that was agreed to"
_NEW: Final = "the server did not have it when its tools were agreed to"
_LONGEST_NAME: Final = 100
_MAX_SHOWN: Final = 100


@attrs.define(eq=False, kw_only=True)
class Offers:
    """The tools of one server.

    Args:
        server: its name.
        key: the key of its pins.
        config: the module's configuration.
        filter: the server's own.
        pins: what a person agreed to.
        offered: what is offered, by the server's names.
        withheld: what is not, with the reason, by names as they are shown.
        unpinned: why what was agreed to could not be stored, when it could not.
    """

    server: str
    key: str
    config: McpConfig
    filter: ServerConfig
    pins: ServerPins
    offered: Mapping[str, Definition] = attrs.field(factory=dict)
    withheld: Mapping[str, str] = attrs.field(factory=dict)
    unpinned: str | None = None
    _listed: dict[str, Definition] = attrs.field(factory=dict)
    _agreed: Mapping[str, JSONObject] = attrs.field(factory=dict)

    @property
    def disagreed(self) -> Mapping[str, Definition]:
        """The definitions that a person has not agreed to yet, of tools that the configuration lists."""
        return {
            name: definition
            for name, definition in self._listed.items()
            if self._agreed.get(name) != definition.raw and is_listed(name, self.filter)
        }

    async def take(self, tools: Sequence[Tool]) -> None:
        """Take what the server lists now."""
        problems = await to_thread.run_sync(self._read, tools)
        if not self.config.pin_definitions:
            self._agreed = {
                name: definition.raw for name, definition in self._listed.items()
            }
        else:
            try:
                await to_thread.run_sync(self._look_up)
            except OSError as error:
                self._agreed = {}
                problems |= dict.fromkeys(
                    self._listed, f"what was agreed to cannot be read: {error}"
                )
        self._sort(problems)

    def question(self) -> str:
        """Show a person what they are asked to agree to."""
        return "\n\n".join(
            difference(self._agreed.get(name), new)
            for name, new in self.disagreed.items()
        )

    def digests(self) -> Mapping[str, str]:
        """Return the digests of what a person is asked to agree to."""
        return {name: definition.digest for name, definition in self.disagreed.items()}

    async def agree(self) -> None:
        """Offer what is listed now, and remember it.

        Raises:
            OSError: it cannot be remembered.
        """
        await to_thread.run_sync(self.pins.keep, self.key, dict(self._listed))
        self._agreed = {
            name: definition.raw for name, definition in self._listed.items()
        }
        self._sort(
            {
                name: why
                for name, why in self.withheld.items()
                if name not in self._listed
            }
        )

    def _read(self, tools: Sequence[Tool]) -> dict[str, str]:
        """Read the definitions; return why some cannot be offered, by their names as they are shown."""
        self._listed, problems, seen = {}, {}, set[str]()
        for tool in tools[: self.config.max_tools]:
            try:
                if tool.name in seen:
                    self._listed.pop(tool.name, None)
                    raise UnfitError("the server lists it twice")
                seen.add(tool.name)
                self._listed[tool.name] = read_definition(
                    tool, self.server, self.config
                )
            except UnfitError as error:
                problems[_shown(tool.name)] = one_line(str(error))
        more = tools[self.config.max_tools :]
        too_many = f"the server has more than {self.config.max_tools} tools (max_tools)"
        problems |= {_shown(tool.name): too_many for tool in more[:_MAX_SHOWN]}
        if len(more) > _MAX_SHOWN:
            problems[f"[{len(more) - _MAX_SHOWN} others]"] = too_many
        return problems

    def _look_up(self) -> None:
        """Read what was agreed to; what a server lists when it is first met is agreed to."""
        known = self.pins.of(self.key)
        # within the session it is known all the same
        if known is None and self.unpinned is not None:
            known = self._agreed
        if known is not None:
            self._agreed = known
            return
        self._agreed = {
            name: definition.raw for name, definition in self._listed.items()
        }
        try:
            self.pins.keep(self.key, self._listed)
        except OSError as error:
            self.unpinned = f"its definitions cannot be remembered: {error}"

    def _sort(self, problems: Mapping[str, str]) -> None:
        held = {
            name: _CHANGED if name in self._agreed else _NEW for name in self.disagreed
        }
        self.withheld = {**held, **problems}
        self.offered = {
            name: definition
            for name, definition in self._listed.items()
            if name not in held and is_listed(name, self.filter)
        }


def _shown(name: str) -> str:
    """Return a name of a tool that is not offered, as it may be shown: it can be anything."""
    return one_line(name[:_LONGEST_NAME])


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
