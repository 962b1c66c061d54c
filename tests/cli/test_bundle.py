"""Bundles at the command line: listed, shown, checked, chosen, added, removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.installing import install_ours
from tests.app.repositories import commit, own_git  # noqa: F401  # a fixture of the tests here
from tests.cli.programs import call

BUNDLE = """\
---
bundle: {name: crate, version: "3", description: For trials.}
session: {orchestrator: loop-basic, context: context-simple}
providers: [{module: provider-scripted, config: {responses: ["from the crate"]}}]
---
You try.
"""


@pytest.fixture(autouse=True)
def own(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's own folder, with a bundle; the working directory is an empty project."""
    install_ours(
        site, "loop-basic", "context-simple", "provider-scripted", "provider-local"
    )
    project = tmp_path / "shop"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    (tmp_path / "own/bundles").mkdir(parents=True)
    (tmp_path / "own/bundles/crate.md").write_text(BUNDLE)
    return tmp_path / "own"


def test_a_bundle_is_listed_chosen_and_left(own: Path) -> None:
    assert "No bundle is active" in call("bundle", "current").stderr
    assert "no bundle is active" in call("bundle", "show", expect=1).stderr
    call("bundle", "use", "crate")
    assert call("bundle", "current").stdout == "crate\n"
    assert call("bundle", "list").stdout.splitlines()[1].split()[:3] == [
        "*",
        "crate",
        "user",
    ]
    assert json.loads(call("bundle", "list", "--json").stdout) == [
        {
            "name": "crate",
            "active": True,
            "every_session": False,
            "level": "user",
            "trusted": True,
            "path": str(own / "bundles/crate.md"),
            "source": None,
        }
    ]
    assert call("run", "hello", "--no-keep").stdout == "from the crate\n"
    call("bundle", "reset")
    assert "No bundle is active" in call("bundle", "current").stderr
    assert (
        call("run", "hello", "--no-keep", "--bundle", "crate").stdout
        == "from the crate\n"
    )
    call("run", "hello", "--bundle", "crate", "--profile", "x", expect=2)


def test_a_profile_that_is_chosen_takes_the_place_of_the_bundle(own: Path) -> None:
    (own / "profiles").mkdir()
    (own / "profiles/dev.md").write_text(
        "---\nsession: {orchestrator: loop-basic, context: context-simple}\n---\n"
    )
    call("bundle", "use", "crate")
    assert (
        "No profile is active, but the bundle crate."
        in call("profile", "current").stderr
    )
    call("profile", "use", "dev")
    assert "No bundle is active" in call("bundle", "current").stderr
    assert call("profile", "current").stdout == "dev\n"


def test_where_another_scope_wins_it_is_told(own: Path) -> None:
    call("config", "set", "profile.active", "none", "--scope", "project")
    assert (
        "another choice wins"
        in call("bundle", "use", str(own / "bundles/crate.md")).stderr
    )


def test_a_bundle_is_shown_and_checked() -> None:
    shown = call("bundle", "show", "crate").stdout
    assert shown.startswith("bundle:crate 3\nFor trials.\nchain: bundle:crate\n")
    assert (
        json.loads(call("bundle", "show", "crate", "--json").stdout)["name"]
        == "bundle:crate"
    )
    assert "No problem" in call("bundle", "validate", "crate").stderr
    Path("odd.yaml").write_text("bundle: {nam: x}\n")
    output = call("bundle", "validate", "./odd.yaml", expect=1).stdout
    assert "line 1, bundle.nam: unknown; did you mean 'name'?" in output


def test_a_bundle_is_added_and_removed(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/bundle.yaml").write_text("tools: [tool-trials]\n")
    added = call("bundle", "add", "../lib", "--app")
    assert added.stdout == "lib\n"
    assert "added to every session" in added.stderr
    row = call("bundle", "list").stdout.splitlines()[2]
    assert row.split(maxsplit=3) == ["+", "lib", "added", str(tmp_path / "lib")]
    listed = call("tool", "list").stdout
    assert "speak" in listed
    assert "removed from" in call("bundle", "remove", "lib").stderr
    assert "No bundle lib was added" in call("bundle", "remove", "lib", expect=1).stderr
    call("bundle", "add", "../lib", "--name", "other", "--scope", "project")
    assert "other" in call("bundle", "list").stdout


@pytest.mark.process
def test_repository_bundle_updates_after_agreement(
    tmp_path: Path,
) -> None:
    first = commit(tmp_path / "lib", {"bundle.yaml": "tools: [tool-trials]\n"})
    source = f"git+file://{tmp_path / 'lib'}@main"
    assert call("bundle", "update").stderr == "No source is pinned.\n"
    call("bundle", "add", source, "--name", "lib")
    assert call("bundle", "update").stdout == f"unchanged {source}\n"

    second = commit(tmp_path / "lib", {"bundle.yaml": "hooks: [hooks-tells]\n"})
    looked = call("bundle", "update", "lib", "--dry-run")
    assert looked.stdout == f"would change {source}\n"
    assert f"-> {second} sha256:" in looked.stderr
    refused = call("bundle", "update", input="n\n", expect=1).stderr
    assert f"{first} sha256:" in refused
    assert "nothing was changed" in refused
    assert "tool-trials" in call("bundle", "show", "lib").stdout
    assert call("bundle", "update", input="y\n").stdout == f"updated {source}\n"
    assert "hooks-tells" in call("bundle", "show", "lib").stdout


def test_no_bundle_is_told(own: Path) -> None:
    (own / "bundles/crate.md").unlink()
    assert "There is no bundle" in call("bundle", "list").stderr
