"""Skills: folders of instructions for special tasks, in the format of Agent Skills (https://agentskills.io).

A skill is a folder with a `SKILL.md`: front matter that says what it is for, and a body that a model reads when it
needs it, with further files beside it. What is not quite the format is read as far as it can be, and said.

```python
library = gather([SkillFolder(path=Path.home() / ".amplifier/skills", source="person")])
for skill in library.skills.values():
    print(skill.name, skill.head.description)
```

Everything here blocks: call it in a thread. Nothing of a skill is ever run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_sdk.kit.skills.files import SkillFiles as SkillFiles
    from amplifier_sdk.kit.skills.finding import BrokenSkill as BrokenSkill
    from amplifier_sdk.kit.skills.finding import Found as Found
    from amplifier_sdk.kit.skills.finding import Skill as Skill
    from amplifier_sdk.kit.skills.finding import SkillFolder as SkillFolder
    from amplifier_sdk.kit.skills.finding import find_skills as find_skills
    from amplifier_sdk.kit.skills.head import SkillError as SkillError
    from amplifier_sdk.kit.skills.head import SkillHead as SkillHead
    from amplifier_sdk.kit.skills.head import SkillText as SkillText
    from amplifier_sdk.kit.skills.head import parse_skill as parse_skill
    from amplifier_sdk.kit.skills.library import ShadowedSkill as ShadowedSkill
    from amplifier_sdk.kit.skills.library import SkillLibrary as SkillLibrary
    from amplifier_sdk.kit.skills.library import gather as gather
    from amplifier_sdk.kit.skills.trusting import ProjectSkills as ProjectSkills
    from amplifier_sdk.kit.skills.trusting import project_skills as project_skills

__all__ = [
    "BrokenSkill",
    "Found",
    "ProjectSkills",
    "ShadowedSkill",
    "Skill",
    "SkillError",
    "SkillFiles",
    "SkillFolder",
    "SkillHead",
    "SkillLibrary",
    "SkillText",
    "find_skills",
    "gather",
    "parse_skill",
    "project_skills",
]

_HOME = {
    "BrokenSkill": "finding",
    "Found": "finding",
    "ProjectSkills": "trusting",
    "ShadowedSkill": "library",
    "Skill": "finding",
    "SkillError": "head",
    "SkillFiles": "files",
    "SkillFolder": "finding",
    "SkillHead": "head",
    "SkillLibrary": "library",
    "SkillText": "head",
    "find_skills": "finding",
    "gather": "library",
    "parse_skill": "head",
    "project_skills": "trusting",
}

if not TYPE_CHECKING:  # hidden from type checkers, which would accept any name otherwise
    __getattr__ = load_from(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
