"""A session is made of its profile, the settings, the agents, and what the person chose on top."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier import MountPlanValidator
from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.composition import Composition, compose
from amplifier.app.sessions.details import list_values
from amplifier_sdk.errors import ConfigError
from tests.app.projects import trust, write

INSTALLED = ("context-simple", "loop-basic", "provider-local", "tool-filesystem")

PROFILE = """\
---
profile: {name: dev, model: acme/large}
session:
  orchestrator: {module: loop-streaming, config: {temperature: 1}}
  context: context-simple
  limits: {iterations: 5, tool_timeout: 7}
providers:
  - {module: provider-acme, config: {api_key: "${ACME_KEY:none}"}}
tools: [{module: tool-notes, source: ./notes}]
ui: {show_tool_lines: false, show_usage: false}
---
Write notes.
"""


def made(dirs: AppDirs, **chosen: str | Path) -> Composition:
    options = PlanOptions(**chosen)  # type: ignore[arg-type]  # the test's own names
    composition = compose(options, dirs, installed=INSTALLED)
    assert MountPlanValidator().validate(composition.plan) == ()
    return composition


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACME_KEY", raising=False)


def test_without_anything_it_is_what_is_installed(dirs: AppDirs) -> None:
    composition = made(dirs)
    assert composition.plan["providers"] == [{"module": "provider-local"}]
    assert composition.profile is None
    assert composition.instruction is None
    assert composition.display.show_tool_lines


def test_a_profile_is_found_through_the_settings(dirs: AppDirs) -> None:
    write(dirs.home / "profiles/dev.md", PROFILE)
    write(dirs.home / "settings.yaml", "profile: {default: dev}\n")
    composition = made(dirs)
    plan = {
        section: value
        for section, value in composition.plan.items()
        if section != "agents"
    }
    assert plan == {
        "session": {
            "orchestrator": {
                "module": "loop-streaming",
                "config": {
                    "temperature": 1,
                    "default_provider": "acme",
                    "model": "large",
                },
            },
            "context": {"module": "context-simple"},
            "ask_before_changes": True,
            "limits": {"iterations": 5, "tool_timeout": 7},
        },
        "providers": [{"module": "provider-acme", "config": {"api_key": "none"}}],
        "tools": [
            {"module": "tool-notes", "source": str(dirs.home / "profiles/notes")}
        ],
    }
    assert composition.instruction == "Write notes."
    assert not composition.display.show_tool_lines


def test_instruction_only_profile_uses_installed_modules(
    dirs: AppDirs,
) -> None:
    write(dirs.home / "profiles/dev.md", "---\nprofile:\n  name: dev\n---\nYou help.\n")
    composition = compose(
        PlanOptions(profile="dev"), dirs, installed=(*INSTALLED, "hooks-logging")
    )
    plan = {
        section: value
        for section, value in composition.plan.items()
        if section != "agents"
    }
    assert plan == {
        "session": {
            "orchestrator": {"module": "loop-basic"},
            "context": {"module": "context-simple"},
            "ask_before_changes": True,
        },
        "providers": [{"module": "provider-local"}],
        "hooks": [{"module": "hooks-logging"}],
    }
    assert composition.instruction == "You help."


def test_profile_that_names_or_empties_a_section_replaces_it(
    dirs: AppDirs,
) -> None:
    write(
        dirs.home / "profiles/base.md",
        "---\nproviders: [provider-acme]\nhooks: [hooks-logging]\n---\n",
    )
    text = "---\nprofile: {extends: base}\nsession: {orchestrator: loop-acme}\nexclude: {hooks: all}\n---\n"
    write(dirs.home / "profiles/dev.md", text)
    plan = compose(
        PlanOptions(profile="dev"),
        dirs,
        installed=("context-simple", "hooks-logging"),
    ).plan
    assert plan["session"] == {
        "orchestrator": {"module": "loop-acme"},
        "context": {"module": "context-simple"},
        "ask_before_changes": True,
    }
    assert plan["providers"] == [{"module": "provider-acme"}]
    assert "hooks" not in plan
    bare = compose(PlanOptions(profile="dev"), dirs, installed=()).plan
    assert bare["session"] == {
        "orchestrator": {"module": "loop-acme"},
        "ask_before_changes": True,
    }


def test_every_value_has_profile_settings_or_installed_origin(
    dirs: AppDirs,
) -> None:
    write(
        dirs.home / "profiles/dev.md",
        "---\nprofile: {name: dev, model: acme/large}\ntools: [tool-notes]\n---\n",
    )
    write(
        dirs.home / "settings.yaml",
        "overrides: {tool-notes: {config: {folder: here}}}\n",
    )
    origins = {
        value.path: value.origin for value in list_values(made(dirs, profile="dev"))
    }
    assert origins == {
        "session.orchestrator.module": "installed",
        "session.context.module": "installed",
        "session.ask_before_changes": "installed",
        "providers[provider-local].module": "installed",
        "tools[tool-notes].module": "dev",
        "tools[tool-notes].config.folder": "settings",
        "session.orchestrator.config.default_provider": "dev",
        "session.orchestrator.config.model": "dev",
    }
    assert {value.origin for value in list_values(made(dirs))} == {"installed"}


def test_active_profile_beats_default_and_flag_beats_both(
    dirs: AppDirs,
) -> None:
    for name in ("one", "two", "three"):
        write(dirs.home / f"profiles/{name}.md", PROFILE.replace("Write notes.", name))
    write(dirs.home / "settings.yaml", "profile: {default: one, active: two}\n")
    assert made(dirs).instruction == "two"
    assert made(dirs, profile="three").instruction == "three"


def test_settings_are_laid_over_the_profile(
    dirs: AppDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", "k")
    write(dirs.home / "profiles/dev.md", PROFILE)
    write(
        dirs.home / "settings.yaml",
        """
        limits: {iterations: 9}
        overrides:
          loop-streaming: {config: {temperature: 0}}
          tool-notes: {config: {folder: here}}
        sources: {tool-notes: /elsewhere, tool-web: /web}
        modules: {tools: [tool-web], hooks: [{module: hooks-logging, id: second}]}
        ui: {show_usage: true}
        """.replace("tools: [tool-web]", "tools: [{module: tool-web}]"),
    )
    composition = made(dirs, profile="dev")
    session = composition.plan["session"]
    assert isinstance(session, dict)
    assert session["limits"] == {"iterations": 9, "tool_timeout": 7}
    assert session["orchestrator"] == {
        "module": "loop-streaming",
        "config": {"temperature": 0, "default_provider": "acme", "model": "large"},
    }
    assert composition.plan["providers"] == [
        {"module": "provider-acme", "config": {"api_key": "k"}}
    ]
    assert composition.plan["tools"] == [
        {"module": "tool-notes", "source": "/elsewhere", "config": {"folder": "here"}},
        {"module": "tool-web", "source": "/web"},
    ]
    assert composition.plan["hooks"] == [
        {"module": "hooks-logging", "instance_id": "second"}
    ]
    assert composition.display.show_usage
    assert not composition.display.show_tool_lines


def test_providers_of_settings_take_place_of_local_one(
    dirs: AppDirs,
) -> None:
    write(
        dirs.home / "settings.yaml",
        "config: {providers: [{module: provider-acme, config: {priority: 1}}]}\n",
    )
    assert made(dirs).plan["providers"] == [
        {"module": "provider-acme", "config": {"priority": 1}}
    ]
    assert made(dirs, provider="acme").plan["providers"] == [
        {"module": "provider-acme", "config": {"priority": 1}}
    ]
    assert made(dirs, provider="local").plan["providers"] == [
        {"module": "provider-local"}
    ]


def test_unset_variable_of_provider_not_chosen_does_not_matter(
    dirs: AppDirs,
) -> None:
    write(
        dirs.home / "settings.yaml",
        "config: {providers: [{module: provider-acme, config: {api_key: '${ACME_KEY}'}}]}\n",
    )
    assert made(dirs, provider="local").plan["providers"] == [
        {"module": "provider-local"}
    ]
    with pytest.raises(ConfigError, match="ACME_KEY is not set"):
        made(dirs)


def test_what_was_chosen_wins(dirs: AppDirs) -> None:
    write(dirs.home / "profiles/dev.md", PROFILE)
    composition = made(
        dirs, profile="dev", provider="other", model="small", first_tool="note"
    )
    session = composition.plan["session"]
    assert isinstance(session, dict)
    assert session["orchestrator"] == {
        "module": "loop-streaming",
        "config": {"temperature": 1, "model": "small", "first_tool": "note"},
    }
    assert composition.plan["providers"] == [{"module": "provider-other"}]


def test_a_plan_file_is_taken_as_it_is(dirs: AppDirs, tmp_path: Path) -> None:
    write(
        dirs.home / "settings.yaml",
        "profile: {active: nowhere}\nlimits: {iterations: 1}\n",
    )
    text = '{"session": {"orchestrator": "o", "context": "c"}, "tools": [{"module": "t", "config": {"a": "${B}"}}]}'
    composition = made(dirs, file=write(tmp_path / "plan.json", text))
    assert composition.plan == {
        "session": {"orchestrator": "o", "context": "c"},
        "tools": [{"module": "t", "config": {"a": "${B}"}}],
    }


AGENT = "---\nmeta: {name: reviewer, description: 'Costs ${MONEY}.'}\ntools: [tool-notes]\n---\nSpend ${MONEY}.\n"


def test_agents_are_in_the_plan_and_their_texts_stay(dirs: AppDirs) -> None:
    write(dirs.home / "agents/reviewer.md", AGENT)
    write(
        dirs.home / "settings.yaml",
        "overrides: {tool-notes: {config: {folder: '${NOTES:/n}'}}}\n",
    )
    agents = made(dirs).plan["agents"]
    assert isinstance(agents, dict)
    assert agents["reviewer"] == {
        "description": "Costs ${MONEY}.",
        "system": {"instruction": "Spend ${MONEY}."},
        "tools": [{"module": "tool-notes", "config": {"folder": "/n"}}],
    }


def test_a_profile_chooses_its_agents(dirs: AppDirs) -> None:
    write(dirs.home / "agents/reviewer.md", AGENT)
    write(dirs.home / "profiles/dev.md", PROFILE.replace("ui:", "agents: none\nui:"))
    assert "agents" not in made(dirs, profile="dev").plan


def test_an_untrusted_project_changes_nothing_and_is_told(dirs: AppDirs) -> None:
    write(dirs.root / ".amplifier/settings.yaml", "sources: {loop-basic: /evil}\n")
    write(dirs.root / ".amplifier/agents/x.md", AGENT.replace("reviewer", "x"))
    composition = made(dirs)
    assert (
        composition.plan
        == made(AppDirs(working_dir=Path("/"), home=dirs.home, root=Path("/"))).plan
    )
    assert {decision.kind for decision in composition.project.withheld} == {
        "settings",
        "agents",
    }
    trust(dirs, "settings")
    session = made(dirs).plan["session"]
    assert isinstance(session, dict)
    assert session["orchestrator"] == {"module": "loop-basic", "source": "/evil"}


def test_a_session_may_have_settings_of_its_own(dirs: AppDirs, tmp_path: Path) -> None:
    write(tmp_path / "session/settings.yaml", "limits: {iterations: 2}\n")
    composition = compose(
        PlanOptions(), dirs, installed=INSTALLED, session=tmp_path / "session"
    )
    session = composition.plan["session"]
    assert isinstance(session, dict)
    assert session["limits"] == {"iterations": 2}
