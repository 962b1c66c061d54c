"""The skills of several folders: of two that have one name, that of the earlier folder counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from amplifier_module_tool_skills.skill_folders.finder import BrokenSkill, Skill, SkillFolder, find_skills

__all__ = ["ShadowedSkill", "SkillLibrary", "gather"]


@attrs.frozen(kw_only=True)
class ShadowedSkill:
    """A skill that another one of its name keeps from being used."""

    skill: Skill
    by: Skill


@attrs.frozen(kw_only=True)
class SkillLibrary:
    """What was found.

    Args:
        skills: those that can be used, by name, in the order of the names.
        broken: those that cannot.
        shadowed: those that have the name of an earlier one.
    """

    skills: Mapping[str, Skill] = attrs.field(factory=dict)
    broken: tuple[BrokenSkill, ...] = ()
    shadowed: tuple[ShadowedSkill, ...] = ()


def gather(folders: Iterable[SkillFolder]) -> SkillLibrary:
    """Find the skills of folders; the first folder has precedence.

    A skill that nobody stands for never takes the place of one that somebody does.
    """
    skills: dict[str, Skill] = {}
    broken: list[BrokenSkill] = []
    shadowed: list[ShadowedSkill] = []
    for folder in sorted(folders, key=lambda folder: not folder.is_trusted):
        found = find_skills(folder)
        broken += found.broken
        for skill in found.skills:
            known = skills.setdefault(skill.name, skill)
            if known is not skill and known.folder != skill.folder:
                shadowed.append(ShadowedSkill(skill=skill, by=known))
    return SkillLibrary(skills=dict(sorted(skills.items())), broken=tuple(broken), shadowed=tuple(shadowed))
