"""The providers there are: those of new sessions, and the others that are installed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.plan_entries import entries
from amplifier.app.plans.base_plans import (
    PlanOptions,
    full_id,
    installed_modules,
    provider_and_model,
)
from amplifier.app.sessions.composition import Composition, bare_composition, compose
from amplifier.app.settings.plan_overlay import apply_settings
from amplifier.app.settings.secrets import SecretStore
from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.errors import ConfigError, did_you_mean
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "KeySource",
    "ProviderEntry",
    "Survey",
    "find_entry",
    "list_entries",
    "load_keys",
    "survey_providers",
]

KeySource: TypeAlias = Literal["environment", "keyring", "file"]
"""Where a key is."""

_PREFIX: Final = "provider-"


@attrs.frozen(kw_only=True)
class ProviderEntry:
    """A provider of a plan, or one that is installed.

    Args:
        entry: its entry in a mount plan, references to the environment as they were written.
        is_used: whether new sessions have it.
        is_asked: whether it is the one that new sessions ask first.
    """

    entry: JSONObject = attrs.field(repr=False)
    is_used: bool = False
    is_asked: bool = False

    @property
    def module(self) -> str:
        """The module's id."""
        return str(self.entry.get("module"))

    @property
    def name(self) -> str:
        """What names it among the providers: the instance's id, else the module's."""
        return str(self.entry.get("instance_id") or self.module)


@attrs.frozen(kw_only=True)
class Survey:
    """The providers of a working directory.

    Args:
        composition: what new sessions are made of, references as they were written.
        entries: the providers, the one that is asked first.
        keys: where the variables come from that are set.
        problem: what keeps new sessions from being made.
    """

    composition: Composition
    entries: tuple[ProviderEntry, ...]
    keys: Mapping[str, KeySource]
    problem: ConfigError | None = None


def survey_providers(dirs: AppDirs, installed: Sequence[str] | None = None) -> Survey:
    """Look at the providers of a working directory; the person's secrets are in the environment afterwards.

    Args:
        dirs: where the files stand.
        installed: the ids of the modules that can be mounted; default what this interpreter has.

    Raises:
        ConfigError: a file of settings has problems.
        PrivateFileError: others may have written the file of secrets, or it is damaged.
    """
    keys = load_keys(SecretStore.of(dirs))
    problem: ConfigError | None = None
    try:
        composition = compose(PlanOptions(), dirs, installed=installed, fill=False)
    except ConfigError as error:
        composition, problem = bare_composition(dirs), error
    entries = list_entries(composition, installed)
    return Survey(
        composition=composition, entries=tuple(entries), keys=keys, problem=problem
    )


def load_keys(store: SecretStore) -> dict[str, KeySource]:
    """Put stored secrets into the environment, and return where each stored or set variable comes from.

    Raises:
        PrivateFileError: others may have written the file of secrets, or it is damaged.
    """
    # Before they enter the environment, where they could not be distinguished from what
    # was set.
    names = store.names()
    before: dict[str, KeySource] = {
        name: "environment" for name, value in os.environ.items() if value
    }
    entered = store.enter()
    return {**before, **{name: names[name] for name in entered}}


def list_entries(
    composition: Composition, installed: Sequence[str] | None = None
) -> list[ProviderEntry]:
    """Return the providers of new sessions, the one that is asked first, then the others that are installed.

    Args:
        composition: what new sessions are made of, references as they were written.
        installed: the ids of the modules that can be mounted; default what this interpreter has.
    """
    if installed is None:
        installed = installed_modules()
    used = entries(composition.plan, "providers")
    ordered = sorted(used, key=_priority)
    asked, _ = provider_and_model(composition.plan)
    # A stable sort: after the one that is asked, the order by priority stays.
    ordered.sort(key=lambda entry: asked is None or asked not in _names(entry))
    modules = {entry.get("module") for entry in used}
    others: list[JSONValue] = [
        {"module": module}
        for module in installed
        if module.startswith(_PREFIX) and module not in modules
    ]
    settings = composition.settings
    # without the choice of one of them
    listed = as_object(settings.values.get("config")).get("providers") or []
    values = {**settings.values, "config": {"providers": listed}, "modules": {}}
    plain = attrs.evolve(settings, values=values)
    changed = apply_settings({"providers": others}, plain).get("providers")
    named = [_names(entry) for entry in used]
    return [
        *(
            ProviderEntry(entry=entry, is_used=True, is_asked=entry is ordered[0])
            for entry in ordered
        ),
        *(
            ProviderEntry(entry=entry)
            for entry in as_list(changed)
            if isinstance(entry, dict) and _names(entry) not in named
        ),
    ]


def find_entry(
    entries: Sequence[ProviderEntry], name: str | None = None
) -> ProviderEntry:
    """Return the provider of a name: an instance, a module, or a module without its `provider-`.

    Args:
        entries: the providers there are.
        name: default the one that new sessions ask first.

    Raises:
        ConfigError: there is none; names the nearest.
    """
    if name is None and entries and entries[0].is_asked:
        return entries[0]
    known = [entry.name for entry in entries]
    wanted, problem = "", "new sessions have no provider"
    if name is not None:
        wanted, problem = full_id(name, known), "no such provider is installed"
    for entry in entries:
        if wanted in (entry.name, entry.module):
            return entry
    # all would be alike by their prefix
    short = [other.removeprefix(_PREFIX) for other in known]
    near = did_you_mean(wanted.removeprefix(_PREFIX), short)
    hint = near or f"; installed: {', '.join(short) or 'none'}"
    raise ConfigError.of(name or "", problem + hint, subject="choice of a provider")


def _names(entry: JSONObject) -> tuple[JSONValue, ...]:
    module = entry.get("module")
    short = str(module or "").removeprefix(_PREFIX)
    return entry.get("instance_id"), module, short


def _priority(entry: JSONObject) -> float:
    priority = as_object(entry.get("config")).get("priority")
    if isinstance(priority, (int, float)):
        return priority
    return 100
