"""What comes along is whole: it can be read, its mentions lead somewhere, its profiles make a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier import MountPlanValidator
from amplifier.app.agents.library import AgentLibrary
from amplifier.app.collections.catalogue import Catalogue
from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.collections.installation import CollectionInstaller
from amplifier.app.directories import AppDirs
from amplifier.app.mentions.resolver import MentionResolver
from amplifier.app.mentions.session import SessionMentions
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.sessions.composition import compose
from amplifier.app.settings.schema import MentionSettings
from amplifier.app.settings.settings import Settings

PROFILES = ("base", "dev", "research")


def library(dirs: AppDirs) -> CollectionLibrary:
    return CollectionLibrary(dirs, ProjectFiles(dirs))


@pytest.mark.parametrize("name", PROFILES)
async def test_a_profile_is_a_sound_plan_with_a_whole_instruction(
    dirs: AppDirs, name: str
) -> None:
    composition = compose(PlanOptions(profile=f"foundation:{name}"), dirs, installed=())
    assert MountPlanValidator().validate(composition.plan) == ()
    assert composition.profile is not None
    assert composition.profile.chain[-1].head.description
    mentions = SessionMentions(dirs, composition.collections, MentionSettings())
    text = await mentions.instruction(
        composition.instruction or "", composition.profile.folder
    )

    assert "<context_file" in text
    assert "How to work here" in text


def test_the_base_profile_needs_what_the_default_extra_brings(dirs: AppDirs) -> None:
    plan = compose(
        PlanOptions(profile="foundation:profiles/base.md"), dirs, installed=()
    ).plan

    assert {key: plan[key] for key in ("session", "providers", "tools", "hooks")} == {
        "session": {
            "orchestrator": {"module": "loop-streaming"},
            "context": {"module": "context-simple"},
            "ask_before_changes": True,
        },
        "providers": [{"module": "provider-local"}],
        "tools": [{"module": "tool-filesystem"}],
        "hooks": [
            {"module": f"hooks-{name}"}
            for name in ("redaction", "logging", "approval", "backup")
        ],
    }


def test_the_agents_are_found(dirs: AppDirs) -> None:
    project = ProjectFiles(dirs)
    agents = AgentLibrary(dirs, project, CollectionLibrary(dirs, project)).all()

    assert {"explorer", "planner", "reviewer"} <= set(agents)
    assert all(
        agent.description and agent.plan.get("system") for agent in agents.values()
    )
    reading = [{"module": "tool-filesystem", "config": {"allowed_write_paths": []}}]
    assert [agent.plan["tools"] for agent in agents.values()] == [reading] * len(agents)


@pytest.mark.parametrize(
    "name", ["AGENTS.md", "DISCOVERIES.md", "IMPLEMENTATION_PHILOSOPHY.md"]
)
def test_the_texts_are_mentioned_by_name(dirs: AppDirs, name: str) -> None:
    path = MentionResolver(dirs, library(dirs)).resolve(f"@foundation:context/{name}")

    assert path is not None
    assert path.read_text("utf-8").startswith("# ")


def test_what_can_be_installed_by_name_can_be_used(dirs: AppDirs) -> None:
    for name in Catalogue.of(Settings()).sources:
        (change,) = CollectionInstaller.of(dirs, offline=True).install(name)
        assert change.version
        assert all(
            path.read_text("utf-8").startswith("# ")
            for path in Path(change.path).rglob("*.md")
        )
    assert (
        library(dirs).require("developer-expertise").find("testing/best-practices.md")
        is not None
    )
