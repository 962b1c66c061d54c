"""Rules on paths: anchored, and evaluated by where a path really leads."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier_kit.rules import RuledCall, RuleSet
from amplifier_kit.shell.decisions import Decision
from amplifier_sdk import ConfigError
from amplifier_sdk.effects import Effect
from amplifier_sdk.jsontypes import JSONValue


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a project with a link that leads out of it and one that leads in."""
    project = tmp_path / "project"
    (project / "src" / "deep").mkdir(parents=True)
    (project / "secrets").mkdir()
    (tmp_path / "outside").mkdir()
    (project / "src" / "out").symlink_to(tmp_path / "outside")
    (project / "in").symlink_to(project / "secrets")
    return project


def evaluated(
    folder: Path,
    decision: Decision,
    pattern: str,
    path: JSONValue,
    *,
    effects: Effect = "write",
    key: str = "path",
) -> Decision:
    rules = RuleSet.load(
        [{"decision": decision, "paths": [pattern], "tools": ["touch"]}],
        directory=folder,
        otherwise="ask" if decision == "allow" else "allow",
    )
    return rules.evaluate(
        RuledCall(
            tool_name="touch",
            arguments={key: path},
            directory=folder,
            effects=frozenset((effects,)),
        )
    ).decision


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("src/**", "src/a.py"),
        ("src/**", "src/deep/a.py"),
        ("src/**", "./src/../src/a.py"),
        ("src/**", "src"),
        ("src/*.py", "src/a.py"),
        ("src/**/a.py", "src/a.py"),
        ("src/**/a.py", "src/x/y/a.py"),
        ("src/?.py", "src/a.py"),
        ("**", "anything/at/all"),
        ("~/notes/*", "~/notes/a"),
    ],
)
def test_a_path_that_the_pattern_means_is_allowed(
    folder: Path, pattern: str, path: str
) -> None:
    assert evaluated(folder, "allow", pattern, path) == "allow"
    if not path.startswith("~"):
        assert evaluated(folder, "allow", pattern, str(folder / path)) == "allow"


@pytest.mark.parametrize(
    "path",
    [
        "a.py",
        "srcs/a.py",
        "xsrc/a.py",
        "src/../a.py",
        "/etc/passwd",
        "src/out/x",
        "src/out/../../a",
        "../project2/src/a",
        "",
        "src/\x00a",
        "~root/x",
        "s" * 5000,
        3,
        None,
        ["src/a", "b"],
        "SRC/a.py",
        "~/src/a.py",
    ],
)
def test_any_other_is_asked_about(folder: Path, path: JSONValue) -> None:
    assert evaluated(folder, "allow", "src/**", path) == "ask"


def test_a_star_stays_in_its_folder(folder: Path) -> None:
    assert evaluated(folder, "allow", "src/*", "src/deep/a.py") == "ask"


def test_a_home_that_may_be_a_link_of_this_name_is_not_allowed(folder: Path) -> None:
    (folder / "~").symlink_to("/etc")
    assert evaluated(folder, "allow", "~/notes/*", "~/notes/a") == "ask"
    assert evaluated(folder, "deny", "/etc/**", "~/passwd") == "deny"


@pytest.mark.parametrize(
    "path",
    [
        "secrets/a",
        "./x/../secrets/a",
        "SECRETS/a",
        "in/a",
        "secrets",
        "secrets/deep/er",
        ["x", "secrets/a"],
    ],
    ids=["plain", "up", "case", "link", "itself", "deep", "list"],
)
def test_a_path_that_is_refused_is_found(folder: Path, path: JSONValue) -> None:
    assert evaluated(folder, "deny", "secrets/**", path) == "deny"


def test_a_refused_name_that_is_a_link_is_found(folder: Path) -> None:
    assert evaluated(folder, "deny", "src/out/**", "src/out/x") == "deny"


@pytest.mark.parametrize("path", [".", "..", "/"])
def test_a_folder_that_holds_what_is_refused_is_asked_about(
    folder: Path, path: str
) -> None:
    assert evaluated(folder, "deny", "secrets/**", path) == "ask"
    assert evaluated(folder, "deny", "secrets/**", path, effects="read") == "allow"


def test_other_paths_are_left_alone(folder: Path) -> None:
    assert evaluated(folder, "deny", "secrets/**", "src/a") == "allow"


@pytest.mark.parametrize("key", ["file_path", "PATH", "destination", "paths"])
def test_paths_are_found_by_the_names_of_arguments(folder: Path, key: str) -> None:
    assert evaluated(folder, "deny", "secrets/**", "secrets/a", key=key) == "deny"


def test_paths_are_found_at_any_depth(folder: Path) -> None:
    rules = RuleSet.load(
        [{"decision": "deny", "paths": ["secrets/**"]}],
        directory=folder,
        otherwise="allow",
    )
    moves: list[JSONValue] = [
        {"path": "a"},
        {"steps": [{"to": 1, "path": "secrets/x"}]},
    ]
    deep: JSONValue = {"path": "secrets/x"}
    for _ in range(60):
        deep = {"x": deep}

    def decision(arguments: dict[str, JSONValue]) -> Decision:
        return rules.evaluate(
            RuledCall(tool_name="m", arguments=arguments, directory=folder)
        ).decision

    assert decision({"moves": moves}) == "deny"
    assert decision({"files": moves}) == "deny"
    assert decision({"x": deep}) == "ask"
    assert decision({"moves": []}) == "allow"


def test_a_named_tool_without_a_path_is_asked_about(folder: Path) -> None:
    assert evaluated(folder, "deny", "secrets/**", "secrets/a", key="other") == "ask"
    assert evaluated(folder, "allow", "src/**", "src/a", key="other") == "ask"


@pytest.mark.parametrize(
    "pattern", ["", "a/**b", "../x", "a\0"], ids=["empty", "stars", "up", "nul"]
)
def test_a_pattern_that_cannot_be_meant_is_an_error(folder: Path, pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"rules\[0\].paths"):
        evaluated(folder, "allow", pattern, "a")


@given(
    st.lists(
        st.sampled_from(["src", "..", ".", "a", "out", "deep", "/", "~", "in"]),
        max_size=8,
    )
)
def test_nothing_outside_is_ever_allowed(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    project = tmp_path_factory.getbasetemp() / "walks"
    if not project.exists():
        (project / "src" / "deep").mkdir(parents=True)
        (project / "src" / "out").symlink_to(project.parent)
    path = "/".join(parts)
    inside = (project / path).resolve().is_relative_to((project / "src").resolve())
    assert inside or evaluated(project, "allow", "src/**", path) == "ask"


@given(st.text(string.printable, max_size=30))
def test_any_text_is_judged(text: str) -> None:
    assert evaluated(Path("/srv/nowhere"), "deny", "secrets/**", text) in (
        "allow",
        "ask",
        "deny",
    )
