"""Lists of skills that fit: names, and as much of the descriptions as there is room for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from amplifier_module_tool_skills.skill_folders import Skill

__all__ = ["HEAD", "SkillListing", "catalogue", "listing"]

HEAD: Final = (
    "Skills are instructions for special tasks. When a task fits one of these, call load_skill with its skill_name"
    " before you begin. Of several such lists the last one counts."
)
"""What every catalogue begins with."""

_SHORTEST: Final = 60
_FRAME: Final = 6


@attrs.frozen
class SkillListing:
    """Skills with their descriptions, cut where they are long, and how many had no room."""

    entries: tuple[tuple[Skill, str], ...]
    left_out: int


def listing(skills: Sequence[Skill], most: int) -> SkillListing:
    """Take as many skills as have room, in their order; each description gets the same share, the short ones less.

    Args:
        skills: which.
        most: how many characters names and descriptions may have.
    """
    kept: list[Skill] = []
    room = most
    for skill in skills:
        # Below this a description says too little to choose by, so fewer skills are
        # shown.
        room -= len(skill.name) + _FRAME + min(len(skill.head.description), _SHORTEST)
        if room < 0:
            break
        kept.append(skill)
    share = _share(
        [len(skill.head.description) for skill in kept],
        most - sum(len(s.name) + _FRAME for s in kept),
    )
    entries = tuple((skill, _cut(skill.head.description, share)) for skill in kept)
    return SkillListing(entries, len(skills) - len(kept))


def catalogue(skills: Sequence[Skill], *, most_skills: int, most: int) -> str:
    """Write the list of skills that a model may load; empty when there are none."""
    listed = listing(skills[:most_skills], most - len(HEAD) - 100)
    if not listed.entries:
        return ""
    left_out = len(skills) - len(listed.entries)
    if left_out:
        more = [f"({left_out} more: load_skill with search finds them.)"]
    else:
        more = []
    return "\n".join(
        [HEAD, *(f"- {skill.name}: {text}" for skill, text in listed.entries), *more]
    )


def _share(lengths: Sequence[int], room: int) -> int:
    """Return how long a text may be so that all have room; those that are shorter leave theirs to the others."""
    share = room
    # The shortest first: what they leave over is shared among the longer ones.
    for left, length in zip(range(len(lengths), 0, -1), sorted(lengths), strict=True):
        share = room // left
        if length > share:
            break
        room -= length
    return share


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[: most - 1].rstrip()}…"
