"""Agents: Markdown files from which child sessions are made, found by name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePath
from typing import Final

import attrs

from amplifier.app.agents.project_agents import missing_modules, widening
from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.definitions import (
    DefinitionFile,
    InvalidFile,
    is_definition,
    of_collections,
    of_project,
    of_user,
)
from amplifier.app.directories import FOLDER, AppDirs
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.settings.layers import read_fields, with_lines
from amplifier.app.sources.absolute_sources import anchor_sources
from amplifier_kit.files.frontmatter import decode_front_matter
from amplifier_sdk.errors import AmplifierError, ConfigError, Problem, did_you_mean
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["AgentFile", "AgentLibrary", "parse_agent"]

_FOLDER: Final = "agents"
_ENVIRONMENT: Final = "environment"
_VARIABLE: Final = "AMPLIFIER_AGENT_"
_LISTS: Final = ("hooks", "providers", "tools")
_EMPTY: Final = (
    "an empty list takes nothing away: an agent has its session's modules and those that it names; leave it out, or"
    " limit its tools with only_tools of hooks-shell"
)
_HEAD: Final = ("meta", "name", "description", "system")


@attrs.frozen(kw_only=True)
class _Meta:
    """What an agent says of itself."""

    name: str | None = None
    description: str | None = None


@attrs.frozen(kw_only=True)
class _Fields:
    """The keys of an agent's file; name and description stand in `meta` or beside it."""

    meta: _Meta = attrs.field(factory=_Meta)
    name: str | None = None
    description: str | None = None
    providers: tuple[JSONValue, ...] = ()
    tools: tuple[JSONValue, ...] = ()
    hooks: tuple[JSONValue, ...] = ()
    session: Mapping[str, JSONValue] = attrs.field(factory=dict)
    system: Mapping[str, JSONValue] = attrs.field(factory=dict)
    agents: JSONValue = None


@attrs.frozen(kw_only=True)
class AgentFile:
    """One agent.

    Args:
        name: under which a session delegates to it.
        path: its file.
        level: whose it is: `environment`, `project`, `user`, `bundled`.
        description: one line, for those who choose an agent.
        plan: its partial mount plan, with description and instruction: an entry of a plan's `agents`.
    """

    name: str
    path: Path
    level: str
    description: str
    plan: JSONObject


