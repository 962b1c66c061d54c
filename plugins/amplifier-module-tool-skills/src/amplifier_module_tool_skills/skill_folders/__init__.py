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
    from amplifier_module_tool_skills.skill_folders.files import SkillFiles
    from amplifier_module_tool_skills.skill_folders.finder import (
        BrokenSkill,
        FoundSkills,
        Skill,
        SkillFolder,
        find_skills,
    )
    from amplifier_module_tool_skills.skill_folders.head import (
        SkillError,
        SkillHead,
        SkillText,
        parse_skill,
    )
    from amplifier_module_tool_skills.skill_folders.library import (
        ShadowedSkill,
        SkillLibrary,
        gather,
    )
    from amplifier_module_tool_skills.skill_folders.trusted import (
        ProjectSkills,
        project_skills,
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
    "files": ("SkillFiles",),
    "finder": ("BrokenSkill", "FoundSkills", "Skill", "SkillFolder", "find_skills"),
    "head": ("SkillError", "SkillHead", "SkillText", "parse_skill"),
    "library": ("ShadowedSkill", "SkillLibrary", "gather"),
    "trusted": ("ProjectSkills", "project_skills"),
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
