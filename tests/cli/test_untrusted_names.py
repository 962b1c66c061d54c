"""A name that an untrusted folder claims is nobody else's: it is an error that says how to trust it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.projects.files import ProjectFiles
from tests.app.projects import write
from tests.cli.programs import call

PROFILE = "---\nprofile:\n  name: dev\n  description: Theirs.\n---\nBe theirs.\n"
AGENT = "---\nmeta:\n  name: explorer\n  description: Theirs.\n---\nBe theirs.\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AMPLIFIER_HOME", str(tmp_path / "home"))
    (tmp_path / "project" / ".amplifier").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def trust(kind: str) -> None:
    project = ProjectFiles(AppDirs.find())
    decision = project.evaluate(kind)
    assert decision is not None
    project.store.grant(decision)


def refuses(*words: str, place: str, expect: int = 1) -> None:
    """Run a command; it fails and says which file has the name, and what helps."""
    result = call(*words, expect=expect)
    text = " ".join(result.output.split())
    assert place in text
    assert "is not trusted" in text
    assert "amplifier trust" in text


@pytest.mark.parametrize(
    "words",
    [
        ("profile", "show", "dev"),
        ("profile", "validate", "dev"),
        ("profile", "use", "dev"),
        ("profile", "diff", "dev", "foundation:base"),
        ("run", "--profile", "dev", "hi"),
        ("tool", "list", "--profile", "dev"),
    ],
    ids=" ".join,
)
def test_a_bundled_profile_does_not_stand_in_for_the_folder_s(
    project: Path, words: tuple[str, ...]
) -> None:
    write(project / ".amplifier/profiles/dev.md", PROFILE)

    refuses(*words, place=".amplifier/profiles/dev.md")
    assert "Theirs" not in call("profile", "show", "foundation:dev").stdout
    trust("profiles")
    assert "Theirs" in call("profile", "show", "dev").stdout


def test_a_profile_of_the_persons_own_gives_way_as_well(
    project: Path, tmp_path: Path
) -> None:
    write(tmp_path / "home/profiles/mine.md", PROFILE)
    write(project / ".amplifier/profiles/mine.md", PROFILE)

    refuses("profile", "show", "mine", place=".amplifier/profiles/mine.md")


def test_the_list_marks_what_is_not_trusted(project: Path) -> None:
    write(project / ".amplifier/profiles/dev.md", PROFILE)
    write(
        project / ".amplifier/bundles/theirs.md", "---\nbundle:\n  name: theirs\n---\n"
    )

    listed = call("profile", "list").stdout
    (dev,) = [line for line in listed.splitlines() if " dev " in f"{line} "]
    assert "project" in dev
    assert "not trusted" in dev
    reported = json.loads(call("profile", "list", "--json").stdout)
    assert [each["trusted"] for each in reported if each["name"] == "dev"] == [False]
    assert "project, not trusted" in call("bundle", "list").stdout


def test_profile_of_untrusted_collection_is_not_found_elsewhere(
    project: Path,
) -> None:
    folder = project / ".amplifier/collections/theirs"
    write(folder / "pyproject.toml", '[project]\nname = "foundation"\n')
    write(folder / "profiles/dev.md", PROFILE)

    refuses("profile", "show", "foundation:dev", place=".amplifier/collections/theirs")
    refuses("profile", "show", "dev", place=".amplifier/collections/theirs")
    refuses("collection", "show", "foundation", place=".amplifier/collections/theirs")


def test_an_untrusted_bundle_is_an_error(project: Path, tmp_path: Path) -> None:
    write(tmp_path / "home/bundles/both.yaml", "bundle: {name: both}\n")
    assert call("bundle", "show", "both").exit_code == 0
    write(project / ".amplifier/bundles/both.yaml", "bundle: {name: both}\n")

    refuses("bundle", "show", "both", place=".amplifier/bundles/both.yaml")
    refuses("run", "--bundle", "both", "hi", place=".amplifier/bundles/both.yaml")


@pytest.mark.parametrize("file", ["explorer.md", "other.md"])
def test_a_bundled_agent_does_not_stand_in_for_the_folder_s(
    project: Path, file: str
) -> None:
    """The name is the one that the agent gives itself, whatever its file is called."""
    write(project / f".amplifier/agents/{file}", AGENT)

    refuses("agent", "show", "explorer", place=f".amplifier/agents/{file}")
    listed = call("agent", "list")
    assert "explorer " not in listed.stdout
    assert "is not trusted" in listed.stderr
    assert call("agent", "show", "planner").exit_code == 0


def test_an_installed_module_does_not_stand_in_for_the_folder_s(project: Path) -> None:
    assert call("module", "why", "tool-todo").exit_code == 0
    write(
        project / ".amplifier/modules/tool-todo/amplifier_module_tool_todo/__init__.py",
        "raise SystemExit\n",
    )

    output = call("module", "why", "tool-todo", expect=1).output
    assert "is not trusted" in output


@pytest.mark.parametrize(
    "folder", ["profiles", "agents", "bundles", "collections", "modules/tool-todo"]
)
def test_an_empty_folder_hides_nothing(project: Path, folder: str) -> None:
    (project / ".amplifier" / folder).mkdir(parents=True)

    assert call("profile", "show", "dev").exit_code == 0
    assert call("agent", "show", "explorer").exit_code == 0
    assert call("module", "why", "tool-todo").exit_code == 0


@pytest.mark.parametrize("untrusted", [False, True])
def test_a_typo_is_a_typo(project: Path, untrusted: bool) -> None:
    (project / ".amplifier/profiles").mkdir()
    if untrusted:
        write(project / ".amplifier/profiles/theirs.md", PROFILE)

    output = call("profile", "show", "foundaton:dev", expect=1).output
    assert "trust" not in output
    output = call("profile", "show", "bsae", expect=1).output
    assert "no such profile" in output
    assert "trust" not in output
    output = call("bundle", "show", "nothing", expect=1).output
    assert "trust" not in output


def test_files_that_cannot_be_read_for_certain_claim_names(
    project: Path, tmp_path: Path
) -> None:
    write(tmp_path / "elsewhere.md", PROFILE)
    (project / ".amplifier/profiles").mkdir()
    (project / ".amplifier/profiles/dev.md").symlink_to(tmp_path / "elsewhere.md")

    refuses("profile", "show", "dev", place=".amplifier/profiles/dev.md")
