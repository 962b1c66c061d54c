"""The module's events."""

from __future__ import annotations

from typing import Final

from amplifier_sdk.events import Event, EventFields

__all__ = ["SKILLS_DISCOVERED", "SKILL_LOADED", "SkillLoaded", "SkillsDiscovered"]


class SkillsDiscovered(EventFields):
    """A session knows which skills there are; `problems` say what cannot be used, and why."""

    skill_count: int
    skill_names: list[str]
    sources: list[str]
    problems: list[str]


class SkillLoaded(EventFields):
    """A model loaded a skill, or read on in it; `content_length` counts the characters of its whole body."""

    skill_name: str
    source: str
    skill_directory: str
    content_length: int
    version: str | None


SKILLS_DISCOVERED: Final = Event[SkillsDiscovered]("skills:discovered")
SKILL_LOADED: Final = Event[SkillLoaded]("skill:loaded")
