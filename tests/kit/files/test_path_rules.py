"""Rules for paths: which names and places are protected."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier_kit.files.path_rules import OWN_RULE, SECRET_NAMES, PathRules, path_parts


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("a.key", "*.key"),
        ("A.KEY", "*.key"),
        ("b.key", None),
        ("b.key.old", None),
        (".Git", ".git"),
        (".g\u200dit", ".git"),
        ("stra\u00dfe", "STRASSE"),
        ("e\u0301", "\u00e9"),
        ("x1", "x[0-9]"),
        ("xx", None),
    ],
)
def test_names_are_judged_as_file_systems_without_case_do(
    name: str, rule: str | None
) -> None:
    rules = PathRules(["*.key", "!b.*", ".git", "STRASSE", "\u00e9", "x[0-9]"])

    assert rules.name_rule(name) == rule
    assert rules.rule(("home", name), ("sub", name, "file")) == rule
    assert rules.rule(("home", name), ("sub",)) is None


def test_of_the_rules_that_match_a_name_the_last_decides() -> None:
    assert PathRules(["!a", "a"]).name_rule("a") == "a"
    assert PathRules(["a", "!a"]).name_rule("a") is None


def test_places_are_protected_with_all_below_and_by_every_name(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "alias").symlink_to("docs")
    rules = PathRules(paths=[tmp_path / "alias" / "plan"])
    root = path_parts(str(tmp_path))

    assert rules.rule(root, ("docs", "Plan", "deep")) == str(
        tmp_path / "alias" / "plan"
    )
    assert rules.rule(root, ("docs", "planet")) is None
    assert rules.rule_inside([*root, "docs"]) == str(tmp_path / "alias" / "plan")
    assert rules.rule_inside([*root, "docs", "plan", "deep"]) is None
    below = rules.below(tmp_path)
    assert (below(("docs", "plan")), below(("docs",)), below(("plan",))) == (
        True,
        False,
        False,
    )


def test_what_is_known_of_names_has_a_size() -> None:
    rules = PathRules(["*7"])

    assert (
        sum(rules.name_rule(str(number)) is not None for number in range(20_050))
        == 2005
    )


@pytest.mark.parametrize(
    "name",
    ["README.md", "env.py", "key.py", "id_rsa.pub", ".env.example", "token.go", "keys"],
)
def test_common_names_hold_no_secrets(name: str) -> None:
    assert PathRules(SECRET_NAMES).name_rule(name) is None


def test_what_nothing_lifts_is_refused_after_the_rules(tmp_path: Path) -> None:
    rules = PathRules(["secret"], refuses=lambda parts: "own" in parts)
    assert rules.rule(("work",), ("own", "x")) == OWN_RULE
    assert rules.rule(("work",), ("own", "secret")) == "secret"
    below = rules.below(tmp_path)
    assert [below((name,)) for name in ("secret", "own", "x")] == [True, True, False]
