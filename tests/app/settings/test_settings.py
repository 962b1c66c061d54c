"""Settings are merged by scope, each value can be explained, and what is wrong is named with file and line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from amplifier.app.directories import AppDirs
from amplifier.app.settings.expansion import expand
from amplifier.app.settings.layers import Scope, read_key
from amplifier.app.settings.settings import Settings, load_settings, settings_file
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONValue
from tests.app.projects import trust
from tests.timing import grows_in_proportion


def write(dirs: AppDirs, scope: Scope, text: str, session: Path | None = None) -> Path:
    path = settings_file(scope, dirs, session)
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def load(dirs: AppDirs, session: Path | None = None, **environment: str) -> Settings:
    trust(dirs, "settings")
    return load_settings(dirs, session=session, lookup=environment.get)


def problems(dirs: AppDirs) -> str:
    with pytest.raises(ConfigError) as caught:
        load(dirs)
    return str(caught.value)


def test_without_files_the_defaults_hold(dirs: AppDirs) -> None:
    settings = load(dirs)
    assert settings.layers == ()
    assert settings.read().mentions.max_depth == 3


def test_the_stronger_scope_wins(dirs: AppDirs, tmp_path: Path) -> None:
    write(
        dirs,
        "user",
        "profile: {active: user, default: base}\nui: {show_usage: false}\n",
    )
    write(dirs, "project", "profile: {active: project}\n")
    write(dirs, "local", "profile: {active: local}\n")
    write(dirs, "session", "profile: {active: session}\n", tmp_path / "session")
    assert load(dirs).read().profile.active == "local"
    read = load(dirs, tmp_path / "session").read()
    assert read.profile.active == "session"
    assert read.profile.default == "base"
    assert not read.ui.show_usage


def test_null_takes_a_value_away(dirs: AppDirs) -> None:
    write(
        dirs,
        "user",
        "overrides: {tool-bash: {config: {timeout: 5}}}\nui: {show_usage: false}\n",
    )
    write(dirs, "project", "overrides: {tool-bash: null}\nui: {show_usage: null}\n")
    read = load(dirs).read()
    assert read.overrides == {}
    assert read.ui.show_usage


def test_modules_are_merged_by_id_and_instance(dirs: AppDirs) -> None:
    user = """
    config:
      providers:
        - {module: provider-openai, config: {default_model: a, priority: 1}}
        - {module: provider-openai, id: second, config: {default_model: b}}
    """
    write(dirs, "user", user)
    write(
        dirs,
        "project",
        "config: {providers: [{module: provider-openai, id: second, config: {default_model: c}}]}\n",
    )
    assert load(dirs).values["config"] == {
        "providers": [
            {
                "module": "provider-openai",
                "config": {"default_model": "a", "priority": 1},
            },
            {
                "module": "provider-openai",
                "id": "second",
                "config": {"default_model": "c"},
            },
        ]
    }


def test_a_value_is_explained_by_every_file_that_sets_it(dirs: AppDirs) -> None:
    user = write(dirs, "user", "# mine\nui:\n  show_usage: true\n")
    project = write(dirs, "project", "ui:\n  show_usage: false\n")
    found = load(dirs).explain(("ui", "show_usage"))
    assert [
        (origin.scope, origin.path, origin.line, origin.value) for origin in found
    ] == [
        ("project", project, 2, False),
        ("user", user, 3, True),
        ("default", None, None, True),
    ]


def test_the_environment_fills_references() -> None:
    config: JSONValue = {"a": "${ONE}-${TWO:2}${THREE:-3}", "b": "$$5", "c": ["${ONE}"]}
    assert expand(config, {"ONE": "1"}.get, path="config") == {
        "a": "1-23",
        "b": "$5",
        "c": ["1"],
    }


def test_every_unset_variable_is_named_with_its_place() -> None:
    with pytest.raises(ConfigError) as caught:
        expand(
            {"url": "${NOWHERE}", "ports": ["${PORT}"]},
            dict[str, str]().get,
            path="config",
            subject="plan",
        )
    assert "config.url: the variable NOWHERE is not set" in str(caught.value)
    assert "config.ports[0]: the variable PORT is not set" in str(caught.value)
    assert "amplifier config secret set PORT" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ui: [", "line 2, column 1"),
        ("- a\n", "a mapping"),
        ("ui:\n  show_usag: true\n", "line 2, ui.show_usag: "),
        ("\nui:\n  show_usage: maybe\n", "line 3, ui.show_usage"),
        ("mentions: {max_depth: 0}\n", "line 1"),
        (
            "overrides:\n  tool-x:\n    config:\n      api_key: sk-123\n",
            "line 4, overrides.tool-x.config.api_key",
        ),
        (
            "config:\n  providers:\n    - module: a\n      config: {token: abc}\n",
            "line 4",
        ),
        ("config:\n  providers:\n    - modul: a\n", "line 3"),
        ("ui: {show_usage: true}\nui: {}\n", "stands twice"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    dirs: AppDirs, text: str, problem: str
) -> None:
    path = write(dirs, "user", text)
    assert problem in problems(dirs)
    assert str(path) in problems(dirs)


def test_a_plain_secret_is_refused_without_being_shown(dirs: AppDirs) -> None:
    write(dirs, "user", "overrides: {tool-x: {config: {api_key: sk-123}}}\n")
    assert "amplifier config secret set" in problems(dirs)
    assert "sk-123" not in problems(dirs)


def test_a_file_that_is_no_text_is_named(dirs: AppDirs) -> None:
    write(dirs, "project", "").write_bytes(b"ui: \xff\n")
    assert "not UTF-8 at byte 4" in problems(dirs)


def test_projects_settings_do_not_count_before_they_are_trusted(
    dirs: AppDirs,
) -> None:
    write(dirs, "project", "profile: {active: theirs}\n")
    settings = load_settings(dirs)
    assert settings.withheld is not None
    assert settings.read().profile.active is None
    assert load(dirs).read().profile.active == "theirs"
    write(dirs, "project", "profile: {active: changed}\n")
    assert load_settings(dirs).read().profile.active is None


def test_in_the_home_folder_there_are_no_project_settings(dirs: AppDirs) -> None:
    home = AppDirs.find(Path(os.environ["HOME"]))
    assert settings_file("project", home) is None
    assert load_settings(home).layers == ()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("ui.show_usage", ("ui", "show_usage")),
        ("config.providers[0].module", ("config", "providers", 0, "module")),
        ('sources["a b"].x', ("sources", "a b", "x")),
        (r'sources["a\"\u00e4 ä"]', ("sources", 'a"ä ä')),
    ],
)
def test_a_key_is_read_as_it_is_written(text: str, key: tuple[str | int, ...]) -> None:
    assert read_key(text) == key


def test_a_mistake_under_a_key_in_another_language_has_its_line(dirs: AppDirs) -> None:
    write(dirs, "user", "overrides:\n  x y:\n    config: {}\n  ü b:\n    konfig: {}\n")
    with pytest.raises(ConfigError, match=r"line 5, .*konfig: unknown"):
        load_settings(dirs)


@pytest.mark.figures
def test_many_mistakes_are_told_in_proportion_to_them(dirs: AppDirs) -> None:
    def read(count: int) -> None:
        write(dirs, "user", "".join(f"key{number}: 1\n" for number in range(count)))
        with pytest.raises(ConfigError):
            load_settings(dirs)

    assert grows_in_proportion(read, 50, 500)


@pytest.mark.parametrize("text", ["", ".", "a..b", "a[", "[x]", "a b", r'a["\x"]'])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a key is written as"):
        read_key(text)
