"""From a bundle to a mount plan: what it includes becomes a chain of profiles, merged by the one rule."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.agents import parse_agent
from amplifier.app.bundles.documents import BundleFile
from amplifier.app.bundles.library import BundleLibrary, is_address
from amplifier.app.collections.folders import Collection
from amplifier.app.directories import is_below
from amplifier.app.profiles.chains import CompiledProfile, compile_chain
from amplifier.app.profiles.documents import ProfileFile
from amplifier.app.profiles.selection import BUNDLE
from amplifier.app.sources.absolute_sources import anchor_sources
from amplifier.app.sources.locations import GitLocation
from amplifier.app.sources.parser import read_location
from amplifier.app.sources.requirements import canonical_name
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["IncludedBundles", "compile_over", "follow_includes"]

_MAX: Final = 200
_OWN: Final = "bundle-"


@attrs.define(eq=False)
class IncludedBundles:
    """A bundle and all that it includes, each once, what is included before what includes it.

    Args:
        library: finds them.
        files: the bundles in the order in which they are laid over one another.
        roots: the folder of each bundle by its name; what stands there is named as `name:path`.
    """

    library: BundleLibrary
    files: list[BundleFile] = attrs.field(factory=list)
    roots: dict[str, Path] = attrs.field(factory=dict)
    _foreign: set[Path] = attrs.field(factory=set, init=False)

    @property
    def instruction(self) -> str:
        """What the agent is told: the files of all, then the body of the last that has one."""
        shown = dict.fromkeys(
            self._mention(file, index)
            for file in self.files
            for index in range(len(file.context))
        )
        body = next((file.body for file in reversed(self.files) if file.body), "")
        return "\n\n".join(filter(None, ["\n".join(shown), body]))

    @property
    def folder_of_body(self) -> Path:
        """The folder that what the body mentions is relative to."""
        return next(
            (file.path.parent for file in reversed(self.files) if file.body),
            self.files[-1].path.parent,
        )

    @property
    def agent_names(self) -> tuple[str, ...]:
        """The agents that are named and stand in no bundle."""
        named = (self.split(name) for file in self.files for name in file.agents)
        return tuple(dict.fromkeys(path for root, path in named if root is None))

    def own_agents(self) -> dict[str, JSONObject]:
        """Read the agents that the bundles bring along, by name; of one name the last counts.

        Raises:
            ConfigError: one is not there, or not sound.
        """
        found: dict[str, JSONObject] = {}
        for file in self.files:
            read = (self._agent(file, index) for index in range(len(file.agents)))
            found.update(agent for agent in read if agent is not None)
            inline = file.own_agents.items()
            found.update(
                {
                    name: anchor_sources(dict(plan), file.path.parent)
                    for name, plan in inline
                }
            )
        return found

    def register(self, file: BundleFile) -> None:
        """Name the folder of a bundle; of several bundles of one name the first has it."""
        folder, name = file.path.parent, canonical_name(file.name)
        if not file.is_own:
            self._foreign.add(folder)
        number = 1
        while self.roots.setdefault(name, folder) != folder:
            number += 1
            name = f"{canonical_name(file.name)}-{number}"

    def lend(self) -> None:
        """Make the folders of the bundles known to mentions: as `bundle-name`, and as `name` where it is free."""
        collections = self.library.collections
        for name, root in self.roots.items():
            for known_as in (f"{_OWN}{name}", name):
                collections.lend(Collection(name=known_as, path=root, level="user"))

    def holds(self, file: BundleFile, other: BundleFile) -> bool:
        """Whether a bundle that a file includes came with it: stands in a folder that holds the file as well."""
        roots = [
            *self.roots.values(),
            *(layer.path for layer in self.library.collections.layers()),
        ]
        holding = [root for root in roots if file.path.is_relative_to(root)]
        return any(is_below(other.path, root) for root in holding)

    def split(self, name: str) -> tuple[Path | None, str]:
        """Part `bundle:name`; the folder is `None` where no bundle here has the name."""
        namespace, colon, path = name.partition(":")
        if colon:
            root = self.roots.get(canonical_name(namespace))
        else:
            root = None
        if root is not None:
            return (root, path)
        return (None, name)

    def _agent(self, file: BundleFile, index: int) -> tuple[str, JSONObject] | None:
        """Read an agent that a bundle names and a bundle has; `None` where no bundle has it."""
        root, path = self.split(file.agents[index])
        if root is None:
            return None
        place = (
            root / "agents" / f"{path.removeprefix('agents/').removesuffix('.md')}.md"
        )
        if not place.is_file() or not is_below(place, root):
            raise file.refuse(
                ("agents", "include", index), f"there is no agent {str(place)!r}"
            )
        agent = parse_agent(self.library.content(place), path=place, level=file.level)
        return agent.name, agent.plan

    def _mention(self, file: BundleFile, index: int) -> str:
        """Return the mention of a file that a bundle shows.

        Raises:
            ConfigError: it is not there, or leads out of the bundles' folders.
        """
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
                continue
            if (
                place.exists()
                and is_below(place, folder)
                and place.is_relative_to(folder)
            ):
                return f'@"{_OWN}{name}:{place.relative_to(folder)}"'
        raise file.refuse(
            ("context", "include", index),
            f"there is no {given!r} in the folders of these bundles",
        )


def follow_includes(library: BundleLibrary, names: Sequence[str]) -> IncludedBundles:
    """Read bundles and all that they include.

    Raises:
        ConfigError: one is missing or not sound, or they include each other in a circle; shows the chain.
    """
    found = IncludedBundles(library)
    for name in names:
        _follow(found, library.find(name.removeprefix(BUNDLE)), ())
    return found


def compile_over(
    bundles: IncludedBundles, top: Sequence[ProfileFile] = (), name: str | None = None
) -> CompiledProfile:
    """Merge bundles into a mount plan.

    Args:
        bundles: the bundles.
        top: profiles that are laid over them.
        name: under which the whole is asked for again; default that of the last.

    Raises:
        ConfigError: what a bundle brings along is missing, or a name is taken.
    """
    bundles.lend()
    chain = [*(file.to_profile() for file in bundles.files), *top]
    compiled = compile_chain(chain)
    last = chain[-1]
    body, path = bundles.instruction, bundles.folder_of_body / "bundle.md"
    if top:
        body, path = "\n\n".join(filter(None, [body, last.body])), last.path
    last = attrs.evolve(
        last, name=last.name if name is None else name, body=body, path=path
    )
    agents, own = compiled.agents, bundles.own_agents()
    if agents == "none":
        own = {}
    elif agents != "all":
        agents = (*agents, *bundles.agent_names)
    elif not top:
        agents = bundles.agent_names or ("none" if own else "all")
    return attrs.evolve(
        compiled, chain=(*compiled.chain[:-1], last), agents=agents, own_agents=own
    )


def _follow(
    found: IncludedBundles, file: BundleFile, trail: tuple[BundleFile, ...]
) -> None:
    above = [*trail, file]
    if _holds_file(trail, file):
        shown = " -> ".join(other.name for other in above)
        raise ConfigError(
            [Problem(shown, "bundles include each other in a cycle")],
            subject="chain of bundles",
        )
    if _holds_file(found.files, file):
        return
    if len(found.files) >= _MAX or len(trail) >= _MAX:
        raise ConfigError(
            [Problem(file.name, f"more than {_MAX} bundles")],
            subject="chain of bundles",
        )
    found.register(file)
    for index, included in enumerate(file.includes):
        try:
            other = _included(found, file, included)
        except ConfigError as error:
            problem = file.refuse(
                ("includes", index), "what it includes cannot be used"
            ).problems[0]
            raise ConfigError(
                [problem, *error.problems],
                subject=f"{file.subject}, or what it includes",
            ) from error
        _follow(found, other, tuple(above))
    found.files.append(file)


def _holds_file(files: Sequence[BundleFile], file: BundleFile) -> bool:
    """Whether a bundle is among others, by whichever path it was reached."""
    return os.path.realpath(file.path) in (
        os.path.realpath(other.path) for other in files
    )


def _included(found: IncludedBundles, file: BundleFile, name: str) -> BundleFile:
    """Read what a bundle includes: a path is relative to its folder, `name:path` to that bundle's.

    What was fetched, or came with a collection, includes from this machine only what came with it.
    """
    library = found.library
    root, path = found.split(name)
    if root is not None and "://" not in name:
        return library.within(root, path, level=file.level, collection=file.collection)
    if not is_address(name):
        return library.find(name)
    location = read_location(name, file.path.parent)
    if isinstance(location, GitLocation):
        if location.scheme == "file" and not file.is_own:
            raise _leads_out(name)
        return library.open(name, file.path.parent)
    other = attrs.evolve(
        library.open(name, file.path.parent),
        level=file.level,
        collection=file.collection,
    )
    library.project.require_own(file.path, other.path)
    if not file.is_own and not found.holds(file, other):
        raise _leads_out(name)
    return other


def _leads_out(name: str) -> ConfigError:
    return ConfigError(
        [Problem(name, "it leads out of what came with the bundle")],
        subject="choice of bundles",
    )
