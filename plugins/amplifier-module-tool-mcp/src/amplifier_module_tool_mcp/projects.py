"""What a project's folder says of servers; nothing of it runs or is connected to before a person trusts it.

What would run is an item of trust: the files that list servers, and every file or folder of the project that their
command lines and variables name. Programs do not start in the project, so that nothing else of it is found by chance.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from amplifier_module_tool_mcp.config import ServerConfig
from amplifier_module_tool_mcp.expanding import MissingVariableError, expand
from amplifier_module_tool_mcp.serverfiles import parse_servers
from amplifier_sdk.kit.homes import amplifier_home
from amplifier_sdk.kit.trust import PROJECT_FILES, Decision, TrustStore

__all__ = ["ProjectFiles", "WholeProjectError"]

_BETWEEN_PATHS: Final = re.compile(r"[\s'\";|&=()<>,:`$]+")


class WholeProjectError(ValueError):
    """A server names the project's folder itself, of which anything could then run."""

    def __init__(self) -> None:
        super().__init__(
            "it names the whole project folder, of which anything could run, so it cannot be trusted; name the part"
            " that it needs, or declare the server in your own mcp.json"
        )


@attrs.define(eq=False)
class ProjectFiles:
    """One project's servers; everything here blocks.

    Args:
        folder: the project's folder.
        decision: on what was looked at last; `None` before, and where there is nothing.
    """

    folder: Path
    decision: Decision | None = None

    def look(self) -> tuple[dict[str, ServerConfig | str], Decision | None]:
        """Look at the files and at all that they would run, as they are now.

        Returns:
            The servers, or what is wrong with them, and whether a person trusts all of it; `None` where there is
            nothing.
        """
        looked = self._look()
        self.decision = looked[1]  # whole, since several threads look
        return looked

    def _look(self) -> tuple[dict[str, ServerConfig | str], Decision | None]:
        files = [name for name in PROJECT_FILES["mcp"] if (self.folder / name).parent != amplifier_home()]
        if not any(os.path.lexists(self.folder / name) for name in files):
            return {}, None
        store, items = TrustStore.in_home(), files
        servers: dict[str, ServerConfig | str] = {}
        while True:  # what the files name decides what else is looked at
            found = store.require(self.folder, "mcp", items)
            if not found.can_be_trusted:
                return servers or {files[0]: found.reason}, found
            servers = {}
            for name in files:
                if name in found.contents:
                    servers = {**parse_servers(name, found.contents[name]), **servers}
            wanted = [item for item in self._all_items(servers) if item not in items]
            if not wanted:
                return servers, found
            items = [*items, *dict.fromkeys(wanted)]

    def grant(self, decision: Decision) -> None:
        """Trust what was looked at.

        Raises:
            ValueError: it cannot be trusted.
            OSError: that cannot be kept.
        """
        TrustStore.in_home().grant(decision)

    def placed(self, config: ServerConfig) -> ServerConfig:
        """Name the project's files in a command line by their absolute paths, since it does not start there."""
        if config.command is None or config.cwd is not None:
            return config
        return attrs.evolve(config, command=self._placed(config.command), args=tuple(map(self._placed, config.args)))

    def _placed(self, word: str) -> str:
        return str(self.folder / word) if self._is_file(word) else word

    def _is_file(self, word: str) -> bool:
        path = self.folder / word
        return bool(word) and "\0" not in word and not os.path.isabs(word) and (path.is_symlink() or path.is_file())

    def _all_items(self, servers: dict[str, ServerConfig | str]) -> Iterator[str]:
        """Yield what the servers would run; one of which that cannot be told is replaced by the reason."""
        for name, config in list(servers.items()):
            try:
                yield from list(self._items(config))
            except (MissingVariableError, WholeProjectError) as error:
                servers[name] = str(error)

    def _items(self, config: ServerConfig | str) -> Iterator[str]:
        """Yield the paths below the folder that a server would run, or find something to run in.

        Raises:
            MissingVariableError: a variable has no value.
            WholeProjectError: it names the folder itself.
        """
        if isinstance(config, str) or config.command is None:
            return
        server = expand(config, {**os.environ, "AMPLIFIER_WORKING_DIR": str(self.folder)}).config
        if server.cwd is not None:
            yield from self._below(self.folder / server.cwd)
        base = self.folder / (server.cwd or "")
        for word in (server.command or "", *server.args):
            for part in (word, *_BETWEEN_PATHS.split(word)):
                if os.path.isabs(part):
                    yield from self._below(Path(part))
                elif part and "\0" not in part and ((base / part).is_symlink() or (base / part).is_file()):
                    yield from self._below(base / part)
        for value in server.env.values():
            for part in _BETWEEN_PATHS.split(value):
                if os.path.isabs(part):
                    yield from self._below(Path(part))

    def _below(self, path: Path) -> Iterator[str]:
        """Yield a path relative to the folder; nothing for one outside or one that does not exist."""
        if "\0" in str(path):
            return
        for root, place in (
            (os.path.normpath(self.folder), os.path.normpath(path)),
            (os.path.realpath(self.folder), os.path.realpath(path)),
        ):
            if place == root:
                raise WholeProjectError
            if os.path.lexists(place) and Path(place).is_relative_to(root):
                yield os.path.relpath(place, root)
                return
