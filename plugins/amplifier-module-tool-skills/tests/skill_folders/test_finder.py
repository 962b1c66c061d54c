"""Skills in folders, on the disk and among files that were judged; and the files of a skill."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from amplifier_module_tool_skills.skill_folders import (
    BrokenSkill,
    FoundSkills,
    Skill,
    SkillFolder,
    find_skills,
    finder,
)
from amplifier_sdk.errors import ToolError

TEXT = "---\nname: {name}\ndescription: Does {name}.\n---\nDo it.\n"


def write(folder: Path, name: str, text: str = TEXT) -> Path:
    path = folder / name
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text(text.replace("{name}", Path(name).name))
    return path


def found(folder: Path) -> FoundSkills:
    return find_skills(SkillFolder(path=folder, source="person"))


def names(folder: Path) -> list[str]:
    return [skill.name for skill in found(folder).skills]


def only(folder: Path) -> Skill:
    (skill,) = found(folder).skills
    return skill


def test_skills_are_found_below_folder_in_order_of_their_paths(
    tmp_path: Path,
) -> None:
    for name in (
        "tides",
        "group/maps",
        "group/deeper/stars",
        "a/b/c/d/e/too-deep",
        ".git/hidden",
        "node_modules/x",
    ):
        write(tmp_path, name)
    (tmp_path / "README.md").write_text("No skill.")

    assert names(tmp_path) == ["stars", "maps", "tides"]


def test_a_skill_knows_its_folder_and_source(tmp_path: Path) -> None:
    write(tmp_path, "tides")

    skill = find_skills(
        SkillFolder(path=tmp_path, source="plugin:x", is_trusted=False)
    ).skills[0]

    assert (skill.folder, skill.source, skill.is_trusted) == (
        tmp_path / "tides",
        "plugin:x",
        False,
    )


def test_folder_may_be_one_skill_and_is_not_searched(
    tmp_path: Path,
) -> None:
    write(tmp_path, "tides")
    write(tmp_path, "tides/examples/other")

    assert names(tmp_path / "tides") == names(tmp_path) == ["tides"]


def test_a_folder_that_does_not_exist_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert found(tmp_path / "nowhere") == found(tmp_path / "file") == FoundSkills()


def test_a_broken_skill_is_named_and_stops_no_other(tmp_path: Path) -> None:
    write(tmp_path, "tides")
    for name, data in {
        "a": b"no front matter",
        "b": b"---\nname: b\ndescription: \xff\n---\n",
        "c": b"x" * (finder.MAX_SKILL_BYTES + 1),
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_bytes(data)
    (tmp_path / "d" / "SKILL.md").mkdir(parents=True)
    os.mkfifo(write(tmp_path, "e", "") / "x")
    (tmp_path / "e" / "SKILL.md").unlink()
    os.mkfifo(tmp_path / "e" / "SKILL.md")

    result = found(tmp_path)

    assert [skill.name for skill in result.skills] == ["tides"]
    assert [Path(broken.place).name for broken in result.broken] == [
        "a",
        "b",
        "c",
        "d",
        "e",
    ]
    for broken, problem in zip(
        result.broken,
        ["front matter", "UTF-8 at byte", "more than", "directory", "regular file"],
        strict=True,
    ):
        assert problem in broken.problem.replace("Is a directory", "directory")


def test_a_folder_that_cannot_be_listed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> object:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(
        "amplifier_module_tool_skills.skill_folders.finder.os.scandir", refuse
    )

    assert found(tmp_path).broken == (
        BrokenSkill(
            place=str(tmp_path), problem="it cannot be listed: Permission denied"
        ),
    )


def test_the_search_ends_at_a_number_of_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder, "_MAX_FOLDERS", 3)
    for name in "abcdef":
        write(tmp_path, name)

    result = found(tmp_path)

    assert [skill.name for skill in result.skills] == ["a", "b"]
    assert [broken.problem for broken in result.broken] == [
        "it holds more than 3 folders; the others are not searched"
    ]


@pytest.mark.parametrize("evaluated", [False, True], ids=["disk", "judged"])
def test_a_search_that_takes_too_long_ends_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluated: bool
) -> None:
    write(tmp_path, "tides")
    contents = (
        {"tides/SKILL.md": TEXT.replace("{name}", "tides").encode()}
        if evaluated
        else None
    )
    monkeypatch.setattr(finder, "_TIMEOUT", 0)

    result = find_skills(SkillFolder(path=tmp_path, source="person", contents=contents))

    assert result.skills == ()
    assert [broken.problem for broken in result.broken] == [
        "the search took longer than 0 s; the other skills are not read"
    ]


def test_a_thousand_skills_are_found(tmp_path: Path) -> None:
    for number in range(1000):
        write(tmp_path, f"skill-{number}")

    assert len(names(tmp_path)) == 1000


def test_link_in_folder_leads_to_skill_and_to_nothing_else(
    tmp_path: Path,
) -> None:
    mine, elsewhere = tmp_path / "mine", tmp_path / "elsewhere"
    write(elsewhere, "tides")
    write(elsewhere, "group/maps")
    (mine / "deep").mkdir(parents=True)
    (mine / "tides").symlink_to(elsewhere / "tides")
    (mine / "again").symlink_to(elsewhere / "tides")
    (mine / "all").symlink_to(elsewhere)
    (mine / "loop").symlink_to(mine)
    (mine / "deep" / "tides").symlink_to(elsewhere / "tides")

    assert names(mine) == ["tides"]


def test_a_main_file_that_is_a_link_is_broken(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("---\nname: x\ndescription: the secret\n---\n")
    (tmp_path / "skills" / "x").mkdir(parents=True)
    (tmp_path / "skills" / "x" / "SKILL.md").symlink_to(tmp_path / "secret")

    result = found(tmp_path / "skills")

    assert result.skills == ()
    assert result.broken[0].problem == "SKILL.md is a link; put the file itself there"


def test_the_files_of_a_skill_are_named_and_read(tmp_path: Path) -> None:
    folder = write(tmp_path, "tides")
    (folder / "references").mkdir()
    (folder / "references" / "api.md").write_text("The API.")
    (folder / "run.py").write_text("print()")
    for hidden in (".git", "__pycache__"):
        (folder / hidden).mkdir()
        (folder / hidden / "x").write_text("")
    (folder / "out").symlink_to("/etc")

    files = only(tmp_path).files

    assert files.names() == ("references/api.md", "run.py")
    assert files.read("references/api.md", 100) == b"The API."
    with pytest.raises(ToolError, match="more than 3 bytes"):
        files.read("run.py", 3)


def test_the_files_of_a_folder_that_became_a_link_are_none(tmp_path: Path) -> None:
    folder = write(tmp_path / "skills", "tides")
    (tmp_path / "secret.txt").write_text("secret")
    files = only(tmp_path / "skills").files
    (folder / "SKILL.md").unlink()
    folder.rmdir()
    folder.symlink_to(tmp_path)

    assert files.names() == ()
    with pytest.raises(ToolError, match="became a link"):
        files.read("secret.txt", 100)


def test_so_many_files_are_named_as_anybody_reads(tmp_path: Path) -> None:
    folder = write(tmp_path, "tides")
    for number in range(600):
        (folder / f"{number:03}").write_text("")

    assert len(only(tmp_path).files.names()) == 500


def test_the_files_of_a_folder_that_is_gone_are_none(tmp_path: Path) -> None:
    folder = write(tmp_path, "tides")
    files = only(tmp_path).files
    (folder / "SKILL.md").unlink()
    folder.rmdir()

    assert files.names() == ()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("../maps/SKILL.md", id="up"),
        pytest.param("/etc/passwd", id="absolute"),
        pytest.param("~/.ssh/id_rsa", id="home"),
        pytest.param("out/passwd", id="linked-folder"),
        pytest.param("link", id="link"),
        pytest.param(".env", id="secret"),
        pytest.param("keys/id_rsa", id="secret-below"),
        pytest.param("", id="empty"),
        pytest.param("a\0b", id="nul"),
        pytest.param("nowhere", id="missing"),
    ],
)
def test_no_name_leads_out_of_a_skill_or_to_a_secret(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path, "tides")
    write(tmp_path, "maps")
    (folder / "out").symlink_to("/etc")
    (folder / "link").symlink_to(tmp_path / "maps" / "SKILL.md")
    (folder / ".env").write_text("KEY=1")
    (folder / "keys").mkdir()
    (folder / "keys" / "id_rsa").write_text("secret")

    skill = next(skill for skill in found(tmp_path).skills if skill.name == "tides")

    with pytest.raises(ToolError):
        skill.files.read(name, 1000)


class TestJudgedFiles:
    CONTENTS: Final = {
        "tides/SKILL.md": TEXT.replace("{name}", "tides").encode(),
        "tides/references/api.md": b"The API.",
        "tides/examples/inner/SKILL.md": TEXT.replace("{name}", "inner").encode(),
        "group/maps/SKILL.md": TEXT.replace("{name}", "maps").encode(),
        "broken/SKILL.md": b"nothing",
        "README.md": b"no skill",
        "node_modules/x/SKILL.md": TEXT.replace("{name}", "x").encode(),
        "a/b/c/d/e/SKILL.md": TEXT.replace("{name}", "e").encode(),
    }

    def found(self, contents: dict[str, bytes]) -> FoundSkills:
        return find_skills(
            SkillFolder(path=Path("/p/skills"), source="project", contents=contents)
        )

    def test_skills_are_found_among_them(self) -> None:
        result = self.found(self.CONTENTS)

        assert [(skill.name, str(skill.folder)) for skill in result.skills] == [
            ("maps", "/p/skills/group/maps"),
            ("tides", "/p/skills/tides"),
        ]
        assert [broken.place for broken in result.broken] == ["/p/skills/broken"]

    def test_they_may_be_one_skill(self) -> None:
        result = self.found({"SKILL.md": self.CONTENTS["tides/SKILL.md"]})

        assert [skill.name for skill in result.skills] == ["tides"]

    def test_they_are_read_as_they_were_judged(self) -> None:
        files = self.found(self.CONTENTS).skills[1].files

        assert files.names() == ("examples/inner/SKILL.md", "references/api.md")
        assert files.read("./references//api.md", 100) == b"The API."
        with pytest.raises(ToolError, match="more than 3 bytes"):
            files.read("references/api.md", 3)

    @pytest.mark.parametrize(
        "name",
        [
            pytest.param("../maps/SKILL.md", id="up"),
            pytest.param("/etc/passwd", id="absolute"),
            pytest.param("references", id="folder"),
            pytest.param("", id="empty"),
            pytest.param("reference/api.md", id="missing"),
        ],
    )
    def test_no_name_leads_to_another_file(self, name: str) -> None:
        files = self.found(self.CONTENTS).skills[1].files

        with pytest.raises(ToolError, match="the skill has no file"):
            files.read(name, 1000)
