"""Changing a setting changes nothing else, and never leaves a file that cannot be read."""

from __future__ import annotations

import re
import stat
import sys
from pathlib import Path

import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.settings.changes import change, edit
from amplifier.app.settings.editor import change_settings
from amplifier.app.settings.layers import Key, read_layer, value_at
from amplifier.app.settings.settings import load_settings
from amplifier_kit.installation import install_command
from amplifier_sdk.errors import AmplifierError, ConfigError
from amplifier_sdk.jsontypes import JSONValue
from tests.app.projects import trust, write


def change_setting(path: Path, key: Key, value: JSONValue) -> None:
    change_settings("user", path, lambda _: [(key, value)])


def test_comments_and_the_rest_stay(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(
        "# what I like\nui:\n  show_usage: true   # costs\n  show_tool_lines: false\n"
    )
    change_setting(path, ("ui", "show_usage"), value=False)
    assert (
        path.read_text()
        == "# what I like\nui:\n  show_usage: false  # costs\n  show_tool_lines: false\n"
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("profile", "active"), "dev"),
        (("config", "providers", 0), {"module": "provider-openai"}),
        (("overrides", "tool-x", "config", "paths"), ["a", "b"]),
        (("sources", "tool-x"), "./x"),
    ],
)
def test_what_is_missing_on_the_way_is_made(
    tmp_path: Path, key: tuple[str | int, ...], value: JSONValue
) -> None:
    path = tmp_path / "new" / "settings.yaml"
    change_setting(path, key, value)
    layer = read_layer("user", path, path.read_bytes())
    assert value_at(layer.values, key) == value
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    change_setting(path, key, None)
    assert value_at(read_layer("user", path, path.read_bytes()).values, key) is None


def test_taking_away_what_is_not_there_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("ui: {show_usage: true}\n")
    change_setting(path, ("sources", "tool-x"), None)
    change_setting(path, ("profile", "active"), None)
    assert read_layer("user", path, path.read_bytes()).values == {
        "ui": {"show_usage": True}
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("ui", "show_usage"), "maybe"),
        (("uy",), "x"),
        (("overrides", "tool-x", "config", "api_key"), "sk-1"),
    ],
)
def test_a_change_that_would_not_be_sound_leaves_the_file(
    tmp_path: Path, key: tuple[str | int, ...], value: JSONValue
) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("ui: {show_usage: true}\n")
    with pytest.raises(ConfigError):
        change_setting(path, key, value)
    assert path.read_text() == "ui: {show_usage: true}\n"


@pytest.mark.parametrize(
    "key",
    [
        ("ui", 0),
        ("config", "providers", "x"),
        ("config", "providers", 3),
        ("ui", 0, "x"),
    ],
)
def test_a_key_that_does_not_fit_what_is_there_is_refused(
    tmp_path: Path, key: tuple[str | int, ...]
) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("ui: {show_usage: true}\nconfig: {providers: [{module: a}]}\n")
    with pytest.raises(AmplifierError, match="cannot be set"):
        change_setting(path, key, "x")


LAYERED = """\
# head
ui:   # about ui
  # about usage
  show_usage: true  # end
  # about lines
  show_tool_lines: false

# about limits
limits: {iterations: 3}
modules:
  tools:
    # first
    - module: a
      config: {x: [1,
        2]}
    # second
    - module: b
# tail
"""


@pytest.mark.parametrize(
    ("key", "gone"),
    [
        (("ui", "show_usage"), "  show_usage: true  # end\n"),
        (("ui", "show_tool_lines"), "  show_tool_lines: false\n"),
        (("limits",), "limits: {iterations: 3}\n"),
        (("limits", "iterations"), "limits: {iterations: 3}\n"),
        (
            ("modules", "tools", 0),
            "    - module: a\n      config: {x: [1,\n        2]}\n",
        ),
        (("modules", "tools", 0, "config"), "      config: {x: [1,\n        2]}\n"),
        (("modules", "tools", 1), "    - module: b\n"),
    ],
)
def test_what_is_taken_away_takes_no_comment_along(
    tmp_path: Path, key: Key, gone: str
) -> None:
    path = write(tmp_path / "settings.yaml", LAYERED)
    change_setting(path, key, None)
    assert path.read_text() == LAYERED.replace(gone, "")


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        (
            "# a\nui:\n  # b\n  show_usage: true\n# c\n",
            ("ui", "show_usage"),
            "# a\n# c\n",
        ),
        ("# a\nui: {show_usage: true}\n# b\n", ("ui", "show_usage"), "# a\n# b\n"),
        (
            "bundle:\n  app:  # all\n  - x\n# c\n",
            ("bundle", "app", 0),
            "bundle:\n  app:  # all\n    []\n# c\n",
        ),
        (
            "limits: {iterations: 1, tokens: 2}\n",
            ("limits", "iterations"),
            "limits: {tokens: 2}\n",
        ),
        ("{ui: {show_usage: true}}\n", ("ui", "show_usage"), ""),
        ("ui: {}\n", ("ui", "show_usage"), "ui: {}\n"),
        ("# a\n", ("ui", "show_usage"), "# a\n"),
    ],
)
def test_what_is_left_empty_goes(
    tmp_path: Path, before: str, key: Key, after: str
) -> None:
    path = write(tmp_path / "settings.yaml", before)
    change_setting(path, key, None)
    assert path.read_text() == after


