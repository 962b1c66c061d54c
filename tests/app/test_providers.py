"""Providers: which there are, whether their keys are there, what they offer, and which one sessions ask."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.profiles.selection import active_profile
from amplifier.app.providers.details import (
    ProviderState,
    ask_provider,
    inspect_providers,
    list_models,
)
from amplifier.app.providers.entries import Survey, find_entry, survey_providers
from amplifier.app.providers.selection import use_provider
from amplifier.app.sessions.activation import activate
from amplifier.app.sessions.composition import compose
from amplifier.app.settings.changes import change
from amplifier.app.settings.secrets import SecretStore
from amplifier.app.settings.settings import load_settings
from amplifier.app.setup import SetupDecision, carry_out, suggest
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.secret import Secret
from tests.app.installing import ACME, install, install_ours
from tests.app.projects import trust, write

INSTALLED = (
    "context-simple",
    "loop-basic",
    "provider-acme",
    "provider-local",
    "provider-lost",
    "provider-nothing",
    "provider-odd",
)
PROFILE = """\
---
profile: {name: dev, model: other/large}
session: {orchestrator: loop-basic, context: context-simple}
providers: [provider-other, {module: provider-acme, config: {priority: 5}}]
---
"""


@pytest.fixture(autouse=True)
def acme(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_ours(
        site, "loop-basic", "context-simple", "provider-local", "provider-scripted"
    )
    points = {
        "provider-acme": "acme_modules:mount",
        "provider-lost": "acme_modules:mount_lost",
        "provider-nothing": "acme_modules:mount_nothing",
        "provider-odd": "acme_modules:mount_odd",
    }
    install(site, "acme-modules", points, ACME)
    monkeypatch.delenv("ACME_KEY", raising=False)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")


async def look(survey: Survey, *names: str) -> list[ProviderState]:
    entries = [find_entry(survey.entries, name) for name in names]
    return await inspect_providers(entries, survey.composition, survey.keys, timeout=10)


def test_providers_of_sessions_come_first_and_others_follow(
    dirs: AppDirs,
) -> None:
    write(dirs.home / "profiles/dev.md", PROFILE)
    write(
        dirs.home / "settings.yaml",
        "profile: {active: dev}\noverrides: {provider-lost: {config: {a: 1}}}\n",
    )
    entries = survey_providers(dirs, INSTALLED).entries
    assert [(entry.name, entry.is_used, entry.is_asked) for entry in entries] == [
        ("provider-other", True, True),
        ("provider-acme", True, False),
        ("provider-local", False, False),
        ("provider-lost", False, False),
        ("provider-nothing", False, False),
        ("provider-odd", False, False),
    ]
    assert find_entry(entries, "lost").entry == {
        "module": "provider-lost",
        "config": {"a": 1},
    }


def test_without_told_provider_lowest_priority_is_asked_first(
    dirs: AppDirs,
) -> None:
    write(dirs.home / "profiles/dev.md", PROFILE.replace(", model: other/large", ""))
    write(dirs.home / "settings.yaml", "profile: {active: dev}\n")
    entries = survey_providers(dirs, INSTALLED).entries
    assert [entry.name for entry in entries if entry.is_asked] == ["provider-acme"]


def test_instances_of_a_module_are_told_apart(dirs: AppDirs) -> None:
    text = "config: {providers: [{module: provider-acme}, {module: provider-acme, id: second}], active: second}\n"
    write(dirs.home / "settings.yaml", text)
    survey = survey_providers(dirs, INSTALLED)
    assert survey.composition.plan["providers"] == [
        {"module": "provider-acme", "instance_id": "second"}
    ]
    assert [entry.name for entry in survey.entries if entry.is_used] == ["second"]
    assert find_entry(survey.entries).name == "second"
    assert find_entry(survey.entries, "acme").name in ("second", "provider-acme")


@pytest.mark.parametrize(
    ("name", "reported"),
    [("acmee", "did you mean 'acme'"), ("0000", "installed: .*acme")],
)
def test_a_provider_that_is_not_there_is_told_with_the_nearest(
    dirs: AppDirs, name: str, reported: str
) -> None:
    with pytest.raises(ConfigError, match=reported):
        find_entry(survey_providers(dirs, INSTALLED).entries, name)


def test_sessions_without_a_provider_are_told(dirs: AppDirs) -> None:
    write(
        dirs.home / "profiles/dev.md",
        PROFILE.replace("providers: [", "ui: {}\nproviders: [] # ["),
    )
    write(dirs.home / "settings.yaml", "profile: {active: dev}\n")
    with pytest.raises(ConfigError, match="new sessions have no provider"):
        find_entry(survey_providers(dirs, INSTALLED).entries)


def test_unusable_sessions_do_not_hide_providers(
    dirs: AppDirs,
) -> None:
    survey = survey_providers(dirs, ["provider-acme"])
    assert survey.problem is not None
    assert [entry.name for entry in survey.entries] == ["provider-acme"]


async def test_a_key_is_told_by_where_it_is_and_never_shown(
    dirs: AppDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state,) = await look(survey_providers(dirs, INSTALLED), "acme")
    assert state.needs_key
    assert [(key.variable, key.source) for key in state.keys] == [("ACME_KEY", None)]
    assert state.model == "acme-1"
    monkeypatch.setenv("ACME_KEY", "")
    SecretStore.of(dirs).set("ACME_KEY", "s3cret")
    (state,) = await look(survey_providers(dirs, INSTALLED), "acme")
    assert not state.needs_key
    assert state.keys[0].source == "file"
    assert "s3cret" not in f"{state.to_dict()} {state}"
    (state,) = await look(survey_providers(dirs, INSTALLED), "acme")
    assert state.keys[0].source == "environment"


async def test_one_that_fails_does_not_hide_the_others(dirs: AppDirs) -> None:
    survey = survey_providers(dirs, INSTALLED)
    lost, nothing, acme, odd = await look(survey, "lost", "nothing", "acme", "odd")
    assert odd.problem == "RuntimeError: it forgot its name"
    assert "the disk is gone" in lost.problem
    assert "no provider" in nothing.problem
    assert acme.info is not None
    assert lost.to_dict()["model"] is None


async def test_references_that_nothing_fills_are_told_for_provider(
    dirs: AppDirs,
) -> None:
    write(
        dirs.home / "settings.yaml",
        "overrides: {provider-acme: {config: {api_key: '${NOWHERE_KEY}'}}}\n",
    )
    (state,) = await look(survey_providers(dirs, INSTALLED), "acme")
    assert "NOWHERE_KEY is not set" in state.problem


async def test_models_are_asked_for(
    dirs: AppDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", "k")
    survey = survey_providers(dirs, INSTALLED)
    assert [
        model.id
        for model in await list_models(
            find_entry(survey.entries, "acme"), survey.composition
        )
    ] == ["acme-1"]


async def test_a_test_is_one_answer_with_its_cost(
    dirs: AppDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_KEY", "k")
    survey = survey_providers(dirs, INSTALLED)
    answered = await ask_provider(
        find_entry(survey.entries, "acme"), survey.composition, model="acme-2"
    )
    assert answered.text == "OK from acme-2"
    assert answered.spent["cost_usd"] == "0.25"
    assert answered.spent["provider_calls"] == 1


async def test_the_chosen_provider_is_the_only_one_of_new_sessions(
    dirs: AppDirs,
) -> None:
    write(dirs.home / "profiles/dev.md", PROFILE)
    write(dirs.home / "settings.yaml", "# mine\nprofile: {active: dev}\n")
    survey = survey_providers(dirs, INSTALLED)
    entry = find_entry(survey.entries, "acme")
    state, path = await use_provider(
        entry, survey, config={"default_model": "acme-9"}, scope="user"
    )
    assert state.model == "acme-9"
    assert path == dirs.home / "settings.yaml"
    composition = compose(PlanOptions(), dirs, installed=INSTALLED)
    assert composition.plan["providers"] == [
        {
            "module": "provider-acme",
            "config": {"priority": 5, "default_model": "acme-9"},
        }
    ]
    # The model that the profile names is another provider's.
    assert composition.plan["session"] == {
        "orchestrator": {"module": "loop-basic"},
        "context": {"module": "context-simple"},
        "ask_before_changes": True,
    }
    assert compose(PlanOptions(provider="other"), dirs, installed=INSTALLED).plan[
        "providers"
    ] == [{"module": "provider-other"}]
    again = survey_providers(dirs, INSTALLED)
    await use_provider(
        find_entry(again.entries),
        again,
        config={"default_model": "acme-10"},
        scope="user",
    )
    written = yaml.safe_load((dirs.home / "settings.yaml").read_text())
    assert written["config"] == {
        "providers": [
            {"module": "provider-acme", "config": {"default_model": "acme-10"}}
        ],
        "active": "provider-acme",
    }
    assert (dirs.home / "settings.yaml").read_text().startswith("# mine")


async def test_a_project_may_choose_its_own_provider_and_instance(
    dirs: AppDirs,
) -> None:
    write(
        dirs.home / "settings.yaml",
        "config: {providers: [{module: provider-acme, id: second}]}\n",
    )
    survey = survey_providers(dirs, INSTALLED)
    entry = find_entry(survey.entries, "second")
    await use_provider(
        entry, survey, config={"default_model": "acme-3"}, scope="project"
    )
    assert dirs.project is not None
    assert yaml.safe_load((dirs.project / "settings.yaml").read_text())["config"] == {
        "providers": [
            {
                "module": "provider-acme",
                "id": "second",
                "config": {"default_model": "acme-3"},
            }
        ],
        "active": "second",
    }
    trust(dirs, "settings")


@pytest.mark.parametrize(
    "config", [{"colour": "red"}, {"api_key": "plain"}], ids=["unknown", "a secret"]
)
async def test_unmountable_or_unwritable_choice_changes_nothing(
    dirs: AppDirs, config: dict[str, str]
) -> None:
    survey = survey_providers(dirs, INSTALLED)
    with pytest.raises(ConfigError):
        await use_provider(
            find_entry(survey.entries, "acme"), survey, config=config, scope="user"
        )
    assert not (dirs.home / "settings.yaml").exists()


# -- the first set-up


async def test_the_suggestion_has_its_key_or_needs_none(
    dirs: AppDirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert suggest([]) is None
    survey = survey_providers(dirs, INSTALLED)
    acme, lost = await look(survey, "acme", "lost")
    assert suggest([lost, acme]) is acme
    monkeypatch.setenv("ACME_KEY", "k")
    survey = survey_providers(dirs, INSTALLED)
    (keyed,) = await look(survey, "acme")
    local = ProviderState(entry=find_entry(survey.entries, "local"))
    assert suggest([local, keyed]) is keyed
    assert suggest([acme, local]) is local


async def test_what_was_decided_is_carried_out_or_only_tried(dirs: AppDirs) -> None:
    write(dirs.home / "profiles/dev.md", PROFILE)
    survey = survey_providers(dirs, INSTALLED)
    entry = find_entry(survey.entries, "acme")
    setup = SetupDecision(
        provider=entry,
        model="acme-4",
        variable="ACME_KEY",
        key=Secret("s3cret"),
        profile="dev",
    )
    tried = await carry_out(setup, survey, dry_run=True)
    assert [line.partition(":")[0] for line in tried] == ["key", "provider", "profile"]
    assert not (dirs.home / "settings.yaml").exists()
    assert SecretStore.of(dirs).names() == {}
    done = await carry_out(setup, survey)
    assert "s3cret" not in " ".join([*tried, *done])
    assert SecretStore.of(dirs).get("ACME_KEY") == "s3cret"
    written = yaml.safe_load((dirs.home / "settings.yaml").read_text())
    assert written["profile"] == {"active": "dev"}
    assert written["config"]["active"] == "provider-acme"


async def test_the_chosen_profile_takes_the_place_of_a_bundle(dirs: AppDirs) -> None:
    write(dirs.home / "profiles/dev.md", PROFILE)
    write(
        dirs.home / "bundles/kit.md",
        "---\nbundle: {name: kit}\nproviders: [provider-acme]\n---\n",
    )
    activate("bundle:kit", "user", dirs)
    survey = survey_providers(dirs, INSTALLED)
    setup = SetupDecision(provider=find_entry(survey.entries, "acme"), profile="dev")
    assert "profile: dev" in await carry_out(setup, survey)
    assert active_profile(load_settings(dirs)) == "dev"
    change("project", ("profile", "active"), "theirs", dirs)
    reported = await carry_out(setup, survey)
    assert reported[-1].startswith("profile: dev; in this folder another choice wins")


async def test_a_missing_profile_keeps_all_of_it_from_being_done(
    dirs: AppDirs,
) -> None:
    survey = survey_providers(dirs, INSTALLED)
    setup = SetupDecision(
        provider=find_entry(survey.entries, "acme"),
        variable="ACME_KEY",
        key=Secret("k"),
        profile="none",
    )
    with pytest.raises(ConfigError, match="no such profile"):
        await carry_out(setup, survey)
    assert SecretStore.of(dirs).names() == {}
