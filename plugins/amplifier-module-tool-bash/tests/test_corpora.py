"""What becomes of the commands that people give every day, and of those that nobody may run unasked."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from amplifier_kit.shell import PathPolicy
from amplifier_module_tool_bash.config import BashConfig
from amplifier_module_tool_bash.permission import make_policy

COMMANDS = Path(__file__).with_name("commands")
EVERYDAY: Mapping[str, Mapping[str, list[str]]] = tomllib.loads(
    (COMMANDS / "everyday.toml").read_text()
)
ESCAPES: Mapping[str, Mapping[str, list[str]]] = tomllib.loads(
    (COMMANDS / "escapes.toml").read_text()
)
POLICY = make_policy()


@pytest.fixture
def path_policy(root: Path) -> PathPolicy:
    """A project as people have it: sources, an untracked secret, what git keeps."""
    for folder in (
        "src",
        "tests",
        "data",
        "logs",
        "build",
        "docs",
        ".git/hooks",
        ".git/objects/info",
        ".ssh",
    ):
        (root / folder).mkdir(parents=True)
    for name in (
        "src/app.py",
        "src/main.c",
        "tests/test_app.py",
        "README.md",
        "Makefile",
        "package.json",
        ".env",
        "a",
        "b",
    ):
        (root / name).write_text("1\n")
    (root / ".ssh/id_rsa").write_text("key\n")
    return PathPolicy(
        directory=str(root),
        writable=(str(root),),
        protected=BashConfig().protected_paths,
        home="/home/person",
    )


def decision(text: str, path_policy: PathPolicy) -> str:
    """Return what becomes of a text where edits are not accepted."""
    verdict = POLICY.evaluate(text, path_policy, {"HOME": "/home/person"})
    if verdict.edits:
        return "ask"
    return verdict.decision


def escapes(kind: str) -> list[str]:
    entry = ESCAPES[kind]
    return [
        text.replace("@", each)
        for text in entry["texts"]
        for each in entry.get("each", ["@"])
    ]


def test_of_150_everyday_commands_at_most_12_are_asked_about(
    path_policy: PathPolicy,
) -> None:
    runs = [text for entry in EVERYDAY.values() for text in entry["runs"]]
    asks = [text for entry in EVERYDAY.values() for text in entry["asks"]]

    asked = [text for text in (*runs, *asks) if decision(text, path_policy) != "allow"]

    assert (len(runs) + len(asks), sorted(asked)) == (150, sorted(asks))
    assert len(asked) <= 12


@pytest.mark.parametrize("kind", ESCAPES)
def test_nothing_that_escapes_runs_unasked(path_policy: PathPolicy, kind: str) -> None:
    assert [
        text for text in escapes(kind) if decision(text, path_policy) == "allow"
    ] == []


def test_there_are_at_least_300_escapes() -> None:
    assert len({text for kind in ESCAPES for text in escapes(kind)}) >= 300


def test_folder_programs_are_asked_about_without_sandbox(
    path_policy: PathPolicy,
) -> None:
    bare = attrs.evolve(path_policy, has_sandbox=False)

    assert {
        decision(text, bare) for text in ("ls -la", "git status", "grep -n x README.md")
    } == {"allow"}
    for text in (
        "python src/app.py",
        "pytest",
        "make",
        "npm test",
        "npm ci",
        "./run.sh",
        "src/cat x",
        "bash x.sh",
        "cargo build",
    ):
        assert (decision(text, path_policy), decision(text, bare)) == (
            "allow",
            "ask",
        ), text