@pytest.mark.parametrize(
    ("text", "key", "left"),
    [
        (
            "overrides: {x: {config: &a {b: 1}}, y: {config: *a}}\n",
            ("overrides", "x"),
            ("overrides", "y", "config", "b"),
        ),
        (
            "limits: &a\n  tokens: 1\noverrides: {x: {config: *a}}\n",
            ("limits",),
            ("overrides", "x", "config", "tokens"),
        ),
    ],
)
def test_what_is_shared_stays_with_the_others_when_one_goes(
    tmp_path: Path, text: str, key: Key, left: Key
) -> None:
    path = write(tmp_path / "settings.yaml", text)
    change_setting(path, key, None)
    values = read_layer("user", path, path.read_bytes()).values
    assert value_at(values, key) is None
    assert value_at(values, left) == 1


def test_a_file_of_comments_keeps_them(tmp_path: Path) -> None:
    path = write(tmp_path / "settings.yaml", "# ui: {show_usage: false}\n# limits")
    change_setting(path, ("ui", "show_usage"), value=True)
    assert (
        path.read_text()
        == "# ui: {show_usage: false}\n# limits\nui:\n  show_usage: true\n"
    )


def test_a_link_is_named_with_where_it_leads(tmp_path: Path) -> None:
    real = write(tmp_path / "real.yaml", "ui: {}\n")
    (tmp_path / "settings.yaml").symlink_to(real)
    with pytest.raises(
        AmplifierError, match=r"settings\.yaml is a link.*edit .*real\.yaml"
    ):
        change_setting(tmp_path / "settings.yaml", ("ui", "show_usage"), value=True)
    assert real.read_text() == "ui: {}\n"


def test_a_file_keeps_its_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_bytes(b"ui:\r\n  show_usage: true  # a\r\n# b\r\n")
    change_setting(path, ("ui", "show_tool_lines"), value=True)
    assert path.read_bytes().count(b"\n") == path.read_bytes().count(b"\r\n") == 4


def test_a_value_that_others_share_is_not_changed_for_them(tmp_path: Path) -> None:
    text = "limits: &a {iterations: 3}\noverrides: {x: {config: *a}}\n"
    path = write(tmp_path / "settings.yaml", text)
    with pytest.raises(
        AmplifierError, match=r"an anchor shares it.*amplifier config edit"
    ):
        change_setting(path, ("limits", "iterations"), 7)
    assert path.read_text() == text


@pytest.mark.parametrize(
    "value",
    [1, 1.0, True, "1", "0o17", "1_000", "yes", "~", "1e3", "a: b", " #x", "é😀", ""],
)
def test_a_value_is_read_as_it_was_set(tmp_path: Path, value: JSONValue) -> None:
    path = write(tmp_path / "settings.yaml", "overrides: {x: {config: {a: true}}}\n")
    for _ in range(2):
        change_setting(path, ("overrides", "x", "config", "a"), value)
        found = value_at(
            read_layer("user", path, path.read_bytes()).values,
            ("overrides", "x", "config", "a"),
        )
        assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize("package", ["ruamel.yaml", "filelock"])
def test_a_package_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        AmplifierError,
        match=re.escape(f"is needed: {install_command('amplifier[cli]')}"),
    ):
        change_setting(tmp_path / "settings.yaml", ("ui", "show_usage"), value=True)


# -- a person in an editor


def test_what_somebody_else_wrote_meanwhile_is_not_written_over(dirs: AppDirs) -> None:
    path = write(dirs.home / "settings.yaml", "ui: {show_usage: true}\n")

    def slowly(text: str) -> str:
        change("user", ("ui", "show_tool_lines"), value=False, dirs=dirs)
        return text + "# mine\n"

    with pytest.raises(AmplifierError, match="changed while it was edited"):
        edit("user", slowly, dirs)
    assert "# mine" not in path.read_text()
    assert "show_tool_lines: false" in path.read_text()


def test_editing_project_settings_trusts_no_concurrent_change(
    dirs: AppDirs,
) -> None:
    settings = write(dirs.root / ".amplifier/settings.yaml", "ui: {}\n")
    trust(dirs, "settings")

    def slowly(text: str) -> str:
        write(settings.with_name("settings.local.yaml"), "profile: {active: theirs}\n")
        return text + "# mine\n"

    with pytest.raises(AmplifierError, match=r"not trusted .*settings\.local\.yaml"):
        edit("project", slowly, dirs)
    assert load_settings(dirs).layers == ()


def test_a_damaged_file_can_be_repaired(dirs: AppDirs) -> None:
    path = write(dirs.home / "settings.yaml", "ui: [\n")
    assert edit("user", lambda _: "ui: {}\n", dirs) == path
    assert path.read_text() == "ui: {}\n"


def test_a_scope_that_is_none_is_refused(dirs: AppDirs) -> None:
    with pytest.raises(AmplifierError, match="there are session, local, project, user"):
        change("everybody", ("ui", "show_usage"), value=True, dirs=dirs)
