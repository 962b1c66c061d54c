"""The skills of one session: found when they are first needed, and told of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio
import attrs
from anyio import to_thread

from amplifier_kit.files.session_folders import working_directory
from amplifier_kit.trust import TrustDecision
from amplifier_module_tool_skills.config import SkillsConfig
from amplifier_module_tool_skills.events import SKILLS_DISCOVERED, SkillsDiscovered
from amplifier_module_tool_skills.places import (
    FOLDERS,
    SkillPlaces,
    contributed,
    places,
)
from amplifier_module_tool_skills.skill_folders import Skill, SkillLibrary, gather
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.events import USER_NOTIFICATION, UserNotification

__all__ = ["Bookcase"]

_NAME: Final = "tool-skills"
_MAX_SHOWN: Final = 5
_NOWHERE: Final = SkillPlaces(folders=())


@attrs.define(eq=False)
class Bookcase:
    """What the capability `skills` offers: the session's library, looked up once."""

    _config: SkillsConfig
    _coordinator: Coordinator
    _configured: Sequence[str] | None
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock)
    _library: SkillLibrary | None = None
    _places: SkillPlaces = _NOWHERE

    async def library(self) -> SkillLibrary:
        """Return the skills; they are found at the first call."""
        if self._library is None:
            async with self._lock:
                if self._library is None:
                    self._library = await self._find()
        return self._library

    async def refresh(self) -> SkillLibrary:
        """Find the skills anew, for example because a person trusted those of the project."""
        async with self._lock:
            self._library = await self._find()
        return self._library

    @property
    def sources(self) -> tuple[str, ...]:
        """The folders that were looked in."""
        return tuple(str(folder.path) for folder in self._places.folders)

    async def waiting(self) -> list[TrustDecision]:
        """Return what the project brings along and nobody trusted yet."""
        await self.library()
        return [waiting.decision for waiting in self._places.waiting]

    def problems(self, library: SkillLibrary) -> list[str]:
        """Say what cannot be used, and why."""
        become = "left out"
        if self._config.untrusted == "mark":
            become = "marked as texts that give no orders"
        lines = [
            f"{waiting.folder.path}: skills that the project brings along are {become} until the person trusts them"
            for waiting in self._places.waiting
        ]
        lines += [f"{broken.place}: {broken.problem}" for broken in library.broken]
        lines += [
            f"{shadowed.skill.folder}: {shadowed.by.name!r} is taken from {shadowed.by.folder}"
            for shadowed in library.shadowed
        ]
        return lines

    def refusal(self, library: SkillLibrary, name: str) -> str:
        """Say why a name cannot be used that a skill claims which nobody trusted, and what helps; else nothing."""
        skill = library.refused.get(name)
        if skill is None:
            return ""
        return (
            f"the skill {name!r} of the project's folder {str(skill.folder.parent)!a} is not trusted, and no other one"
            " stands in for it; the person reads it and runs 'amplifier trust'"
        )

    def for_model(self, library: SkillLibrary) -> list[Skill]:
        """Return the skills that a model may load by itself."""
        return [skill for skill in library.skills.values() if skill.head.for_model]

    async def _find(self) -> SkillLibrary:
        directory = working_directory(self._coordinator)
        # contributors answer on the event loop; only the look at the disk may block
        others = contributed(await self._coordinator.collect_contributions(FOLDERS))
        with_untrusted = self._config.untrusted == "mark"

        def look() -> tuple[SkillPlaces, SkillLibrary]:
            own = places(self._configured, directory)
            return own, gather(
                [*own.folders, *others.folders], with_untrusted=with_untrusted
            )

        own, library = await to_thread.run_sync(look)
        self._places = attrs.evolve(own, folders=(*own.folders, *others.folders))
        # Before they are reported: problems of places and of skills are one list for
        # the person.
        library = attrs.evolve(
            library, broken=(*own.broken, *others.broken, *library.broken)
        )
        await self._report(library)
        return library

    async def _report(self, library: SkillLibrary) -> None:
        hooks, problems = self._coordinator.hooks, self.problems(library)
        if hooks.has_handlers(SKILLS_DISCOVERED):
            payload = SkillsDiscovered(
                skill_count=len(library.skills),
                skill_names=list(library.skills),
                sources=list(self.sources),
                problems=problems,
            )
            await hooks.emit(SKILLS_DISCOVERED, payload)
        for waiting in self._places.waiting:
            message = f"{waiting.folder.path}: these skills are not trusted: {waiting.decision.reason}"
            await hooks.emit(
                USER_NOTIFICATION,
                UserNotification(message=message, level="info", source=_NAME),
            )
        # one message for all, since a broken folder may hold hundreds of them
        if library.broken:
            first = "; ".join(
                f"{broken.place}: {broken.problem}"
                for broken in library.broken[:_MAX_SHOWN]
            )
            message = f"{len(library.broken)} skills cannot be used: {first}"
            await hooks.emit(
                USER_NOTIFICATION,
                UserNotification(message=message, level="warning", source=_NAME),
            )
