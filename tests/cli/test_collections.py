"""Collections and module sources at the command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.app.projects import write
from tests.app.repositories import TOOL_FILES, commit, own_git  # noqa: F401  # a fixture of the tests here
from tests.cli.person import answer, person  # noqa: F401  # likewise
from tests.cli.programs import call


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """A folder with a collection that brings a module."""
    folder = tmp_path / "acme"
    write(
        folder / "pyproject.toml",
        '[project]\nname = "acme"\nversion = "1.0"\ndescription = "Of Acme \\u007f."\n'
        '[tool.amplifier.collection]\nrequires = ["foundation>=1"]\n',
    )
    write(folder / "profiles/a.md", "---\nprofile: {name: a}\n---\nHello.\n")
    write(folder / "context/notes.md", "# Notes\n")
    for name, text in TOOL_FILES.items():
        write(folder / "modules/tool-acme" / name, text)
    return folder


@pytest.mark.parametrize("verb", ["install", "add"])
def test_collection_installed_listed_shown_verified_and_removed(
    acme: Path, own: Path, verb: str
) -> None:
    assert "installed acme 1.0" in call("collection", verb, str(acme)).stdout
    listed = answer("collection", "list")
    assert isinstance(listed, list)
    assert [(found["name"], found["level"], found["state"]) for found in listed] == [
        ("acme", "user", "sound"),
        ("foundation", "bundled", "bundled"),
    ]
    assert "acme" in call("collection", "list").stdout
    shown = call("collection", "show", "acme").stdout
    assert "Of Acme \\x7f." in shown
    for line in (
        "profiles/a.md",
        "context/notes.md",
        "modules/tool-acme/pyproject.toml",
        "requires: foundation >=1",
    ):
        assert line in shown
    assert call("collection", "verify").stdout == "sound: acme\n"
    call("collection", "remove", "acme")
    assert not (own / "collections/acme").exists()
    assert "No collection is installed" in call("collection", "verify").stderr
    assert "No collection is installed" in call("collection", "update").stderr


def test_a_changed_collection_ends_verify_with_one(acme: Path, own: Path) -> None:
    installed = answer("collection", "install", str(acme))
    assert isinstance(installed, list)
    assert [sorted(change) for change in installed] == [
        ["after", "before", "changed", "name", "path", "source", "version"]
    ]
    write(own / "collections/acme/profiles/a.md", "evil")

    output = call("collection", "verify", expect=1).stdout
    assert output.startswith("changed: acme (the files in ")
    assert "'amplifier collection accept acme' keeps it as it is" in output
    verdicts = answer("collection", "verify", "acme", expect=1)
    assert isinstance(verdicts, list)
    assert [sorted(verdict) for verdict in verdicts] == [
        ["name", "path", "reason", "state"]
    ]
    assert call("collection", "update", "--dry-run").stdout == "would change acme\n"
    restored = call("collection", "update", "acme")
    assert restored.stdout == "restored acme\n"
    assert restored.stderr == "  its files here are not the ones that were installed\n"
    assert call("collection", "verify").stdout == "sound: acme\n"


def test_a_collection_that_was_edited_is_accepted(acme: Path, own: Path) -> None:
    call("collection", "install", str(acme))
    assert "nothing to accept" in call("collection", "accept", "acme", expect=1).stderr
    write(
        own / "collections/acme/profiles/a.md", "---\nprofile: {name: a}\n---\nMine.\n"
    )
    assert (
        "amplifier collection accept acme"
        in call("profile", "show", "acme:a", expect=1).stderr
    )
    output = call("collection", "accept", "acme").stderr
    assert "acme is your own now" in output
    assert f"'amplifier collection install {acme} --force'" in output
    assert call("collection", "verify").stdout.startswith("own: acme")
    call("collection", "update")
    assert "Mine." in (own / "collections/acme/profiles/a.md").read_text()


def test_an_update_says_what_changes(acme: Path) -> None:
    call("collection", "install", str(acme))
    write(acme / "context/notes.md", "# More\n")

    assert call("collection", "update", "--dry-run").stdout == "would change acme\n"
    assert call("collection", "update").stdout == "updated acme\n"
    assert call("collection", "update").stdout == "unchanged acme\n"
    assert answer("collection", "update")[0]["changed"] is False  # type: ignore[index]  # a list


def test_a_project_s_collection(acme: Path) -> None:
    call("collection", "install", str(acme), "--scope", "project")

    assert Path(".amplifier/collections/acme/pyproject.toml").is_file()
    assert call("collection", "verify", "--scope", "project").stdout == "sound: acme\n"
    assert "project" in call("collection", "list").stdout


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("collection", "install", "nowhere"), "no such collection"),
        (
            ("collection", "install", "git+https://me:s3cret@git.example/x"),
            "it holds credentials",
        ),
        (
            ("collection", "install", "git+https://git.example/x", "--offline"),
            "working offline",
        ),
        (("collection", "show", "foundatio"), "did you mean 'foundation'"),
        (("collection", "remove", "foundation"), "no such collection is installed"),
        (("module", "add", "tool-x", "--source", "git+ext::sh"), "git is asked by"),
        (
            (
                "module",
                "add",
                "tool-x",
                "--source",
                "git+https://git.example/x",
                "--offline",
            ),
            "working offline",
        ),
        (("module", "remove", "tool-x"), "no settings name it"),
        (("module", "update", "tool-x"), "no layer names a source"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_an_error_is_one_line_with_a_reason(
    arguments: tuple[str, ...], reported: str
) -> None:
    stderr = call(*arguments, expect=1).stderr

    assert reported in stderr
    assert "s3cret" not in stderr
    assert len(stderr.splitlines()) == 1


# -- modules


@pytest.mark.process
def test_a_module_is_added_traced_updated_and_removed(
    tmp_path: Path, own: Path
) -> None:
    first = commit(tmp_path / "tool", TOOL_FILES)
    source = f"git+file://{tmp_path / 'tool'}@main"
    assert "No source is pinned" in call("module", "update").stderr
    done = call("module", "add", "tool-acme", "--source", source)
    assert done.stdout == f"added tool-acme (tool) to {own / 'settings.yaml'}\n"
    assert "acme-core-that-nobody-has" in done.stderr

    why = call("module", "why", "tool-acme").stdout.splitlines()
    assert [line.split()[0] for line in why if line.startswith("*")] == ["*"]
    assert next(line for line in why if line.startswith("*")).split()[1:3] == [
        "settings",
        "(user)",
    ]
    traced = answer("module", "why", "tool-acme")
    assert isinstance(traced, dict)
    assert [layer["layer"] for layer in traced["layers"] if layer["used"]] == [
        "settings (user)"
    ]
    assert answer("module", "show", "tool-acme")["commit"] == first  # type: ignore[index]  # an object
    assert f"commit: {first}" in call("module", "show", "tool-acme").stdout

    second = commit(tmp_path / "tool", {"README.md": "two"})
    looked = call("module", "update", "--dry-run")
    assert looked.stdout == f"would change {source}\n"
    assert f"  {first} sha256:" in looked.stderr
    assert f"  -> {second} sha256:" in looked.stderr
    assert (
        "nothing was changed" in call("module", "update", expect=1, input="n\n").stderr
    )
    call("module", "update", expect=1, input="")
    assert answer("module", "show", "tool-acme")["commit"] == first  # type: ignore[index]  # an object
    changes = answer("module", "update", "tool-acme", "--yes")
    assert isinstance(changes, list)
    (updated,) = changes
    assert sorted(updated) == [
        "after",
        "before",
        "changed",
        "hash_after",
        "hash_before",
        "source",
    ]
    assert (
        updated["source"],
        updated["before"],
        updated["after"],
        updated["changed"],
    ) == (source, first, second, True)
    assert updated["hash_before"] != updated["hash_after"]
    assert call("module", "update").stdout == f"unchanged {source}\n"
    call("module", "remove", "tool-acme")
    assert (
        "cannot be used: no layer has it"
        in call("module", "why", "tool-acme", expect=1).stderr
    )
    assert (
        answer("module", "add", "tool-acme", "--source", source, "--scope", "local")[
            "commit"
        ]  # type: ignore[index]  # an object
        == second
    )


def test_a_module_of_a_collection_is_shown(acme: Path) -> None:
    call("collection", "install", str(acme))

    assert "collections" in call("module", "show", "tool-acme").stdout


def test_a_refused_source_is_shown_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMPLIFIER_MODULE_TOOL_ACME", "git+http://git.example/x")

    assert (
        "cannot be used: refused" in call("module", "why", "tool-acme", expect=1).stderr
    )


@pytest.mark.process
def test_a_package_is_installed_only_with_consent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    write(tmp_path / "bin/uv", f'#!/bin/sh\necho "$@" > "{ran}"\nexit 4\n').chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    add = ("module", "add", "tool-x", "--source", "acme-nowhere")

    output = call(*add, expect=1, input="n\n").stderr
    assert "pip install --python" in output
    assert "nothing was changed" in output
    assert not ran.exists()
    call(*add, expect=1, input="")
    assert not ran.exists()
    assert "uv ended with 4" in call(*add, "--yes", expect=1).stderr
    assert ran.exists()
