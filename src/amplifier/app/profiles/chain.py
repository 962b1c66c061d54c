"""What a profile or bundle builds on, read in the order in which it is merged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.agents.library import AgentFile, parse_agent
from amplifier.app.collections.folders import Collection
from amplifier.app.directories import is_below
from amplifier.app.profiles.documents import Kind, ProfileFile
from amplifier.app.profiles.library import ProfileLibrary, is_address, refused
from amplifier.app.profiles.selection import BUNDLE
from amplifier.app.sources.absolute_sources import anchor_sources
from amplifier.app.sources.locations import GitLocation, canonical_name
from amplifier.app.sources.parser import read_location
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["MAX_FILES", "Chain", "follow"]

MAX_FILES: Final[dict[Kind, int]] = {"profile": 100, "bundle": 200}
"""How many files of a kind one chain may have."""

_VERBS: Final = {"profile": "extend", "bundle": "include"}
_OWN: Final = "bundle-"


@attrs.define(eq=False)
class Chain:
    """Profiles and bundles with all that they build on: each once, behind its bases.

    Args:
        library: finds them.
        files: the files, in the order in which they are laid over one another.
        roots: the folder of each bundle by its name; `name:path` is a path in it.
    """

    library: ProfileLibrary
    files: list[ProfileFile] = attrs.field(factory=list)
    roots: dict[str, Path] = attrs.field(factory=dict)
    _foreign: set[Path] = attrs.field(factory=set, init=False)

    def of(self, kind: Kind) -> list[ProfileFile]:
        """Return the files of a kind."""
        return [file for file in self.files if file.kind == kind]

    @property
    def agent_names(self) -> tuple[str, ...]:
        """The agents that bundles name and that stand in none of them."""
        names = (
            self.split(name) for file in self.of("bundle") for name in file.agents or ()
        )
        return tuple(dict.fromkeys(path for root, path in names if root is None))

    def own_agents(self) -> dict[str, JSONObject]:
        """Read the agents that bundles bring along; of one name the last counts.

        Raises:
            ConfigError: one is not there, or not sound.
        """
        found: dict[str, JSONObject] = {}
        for file in self.of("bundle"):
            for index, name in enumerate(file.agents or ()):
                root, path = self.split(name)
                if root is not None:
                    agent = self._agent(file, index, root, path)
                    found[agent.name] = agent.plan
            for name, plan in file.own_agents.items():
                found[name] = anchor_sources(dict(plan), file.path.parent)
        return found

    def mentions(self) -> str:
        """Return the mentions of the files that bundles show to the agent.

        Raises:
            ConfigError: one is not there, or leads out of the folders of the bundles.
        """
        named = (
            self._mention(file, index)
            for file in self.of("bundle")
            for index in range(len(file.context))
        )
        return "\n".join(dict.fromkeys(named))

    def lend(self) -> None:
        """Let mentions name the folders of bundles: `bundle-name`, and `name` if free."""
        for name, root in self.roots.items():
            for known_as in (f"{_OWN}{name}", name):
                collection = Collection(name=known_as, path=root, level="user")
                self.library.collections.lend(collection)

    def split(self, name: str) -> tuple[Path | None, str]:
        """Split `bundle:path`; the folder is `None` where no bundle has the name."""
        namespace, colon, path = name.partition(":")
        root = self.roots.get(canonical_name(namespace))
        if colon and root is not None:
            return root, path
        return None, name

    def follow(self, file: ProfileFile, trail: tuple[ProfileFile, ...] = ()) -> None:
        """Add a file behind all that it builds on.

        Args:
            file: the file.
            trail: the files through which it was reached.

        Raises:
            ConfigError: a base cannot be used, there are too many, or a file builds on
                itself; shows the chain.
        """
        kind, rule = file.kind, f"{file.kind}s {_VERBS[file.kind]} each other"
        shown = " -> ".join(each.own_name for each in (*trail, file))
        if _holds(trail, file):
            problem = Problem(shown, f"{rule} in a cycle")
            raise ConfigError([problem], subject=f"chain of {kind}s")
        # A base that two files share is laid down once, below both.
        if _holds(self.files, file):
            return
        # The trail as well: a chain that goes deeper and deeper has added nothing yet.
        if max(len(self.of(kind)), len(trail)) >= MAX_FILES[kind]:
            problem = Problem(file.own_name, f"more than {MAX_FILES[kind]} {rule}")
            raise ConfigError([problem], subject=f"chain of {kind}s")
        if kind == "bundle":
            # Before its bases are read: they may be named by its own folder.
            self._register(file)
        for index, name in enumerate(file.bases):
            try:
                base = self._base(file, name)
            except ConfigError as error:
                broken = f"{shown} -> {name}: the chain breaks here"
                (place,) = file.refuse(file.base_key(index), broken).problems
                # The other problems are those of the base, whose subject counts.
                problem = Problem(f"{file.subject}, {place.path}", place.message)
                problems = [problem, *error.problems]
                raise ConfigError(problems, subject=error.subject) from error
            self.follow(base, (*trail, file))
        # Behind its bases: later files are laid over earlier ones.
        self.files.append(file)

    def _base(self, file: ProfileFile, name: str) -> ProfileFile:
        """Read what a file builds on: others' files get only what came with them."""
        root, path = self.split(name)
        # A profile never means a bundle's folder, and a URL is no `name:path`.
        if file.kind == "bundle" and root is not None and "://" not in name:
            base = self.library.within(root, path)
            return attrs.evolve(base, level=file.level, collection=file.collection)
        if not is_address(name, file.kind):
            return self.library.find(name, file.kind, beside=file)
        location = read_location(name, file.path.parent)
        if isinstance(location, GitLocation):
            # Others' bundles could read this machine's repositories by a file: address.
            if location.scheme == "file" and not file.is_own:
                raise _leads_out(file, name)
            return self.library.open(name, file.kind, file.path.parent)
        base = self.library.open(name, file.kind, file.path.parent)
        self.library.project.require_own(file.path, base.path)
        if not file.is_own and not self._came_with(file, base):
            raise _leads_out(file, name)
        return attrs.evolve(base, level=file.level, collection=file.collection)

    def _register(self, file: ProfileFile) -> None:
        """Name the folder of a bundle; of several bundles of one name the first has it."""
        folder, name = file.path.parent, canonical_name(file.own_name)
        if not file.is_own:
            self._foreign.add(folder)
        # Bundles that others wrote may have the same name; each keeps its own files.
        number = 1
        while self.roots.setdefault(name, folder) != folder:
            number += 1
            name = f"{canonical_name(file.own_name)}-{number}"

    def _came_with(self, file: ProfileFile, base: ProfileFile) -> bool:
        """Tell whether a file is in a folder that holds the one that names it as well."""
        layers = self.library.collections.layers()
        folders = [*self.roots.values(), *(layer.path for layer in layers)]
        holding = [folder for folder in folders if file.path.is_relative_to(folder)]
        return any(is_below(base.path, folder) for folder in holding)

    def _agent(self, file: ProfileFile, index: int, root: Path, path: str) -> AgentFile:
        stem = path.removeprefix("agents/").removesuffix(".md")
        place = root / "agents" / f"{stem}.md"
        if not place.is_file() or not is_below(place, root):
            problem = f"there is no agent {str(place)!r}"
            raise file.refuse(("agents", "include", index), problem)
        data = self.library.content(place)
        return parse_agent(data, path=place, level=file.level)

    def _mention(self, file: ProfileFile, index: int) -> str:
        given = file.context[index].removeprefix("@")
        root, path = self.split(given)
        if root is None and ":" in given:
            name, _, path = given.partition(":")
            collection = self.library.collections.find(name)
            if collection is not None and collection.find(path) is not None:
                return f'@"{collection.name}:{path}"'
        place = Path(os.path.normpath((root or file.path.parent) / path))
        for name, folder in self.roots.items():
            if not file.is_own and folder not in self._foreign:
                continue  # others' bundles show none of the person's own files
            is_inside = is_below(place, folder) and place.is_relative_to(folder)
            if place.exists() and is_inside:
                return f'@"{_OWN}{name}:{place.relative_to(folder)}"'
        problem = f"there is no {given!r} in the folders of these bundles"
        raise file.refuse(("context", "include", index), problem)


def follow(library: ProfileLibrary, *names: str) -> Chain:
    """Read profiles and bundles with all that they build on.

    Args:
        library: finds them.
        names: what is laid over one another; a bundle's begins with `bundle:`.

    Raises:
        ConfigError: one is missing or not sound, or builds on itself; shows the chain.
    """
    chain = Chain(library)
    for name in names:
        kind: Kind = "profile"
        if name.startswith(BUNDLE):
            kind = "bundle"
        chain.follow(library.find(name.removeprefix(BUNDLE), kind))
    return chain


def _holds(files: Sequence[ProfileFile], file: ProfileFile) -> bool:
    """Tell whether a file is among others, by whichever path it was reached."""
    real = os.path.realpath(file.path)
    return real in (os.path.realpath(other.path) for other in files)


def _leads_out(file: ProfileFile, name: str) -> ConfigError:
    problem = f"it leads out of what came with the {file.kind}"
    return refused(file.kind, name, problem)
