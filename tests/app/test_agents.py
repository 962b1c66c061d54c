"""Agents that a project brings: they have their session's rights, or fewer."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier.app.agents.library import AgentLibrary
from amplifier.app.agents.project_agents import widening
from amplifier.app.directories import AppDirs
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject
from tests.app.projects import trust, write

SESSION: JSONObject = {
    "providers": [{"module": "provider-local"}],
    "tools": ["tool-filesystem", {"module": "tool-web", "instance_id": "docs"}],
}


def put_agent(dirs: AppDirs, head: str, folder: Path | None = None) -> None:
    """Write and trust an agent of the project, or write one elsewhere."""
    text = f"---\nmeta: {{name: a, description: d}}\n{head}\n---\nYou work.\n"
    write((folder or dirs.root / ".amplifier/agents") / "a.md", text)
    if folder is None:
        trust(dirs, "agents")


@pytest.mark.parametrize(
    "head",
    [
        "",
        "tools: [tool-filesystem]",
        "tools: [{module: tool-web, instance_id: docs}]",
        "providers: [{module: provider-local, config: {model: small, temperature: 0}}]",
        "session: {limits: {max_iterations: 3}, orchestrator: {config: {model: small}}, metadata: {a: 1}}",
        "agents: none",
    ],
)
def test_an_agent_of_a_project_may_narrow(dirs: AppDirs, head: str) -> None:
    put_agent(dirs, head)
    library = AgentLibrary.of(dirs)

    assert "a" in library.choose("all", SESSION)
    assert library.invalid == []


WIDENING = (
    (
        "hooks: [{module: hooks-shell, config: {hooks: [{event: 'tool:pre', command: x}]}}]",
        "hooks",
    ),
    ("hooks: [hooks-logging]", "hooks"),
    (
        "providers: [{module: provider-local, config: {base_url: 'https://evil.example'}}]",
        "base_url",
    ),
    ("providers: [{module: provider-local, source: ./x}]", "source"),
    ("providers: [{module: provider-local, config: 7}]", "config"),
    (
        "tools: [{module: tool-filesystem, config: {allowed_write_paths: ['/']}}]",
        "allowed_write_paths",
    ),
    ("tools: [{module: tool-filesystem, source: ./x}]", "source"),
    ("tools: [7]", r"tools\[0\]"),
    ("session: {orchestrator: other}", "session.orchestrator"),
    ("session: {orchestrator: {module: other}}", "session.orchestrator.module"),
    ("session: {orchestrator: {config: {max_iterations: 9999}}}", "max_iterations"),
    ("session: {context: {module: x}}", "session.context"),
    ("session: {orchestrator_source: ./x}", "session.orchestrator_source"),
    ("agents: {b: {tools: [tool-bash]}}", "agents"),
)


@pytest.mark.parametrize(("head", "problem"), WIDENING)
def test_an_agent_of_a_project_may_not_widen(
    dirs: AppDirs, head: str, problem: str
) -> None:
    put_agent(dirs, head)
    library = AgentLibrary.of(dirs)

    assert not {"a", "acme:a"} & set(library.choose("all", SESSION))
    with pytest.raises(ConfigError, match=problem):
        library.require("a")


@pytest.mark.parametrize(("head", "problem"), WIDENING)
def test_agent_of_persons_own_may_say_all_that_plan_may(
    dirs: AppDirs, head: str, problem: str
) -> None:
    put_agent(dirs, head, dirs.home / "agents")

    assert "a" in AgentLibrary.of(dirs).choose("all", SESSION), problem


@pytest.mark.parametrize(
    "head",
    [
        "tools: [tool-bash]",
        "tools: [{module: tool-bash}]",
        "providers: [provider-x]",
        # without the settings of the session's
        "tools: [{module: tool-filesystem, instance_id: tool-filesystem}]",
        "tools: [{module: tool-filesystem, instance_id: other}]",
        "tools: [tool-web]",
    ],
)
def test_agent_of_project_brings_no_modules_that_session_lacks(
    dirs: AppDirs, head: str
) -> None:
    put_agent(dirs, head)
    library = AgentLibrary.of(dirs)

    assert not {"a", "acme:a"} & set(library.choose("all", SESSION))
    assert "the session has no" in library.invalid[0].problem
    with pytest.raises(ConfigError, match="the session has no"):
        library.choose("a", SESSION)


@pytest.mark.parametrize(
    "head",
    [
        "tools: []",
        "tools:",
        "tools: {}",
        "hooks: []",
        "providers: []",
        "Tools: []",
        "tools: {Read: true}",
    ],
)
def test_a_limit_that_limits_nothing_is_an_error(dirs: AppDirs, head: str) -> None:
    put_agent(dirs, head, dirs.home / "agents")
    library = AgentLibrary.of(dirs)

    assert "a" not in library.choose("all")
    assert library.invalid[0].name == "a"


def test_a_collection_of_the_project_brings_narrow_agents_alone(dirs: AppDirs) -> None:
    collection = dirs.root / ".amplifier/collections/acme"
    write(collection / "pyproject.toml", '[project]\nname = "acme"\n')
    put_agent(dirs, "hooks: [hooks-logging]", collection / "agents")
    trust(dirs, "profiles")
    library = AgentLibrary.of(dirs)

    assert not {"a", "acme:a"} & set(library.choose("all", SESSION))
    assert "only narrows" in library.invalid[0].problem


def test_what_is_no_mapping_is_left_to_the_reader_of_plans() -> None:
    assert [
        problem.path for problem in widening({"session": "x", "tools": {"a": 1}})
    ] == []
