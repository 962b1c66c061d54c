"""Skills that a project brings along: they give no orders before a person trusted them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.trust import PROJECT_FILES, TrustDecision, TrustStore
from amplifier_module_tool_skills.skill_folders.finder import SkillFolder

__all__ = ["ProjectSkills", "project_skills"]

_KIND: Final = "skills"


@attrs.frozen(kw_only=True)
class ProjectSkills:
    """A project's folder of skills as it was evaluated; `store.grant(decision)` trusts it."""

    folder: SkillFolder
    decision: TrustDecision


def project_skills(project: Path, name: str, store: TrustStore) -> ProjectSkills:
    """Evaluate a project's folder of skills; exactly the evaluated files are used afterwards.

    The usual folders are trusted together, as the kind `skills`; any other one is trusted by itself, as the kind
    `skills:NAME`.

    Args:
        project: the project's folder.
        name: the folder of skills, relative to it, such as `.amplifier/skills`.
        store: what the person trusted.
    """
    usual = PROJECT_FILES[_KIND]
    # Together, since a person thinks of "the skills of this project" as one thing.
    if name in usual:
        kind, items = (_KIND, usual)
    else:
        kind, items = (f"{_KIND}:{name}", (name,))
    decision = store.require(project, kind, items)
    below = f"{name}/"
    contents = {
        found.removeprefix(below): data
        for found, data in decision.contents.items()
        if found.startswith(below)
    }
    path = Path(decision.folder) / name
    # with the contents that were evaluated: the files may have changed since
    folder = SkillFolder(
        path=path, source="project", is_trusted=decision.trusted, contents=contents
    )
    return ProjectSkills(folder=folder, decision=decision)
