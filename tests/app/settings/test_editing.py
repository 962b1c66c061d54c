"""Changing a setting changes nothing else, and never leaves a file that cannot be read."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from amplifier.app.changing import change, edit
from amplifier.app.places import Places
from amplifier.app.settings.editing import change_setting
from amplifier.app.settings.layers import read_layer, value_at
from amplifier.app.settings.settings import load_settings
from amplifier_sdk.errors import AmplifierError, ConfigError
from amplifier_sdk.jsontypes import JSONValue
from tests.app.projects import trust, write


def test_comments_and_the_rest_stay(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("# what I like\nui:\n  show_usage: true   # costs\n  show_tool_lines: false\n")
    change_setting("user", path, ("ui", "show_usage"), value=False)
    assert path.read_text() == "# what I like\nui:\n  show_usage: false  # costs\n  show_tool_lines: false\n"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("profile", "active"), "dev"),
        (("config", "providers", 0), {"module": "provider-openai"}),
        (("overrides", "tool-x", "config", "paths"), ["a", "b"]),
        (("sources", "tool-x"), "./x"),
    ],
)
def test_what_is_missing_on_the_way_is_made(tmp_path: Path, key: tuple[str | int, ...], value: JSONValue) -> None:
    path = tmp_path / "new" / "settings.yaml"
    change_setting("user", path, key, value)
    layer = read_layer("user", path, path.read_bytes())
    assert value_at(layer.values, key) == value
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    change_setting("user", path, key, None)
    assert value_at(read_layer("user", path, path.read_bytes()).values, key) is None


def test_taking_away_what_is_not_there_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("ui: {show_usage: true}\n")
    change_setting("user", path, ("sources", "tool-x"), None)
    change_setting("user", path, ("profile", "active"), None)
    assert read_layer("user", path, path.read_bytes()).values == {"ui": {"show_usage": True}}


@pytest.mark.parametrize(
    ("key", "value"),
    [(("ui", "show_usage"), "maybe"), (("uy",), "x"), (("overrides", "tool-x", "config", "api_key"), "sk-1")],
)
def test_a_change_that_would_not_be_sound_leaves_the_file(
    tmp_path: Path, key: tuple[str | int, ...], value: JSONValue
) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("ui: {show_usage: true}\n")
    with pytest.raises(ConfigError):
        change_setting("user", path, key, value)
    assert path.read_text() == "ui: {show_usage: true}\n"


@pytest.mark.parametrize("key", [("ui", 0), ("config", "providers", "x"), ("config", "providers", 3), ("ui", 0, "x")])
def test_a_key_that_does_not_fit_what_is_there_is_refused(tmp_path: Path, key: tuple[str | int, ...]) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("ui: {show_usage: true}\nconfig: {providers: [{module: a}]}\n")
    with pytest.raises(AmplifierError, match="cannot be set"):
        change_setting("user", path, key, "x")


@pytest.mark.parametrize("package", ["ruamel.yaml", "filelock"])
def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(AmplifierError, match=r"is needed: pip install 'amplifier\[cli\]'"):
        change_setting("user", tmp_path / "settings.yaml", ("ui", "show_usage"), value=True)


# -- a person in an editor


def test_what_somebody_else_wrote_meanwhile_is_not_written_over(places: Places) -> None:
    path = write(places.home / "settings.yaml", "ui: {show_usage: true}\n")

    def slowly(text: str) -> str:
        change("user", ("ui", "show_tool_lines"), value=False, places=places)
        return text + "# mine\n"

    with pytest.raises(AmplifierError, match="changed while it was edited"):
        edit("user", slowly, places)
    assert "# mine" not in path.read_text()
    assert "show_tool_lines: false" in path.read_text()


def test_an_edit_of_a_project_trusts_nothing_that_others_wrote_meanwhile(places: Places) -> None:
    settings = write(places.root / ".amplifier/settings.yaml", "ui: {}\n")
    trust(places, "settings")

    def slowly(text: str) -> str:
        write(settings.with_name("settings.local.yaml"), "profile: {active: theirs}\n")
        return text + "# mine\n"

    with pytest.raises(AmplifierError, match=r"not trusted .*settings\.local\.yaml"):
        edit("project", slowly, places)
    assert load_settings(places).layers == ()


def test_a_damaged_file_can_be_repaired(places: Places) -> None:
    path = write(places.home / "settings.yaml", "ui: [\n")
    assert edit("user", lambda _: "ui: {}\n", places) == path
    assert path.read_text() == "ui: {}\n"


def test_a_scope_that_is_none_is_refused(places: Places) -> None:
    with pytest.raises(AmplifierError, match="there are session, local, project, user"):
        change("everybody", ("ui", "show_usage"), value=True, places=places)
