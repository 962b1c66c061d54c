"""What a project's folder says of servers; nothing of it runs or is connected to before a person trusts it.

What would run is an item of trust: the files that list servers, and every file or folder of the project that their
command lines and variables name. Programs do not start in the project, so that nothing else of it is found by chance.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.trust import PROJECT_FILES, TrustDecision, TrustStore, closure_of
from amplifier_module_tool_mcp.config import ServerConfig, parse_servers
from amplifier_module_tool_mcp.variables import expand

__all__ = ["ProjectServers", "WholeProjectError", "start_folder"]

_BETWEEN_PATHS: Final = re.compile(r"[\s'\";|&=()<>,:`$]+")
_BETWEEN_SPACED_PATHS: Final = re.compile(r"\s*['\";|&=()<>,:`]\s*")


class WholeProjectError(ValueError):
    """A server names the project's folder itself, or one around it: anything of the project could then run."""

    def __init__(self) -> None:
        super().__init__(
            "it names the whole project folder, or one around it, of which anything could run, so it cannot be"
            " trusted; name the part that it needs, or declare the server in your own mcp.json"
        )


def start_folder(server: ServerConfig, working_dir: Path) -> Path:
    """Return the folder that a server starts in, whose variables are in their places.

    Without `cwd` it is not the working directory: programs find modules, settings and packages where they start.
    """
    if server.cwd is None:
        return amplifier_home() / "mcp" / "run"
    return Path(os.path.realpath(working_dir / os.path.expanduser(server.cwd)))


@attrs.define(eq=False)
class ProjectServers:
    """One project's servers; everything here blocks.

    Args:
        folder: the project's folder.
        decision: on what was evaluated last; `None` before, and where there is nothing.
    """

    folder: Path
    decision: TrustDecision | None = None

    def look(self) -> tuple[dict[str, ServerConfig | str], TrustDecision | None]:
        """Look at the files and at all that they would run, as they are now.

        Returns:
            The servers, or what is wrong with them, and whether a person trusts all of it; `None` where there is
            nothing.
        """
        looked = self._look()
        self.decision = looked[1]  # whole, since several threads look
        return looked

    def _look(self) -> tuple[dict[str, ServerConfig | str], TrustDecision | None]:
        files = [
            name
            for name in PROJECT_FILES["mcp"]
            if (self.folder / name).parent != amplifier_home()
        ]
        if not any(os.path.lexists(self.folder / name) for name in files):
            return {}, None
        store, items = TrustStore.in_home(), files
        servers: dict[str, ServerConfig | str] = {}
        while True:  # what the files name decides what else is evaluated
            found = store.require(self.folder, "mcp", items)
            if not found.can_be_trusted:
                return servers or {files[0]: found.reason}, found
            servers = {}
            for name in files:
                if name in found.contents:
                    servers = {**parse_servers(name, found.contents[name]), **servers}
            every = [*self._all_items(servers), *self._followed(found, items)]
            wanted = [item for item in every if item not in items]
            if not wanted:
                return servers, found
            items = [*items, *dict.fromkeys(wanted)]

    def grant(self, decision: TrustDecision) -> None:
        """Trust what was evaluated.

        Raises:
            ValueError: it cannot be trusted.
            OSError: that cannot be stored.
        """
        TrustStore.in_home().grant(decision)

    def placed(self, config: ServerConfig) -> ServerConfig:
        """Name the project's files in a command line by their absolute paths, since it does not start there."""
        if config.command is None or config.cwd is not None:
            return config
        return attrs.evolve(
            config,
            command=self._placed(config.command),
            args=tuple(map(self._placed, config.args)),
        )

    def _placed(self, word: str) -> str:
        if self._is_file(word):
            return str(self.folder / word)
        return word

    def _is_file(self, word: str) -> bool:
        path = self.folder / word
        return (
            bool(word)
            and not os.path.isabs(word)
            and (os.path.islink(path) or os.path.isfile(path))
        )

    def _followed(self, found: TrustDecision, items: Sequence[str]) -> tuple[str, ...]:
        """Return what the scripts among the items would run in their turn; a folder counts as a whole already."""
        scripts = {
            name: found.contents[name] for name in items if name in found.contents
        }
        for name in PROJECT_FILES["mcp"]:
            scripts.pop(name, None)
        return closure_of(Path(found.folder), scripts, known=found.contents).items

    def _all_items(self, servers: dict[str, ServerConfig | str]) -> Iterator[str]:
        """Yield what the servers would run; where that is unknown, the reason."""
        for name, config in list(servers.items()):
            try:
                yield from list(self._items(config))
            except ValueError as error:
                servers[name] = str(error)

    def _items(self, config: ServerConfig | str) -> Iterator[str]:
        """Yield the paths below the folder that a server would run, or find something to run in.

        Raises:
            MissingVariableError: a variable has no value.
            WholeProjectError: it names the folder itself.
        """
        if isinstance(config, str) or config.command is None:
            return
        server = expand(
            config, {**os.environ, "AMPLIFIER_WORKING_DIR": str(self.folder)}
        ).config
        start = start_folder(server, self.folder)
        if server.cwd is not None:
            yield from self._below(start)
        words = (server.command or "", *server.args)
        for part in _parts(words):
            if server.cwd is None and self._is_file(part):
                yield from self._below(self.folder / part)
        for part in _parts((*words, *server.env.values())):
            yield from self._below(start / os.path.expanduser(part))

    def _below(self, path: Path) -> Iterator[str]:
        """Yield a path relative to the folder; nothing for one beside it or one that does not exist.

        Raises:
            WholeProjectError: it is the folder, or one around it.
        """
        for root, place in (
            (os.path.normpath(self.folder), os.path.normpath(path)),
            (os.path.realpath(self.folder), os.path.realpath(path)),
        ):
            if Path(root).is_relative_to(place):
                raise WholeProjectError
            if os.path.lexists(place) and Path(place).is_relative_to(root):
                yield os.path.relpath(place, root)
                return


def _parts(words: Iterable[str]) -> Iterator[str]:
    """Yield what may be a path in some words: each as it is, and its parts with and without blanks in them."""
    for word in words:
        parts = (word, *_BETWEEN_SPACED_PATHS.split(word), *_BETWEEN_PATHS.split(word))
        yield from dict.fromkeys(filter(None, parts))