@attrs.define(eq=False)
class AgentLibrary:
    """Finds agents. The environment names some, the project's win over the person's own, collections follow.

    `invalid` lists the files that `all` left out.

    Args:
        dirs: where they stand.
        project: what of the project's folder may be used.
        collections: the collections there are.
        environ: `AMPLIFIER_AGENT_NAME` is the file of the agent `name`.
    """

    dirs: AppDirs
    project: ProjectFiles
    collections: CollectionLibrary
    environ: Mapping[str, str] = attrs.field(factory=lambda: os.environ)
    invalid: list[InvalidFile] = attrs.field(factory=list, init=False)

    @classmethod
    def of(cls, dirs: AppDirs | None = None) -> AgentLibrary:
        """Make the library of a working directory, default that of the process."""
        dirs = dirs or AppDirs.find()
        project = ProjectFiles(dirs)
        return cls(dirs, project, CollectionLibrary(dirs, project))

    def require(self, name: str) -> AgentFile:
        """Return the agent of a name.

        Raises:
            ConfigError: there is none, or its file is invalid; names the nearest, or the file.
        """
        return self._require([name])[name]

    def all(self, session: JSONObject | None = None) -> dict[str, AgentFile]:
        """Read the agents, the strongest of each name, sorted by name.

        An invalid file hides weaker ones of its name.

        Args:
            session: the plan of the session that uses them, as in `choose`.
        """
        # Invalid files take their name as well: an agent of the person's own, which a
        # project's broken file means to replace, must not run in its place unnoticed.
        found: dict[str, AgentFile] = {}
        invalid: dict[str, InvalidFile] = {}
        for file in self.every():
            if file.name in found or file.name in invalid:
                continue
            agent = self._checked(file, session)
            if isinstance(agent, InvalidFile):
                invalid[agent.name] = agent
            else:
                found[agent.name] = agent
        self.invalid = list(invalid.values())
        return dict(sorted(found.items()))

    def _checked(
        self, agent: AgentFile | InvalidFile, session: JSONObject | None
    ) -> AgentFile | InvalidFile:
        """Return an agent, or why it cannot be used in a session: of a project it brings no modules along."""
        if isinstance(agent, InvalidFile) or session is None:
            return agent
        if agent.level == _ENVIRONMENT or not self.project.owns(agent.path):
            return agent
        problems = list(missing_modules(agent.plan, session))
        if not problems:
            return agent
        error = ConfigError(problems, subject=f"agent {str(agent.path)!r}")
        # One line, since it is shown among the warnings of a session.
        message = " ".join(str(error).split())
        return InvalidFile(
            name=agent.name, path=agent.path, level=agent.level, problem=message
        )

    def every(self) -> Iterator[AgentFile | InvalidFile]:
        """Read all agents, the strongest first, also those that another one hides."""
        for file in chain(
            self._of_environment(),
            of_project(self.project, _FOLDER, f"{FOLDER}/{_FOLDER}"),
            of_user(self.dirs.home, _FOLDER, _FOLDER, "*.md"),
            of_collections(self.collections, _FOLDER, "*.md"),
        ):
            # A file that the environment names is an agent whatever it is called; in a
            # folder, a README beside the agents is none.
            if file.level == _ENVIRONMENT or is_definition(file.place):
                yield self._read(file)

    def _of_environment(self) -> Iterator[DefinitionFile]:
        for variable, value in sorted(self.environ.items()):
            if variable.startswith(_VARIABLE) and value:
                name = variable.removeprefix(_VARIABLE).lower().replace("_", "-")
                path = self.dirs.working_dir / os.path.expanduser(value)
                yield DefinitionFile(
                    path=path, place=PurePath(name), name=name, level=_ENVIRONMENT
                )

    def _read(self, file: DefinitionFile) -> AgentFile | InvalidFile:
        is_named = file.level == _ENVIRONMENT
        try:
            return parse_agent(
                file.read(self.project),
                path=file.path,
                level=file.level,
                name=file.name if is_named else None,
                # A person who names a file in the environment vouches for it, also
                # where it lies in the project.
                is_narrow=not is_named and self.project.owns(file.path),
            )
        except ConfigError as error:
            return attrs.evolve(file, name=_claimed_name(file)).invalid(error)

    def choose(
        self, choice: str | Sequence[str], session: JSONObject | None = None
    ) -> JSONObject:
        """Return the `agents` of a mount plan.

        Args:
            choice: `all`, `none`, or names.
            session: the rest of that plan; an agent of a project that names a module which it lacks is invalid.

        Raises:
            ConfigError: a named agent is not there, or its file is invalid.
        """
        if choice == "none":
            return {}
        if choice == "all":
            return {name: agent.plan for name, agent in self.all(session).items()}
        found = self._require([choice] if isinstance(choice, str) else choice, session)
        return {name: agent.plan for name, agent in found.items()}

    def _require(
        self, names: Sequence[str], session: JSONObject | None = None
    ) -> dict[str, AgentFile]:
        found = self.all(session)
        known = {file.name: file.problem for file in self.invalid}
        problems = []
        for name in dict.fromkeys(names):
            if name not in found:
                problem = (
                    known.get(name) or f"no such agent{did_you_mean(name, list(found))}"
                )
                problems.append(Problem(name, problem))
        if problems:
            raise ConfigError(problems, subject="choice of agents")
        return {name: found[name] for name in names}


def parse_agent(
    data: bytes,
    *,
    path: Path,
    level: str,
    name: str | None = None,
    is_narrow: bool = False,
) -> AgentFile:
    """Read an agent: its fields are a partial mount plan, its body is the instruction.

    Args:
        data: the file's content.
        path: the file.
        level: whose it is.
        name: in place of the one that it gives itself.
        is_narrow: whether it may only narrow what its session may do, as one that a project brings.

    Raises:
        ConfigError: it is no UTF-8, its head is no YAML, has a key that no agent has, an empty limit, or more than it
            may say.
    """
    subject = f"agent {str(path)!r}"
    read = decode_front_matter(data, subject=subject)
    # An empty list looks like "no tools" and would mean "all tools of the session"; it
    # is refused rather than misread.
    empty = [
        Problem(key, _EMPTY)
        for key in _LISTS
        if key in read.fields and not read.fields[key]
    ]
    if empty:
        raise ConfigError(with_lines(empty, read.head), subject=subject)
    fields = {key: value for key, value in read.fields.items() if value is not None}
    head = read_fields(_Fields, fields, read.head, subject=subject)
    description = " ".join((head.meta.description or head.description or "").split())
    plan: JSONObject = {key: value for key, value in fields.items() if key not in _HEAD}
    plan["description"] = description
    system = dict(head.system)
    if body := read.body.strip():
        system["instruction"] = body
    if system:
        plan["system"] = system
    # Trust in a project's agents covers instructions, and not more than the session
    # itself may do.
    if is_narrow and (problems := list(widening(plan))):
        raise ConfigError(with_lines(problems, read.head), subject=subject)
    own = name or head.meta.name or head.name or re.sub(r"\.md$", "", path.name)
    # The plan outlives its file's folder: a child may work elsewhere.
    plan = anchor_sources(plan, path.absolute().parent)
    return AgentFile(
        name=own, path=path, level=level, description=description, plan=plan
    )


def _claimed_name(file: DefinitionFile) -> str:
    """Return the name that a file takes which cannot be used."""
    # One that nobody trusted may give itself another name than the file's.
    if not file.claim:
        return file.name
    try:
        return parse_agent(file.claim, path=file.path, level=file.level).name
    except AmplifierError:
        return file.name
