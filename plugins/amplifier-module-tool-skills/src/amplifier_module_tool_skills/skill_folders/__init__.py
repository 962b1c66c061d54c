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
    from amplifier_module_tool_skills.skill_folders.files import (
        SkillFiles as SkillFiles,
    )
    from amplifier_module_tool_skills.skill_folders.finder import (
        BrokenSkill as BrokenSkill,
    )
    from amplifier_module_tool_skills.skill_folders.finder import (
        FoundSkills as FoundSkills,
    )
    from amplifier_module_tool_skills.skill_folders.finder import Skill as Skill
    from amplifier_module_tool_skills.skill_folders.finder import (
        SkillFolder as SkillFolder,
    )
    from amplifier_module_tool_skills.skill_folders.finder import (
        find_skills as find_skills,
    )
    from amplifier_module_tool_skills.skill_folders.head import SkillError as SkillError
    from amplifier_module_tool_skills.skill_folders.head import SkillHead as SkillHead
    from amplifier_module_tool_skills.skill_folders.head import SkillText as SkillText
    from amplifier_module_tool_skills.skill_folders.head import (
        parse_skill as parse_skill,
    )
    from amplifier_module_tool_skills.skill_folders.library import (
        ShadowedSkill as ShadowedSkill,
    )
    from amplifier_module_tool_skills.skill_folders.library import (
        SkillLibrary as SkillLibrary,
    )
    from amplifier_module_tool_skills.skill_folders.library import gather as gather
    from amplifier_module_tool_skills.skill_folders.trusted import (
        ProjectSkills as ProjectSkills,
    )
    from amplifier_module_tool_skills.skill_folders.trusted import (
        project_skills as project_skills,
    )

__all__ = [
    "BrokenSkill",
    "FoundSkills",
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
    "BrokenSkill": "finder",
    "FoundSkills": "finder",
    "ProjectSkills": "trusted",
    "ShadowedSkill": "library",
    "Skill": "finder",
    "SkillError": "head",
    "SkillFiles": "files",
    "SkillFolder": "finder",
    "SkillHead": "head",
    "SkillLibrary": "library",
    "SkillText": "head",
    "find_skills": "finder",
    "gather": "library",
    "parse_skill": "head",
    "project_skills": "trusted",
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
