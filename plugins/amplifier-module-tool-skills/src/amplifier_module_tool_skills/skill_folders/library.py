"""The skills of several folders: of two that have one name, that of the earlier folder counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from amplifier_module_tool_skills.skill_folders.finder import (
    BrokenSkill,
    Skill,
    SkillFolder,
    find_skills,
)

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
        refused: those that nobody stands for, by the names that they keep from all others.
    """

    skills: Mapping[str, Skill] = attrs.field(factory=dict)
    broken: tuple[BrokenSkill, ...] = ()
    shadowed: tuple[ShadowedSkill, ...] = ()
    refused: Mapping[str, Skill] = attrs.field(factory=dict)


def gather(
    folders: Iterable[SkillFolder], *, with_untrusted: bool = True
) -> SkillLibrary:
    """Find the skills of folders; the first folder has precedence.

    A skill that nobody stands for never takes the place of one that somebody does, nor does that one stand in for it:
    the name is refused.

    Args:
        folders: where to look.
        with_untrusted: whether a skill that nobody stands for is used where its name is its own.
    """
    skills: dict[str, Skill] = {}
    broken: list[BrokenSkill] = []
    shadowed: list[ShadowedSkill] = []
    refused: dict[str, Skill] = {}
    for folder in folders:
        found = find_skills(folder)
        is_used = folder.is_trusted or with_untrusted
        broken += found.broken if is_used else ()
        for skill in found.skills:
            known = skills.setdefault(skill.name, skill)
            # the same folder may be listed twice, which shadows nothing
            if known is not skill and known.folder != skill.folder:
                shadowed.append(ShadowedSkill(skill=skill, by=known))
            # a project must not choose by a name which of two skills is used
            if not known.is_trusted and (skill.is_trusted or not is_used):
                refused[skill.name] = known
    used = {
        name: skill for name, skill in sorted(skills.items()) if name not in refused
    }
    return SkillLibrary(
        skills=used,
        broken=tuple(broken),
        shadowed=tuple(each for each in shadowed if each.skill.name not in refused),
        refused=dict(sorted(refused.items())),
    )
