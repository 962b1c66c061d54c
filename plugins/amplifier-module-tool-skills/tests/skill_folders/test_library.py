"""The skills of several folders, and those that a project brings along."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier_kit.files.private import PrivateFile
from amplifier_kit.trust import TrustStore
from amplifier_module_tool_skills.skill_folders import (
    SkillFolder,
    gather,
    project_skills,
)

TEXT = "---\nname: tides\ndescription: {}\n---\n"


def write(path: Path, text: str) -> Path:
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text(text)
    return path


def test_the_skill_of_the_earlier_folder_counts(tmp_path: Path) -> None:
    first = write(tmp_path / "first" / "tides", TEXT.format("First."))
    second = write(tmp_path / "second" / "tides", TEXT.format("Second."))
    write(tmp_path / "second" / "maps", TEXT.format("Maps.").replace("tides", "maps"))
    write(tmp_path / "second" / "broken", "")

    library = gather(
        [
            SkillFolder(path=tmp_path / name, source=name)
            for name in ("first", "second", "first")
        ]
    )

    assert list(library.skills) == ["maps", "tides"]
    assert library.skills["tides"].folder == first
    assert [
        (shadowed.skill.folder, shadowed.by.folder) for shadowed in library.shadowed
    ] == [(second, first)]
    assert len(library.broken) == 1


@pytest.mark.parametrize("with_untrusted", [False, True])
def test_unvouched_skill_replaces_and_blocks_none(
    tmp_path: Path, with_untrusted: bool
) -> None:
    theirs = write(tmp_path / "theirs" / "tides", TEXT.format("Theirs."))
    mine = write(tmp_path / "mine" / "tides", TEXT.format("Mine."))
    write(tmp_path / "theirs" / "broken", "")
    untrusted = SkillFolder(
        path=tmp_path / "theirs", source="project", is_trusted=False
    )
    trusted = SkillFolder(path=tmp_path / "mine", source="person")

    library = gather([untrusted, trusted], with_untrusted=with_untrusted)
    assert (library.skills, library.shadowed) == ({}, ())
    assert library.refused["tides"].folder == theirs
    assert len(library.broken) == with_untrusted
    library = gather([trusted, untrusted], with_untrusted=with_untrusted)
    assert library.skills["tides"].folder == mine
    assert library.refused == {}


@pytest.mark.parametrize("with_untrusted", [False, True])
def test_name_of_untrusted_skill_alone_is_refused(
    tmp_path: Path, with_untrusted: bool
) -> None:
    write(tmp_path / "tides", TEXT.format("Theirs."))
    folder = SkillFolder(path=tmp_path, source="project", is_trusted=False)

    library = gather([folder], with_untrusted=with_untrusted)

    assert list(library.skills) == ["tides"] * with_untrusted
    assert list(library.refused) == ["tides"] * (not with_untrusted)


class TestProject:
    def evaluated(self, tmp_path: Path, name: str) -> tuple[bool, int]:
        store = TrustStore(PrivateFile(tmp_path / "home" / "trust.json"))
        evaluated = project_skills(tmp_path / "project", name, store)
        assert evaluated.folder.is_trusted == evaluated.decision.trusted
        return evaluated.decision.trusted, len(gather([evaluated.folder]).skills)

    def grant(self, tmp_path: Path, name: str) -> None:
        store = TrustStore(PrivateFile(tmp_path / "home" / "trust.json"))
        store.grant(project_skills(tmp_path / "project", name, store).decision)

    def test_its_skills_are_trusted_by_their_content(self, tmp_path: Path) -> None:
        folder = write(
            tmp_path / "project" / ".amplifier" / "skills" / "tides",
            TEXT.format("Tides."),
        )

        assert self.evaluated(tmp_path, ".amplifier/skills") == (False, 1)
        self.grant(tmp_path, ".amplifier/skills")
        assert self.evaluated(tmp_path, ".amplifier/skills") == (True, 1)
        (folder / "run.sh").write_text("curl evil")
        assert self.evaluated(tmp_path, ".amplifier/skills") == (False, 1)

    def test_usual_folders_trusted_together_and_any_other_by_itself(
        self, tmp_path: Path
    ) -> None:
        for name in (".amplifier/skills", ".claude/skills", "tools"):
            write(tmp_path / "project" / name / "tides", TEXT.format("Tides."))

        self.grant(tmp_path, ".claude/skills")

        assert self.evaluated(tmp_path, ".amplifier/skills") == (True, 1)
        assert self.evaluated(tmp_path, "tools") == (False, 1)
        self.grant(tmp_path, "tools")
        assert self.evaluated(tmp_path, "tools") == (True, 1)

    def test_what_cannot_be_judged_is_not_looked_at(self, tmp_path: Path) -> None:
        outside = write(tmp_path / "outside" / "tides", TEXT.format("Tides."))
        (tmp_path / "project" / ".amplifier").mkdir(parents=True)
        (tmp_path / "project" / ".amplifier" / "skills").symlink_to(outside.parent)

        assert self.evaluated(tmp_path, ".amplifier/skills") == (False, 0)
        assert self.evaluated(tmp_path, "../outside") == (False, 0)

    def test_what_does_not_exist_needs_no_trust(self, tmp_path: Path) -> None:
        (tmp_path / "project").mkdir()

        assert self.evaluated(tmp_path, ".amplifier/skills") == (True, 0)
