"""`amplifier profile new`, `edit` and `remove`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.programs import call


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A person's own folder, and a project in which they work."""
    home, shop = tmp_path / "own", tmp_path / "shop"
    (shop / ".git").mkdir(parents=True)
    monkeypatch.setenv("AMPLIFIER_HOME", str(home))
    monkeypatch.chdir(shop)
    return home, shop


def _editor(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    monkeypatch.setattr("click.edit", lambda *_, **__: text)


@pytest.mark.parametrize("scope", ["user", "project"])
def test_a_new_profile_is_sound_and_can_be_used(
    folders: tuple[Path, Path], scope: str
) -> None:
    home, shop = folders
    folder = home if scope == "user" else shop / ".amplifier"

    made = call("profile", "new", "sailor", "--scope", scope, "--description", "a: b")

    assert made.stdout == f"{folder / 'profiles' / 'sailor.md'}\n"
    assert "a: b" in call("profile", "list").stdout
    call("profile", "validate", "sailor")
    call("profile", "use", "sailor")
    assert call("profile", "current").stdout == "sailor\n"


def test_a_profile_is_not_written_over(folders: tuple[Path, Path]) -> None:
    call("profile", "new", "sailor")

    output = call("profile", "new", "sailor", expect=1).stderr

    assert "'amplifier profile edit sailor' changes it" in output


@pytest.mark.parametrize("name", ["../x", "a b", "", ".", "x/y", "-x"])
def test_a_name_that_is_no_file_is_refused(
    folders: tuple[Path, Path], name: str
) -> None:
    output = call("profile", "new", "--", name, expect=1).stderr

    assert "is no name for a profile of your own" in output


def test_a_base_that_is_missing_is_refused(folders: tuple[Path, Path]) -> None:
    home, _ = folders

    call("profile", "new", "sailor", "--extends", "nothing", expect=1)

    assert not (home / "profiles").exists()


def test_a_profile_is_edited_when_it_is_sound(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _ = folders
    call("profile", "new", "sailor")
    file = home / "profiles" / "sailor.md"
    before = file.read_text("utf-8")

    _editor(monkeypatch, None)
    assert "Nothing was changed." in call("profile", "edit", "sailor").stderr
    _editor(monkeypatch, before.replace("profile:", "profil:"))
    assert "profil" in call("profile", "edit", "sailor", expect=1).stderr
    assert file.read_text("utf-8") == before
    _editor(monkeypatch, before + "Sail.\n")
    call("profile", "edit", "sailor")

    assert file.read_text("utf-8").endswith("Sail.\n")


def test_a_collections_profile_is_not_edited(folders: tuple[Path, Path]) -> None:
    output = call("profile", "edit", "nobody", expect=1).stderr

    assert "there is no" in output


def test_a_profile_is_removed_after_asking(folders: tuple[Path, Path]) -> None:
    home, _ = folders
    call("profile", "new", "sailor")

    call("profile", "remove", "sailor", input="n\n", expect=1)
    assert (home / "profiles" / "sailor.md").exists()
    call("profile", "remove", "sailor", input="y\n")

    assert not (home / "profiles" / "sailor.md").exists()


def test_the_active_profile_is_not_removed(folders: tuple[Path, Path]) -> None:
    call("profile", "new", "sailor")
    call("profile", "use", "sailor")

    output = call("profile", "remove", "sailor", "--yes", expect=1).stderr

    assert "new sessions are made of it" in output


def test_what_others_wrote_in_a_project_is_not_changed(
    folders: tuple[Path, Path],
) -> None:
    _, shop = folders
    theirs = shop / ".amplifier" / "profiles" / "theirs.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("---\nprofile: {name: theirs}\n---\n")

    output = call("profile", "new", "sailor", "--scope", "project", expect=1).stderr

    assert "amplifier trust" in output
    assert not (theirs.parent / "sailor.md").exists()
