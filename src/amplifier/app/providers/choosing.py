"""Choosing the provider of new sessions, in the settings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import attrs
from anyio import to_thread

from amplifier.app.changing import change
from amplifier.app.composition import Composition
from amplifier.app.providers.entries import ProviderEntry, Survey
from amplifier.app.providers.looking import ProviderState, inspect_providers
from amplifier.app.settings.layers import value_at
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["use_provider"]

_LIST = ("config", "providers")


async def use_provider(
    entry: ProviderEntry,
    survey: Survey,
    *,
    config: Mapping[str, JSONValue],
    scope: str,
    timeout: float = 30.0,
    dry_run: bool = False,
) -> tuple[ProviderState, Path | None]:
    """Make a provider the one of new sessions; return how it stands then, and the settings file.

    Args:
        entry: the provider.
        survey: the providers there are, and what new sessions are made of.
        config: options of the module, laid over those that it has.
        scope: whose settings are changed: `local`, `project` or `user`.
        timeout: seconds that mounting it may take.
        dry_run: only try whether it mounts, and change nothing.

    Raises:
        ConfigError: it does not mount with these options, or the settings would not be sound.
        AmplifierError: the scope has no file here, or the person trusts not what is in it.
        OSError: the file cannot be written.
    """
    merged: JSONObject = {**entry.entry, "config": {**_mapping(entry.entry.get("config")), **config}}
    tried = attrs.evolve(entry, entry=merged if merged["config"] else entry.entry)
    (state,) = await inspect_providers([tried], survey.composition, survey.keys, timeout=timeout)
    if state.problem:
        raise ConfigError([Problem(entry.name, state.problem)], subject="choice of a provider")
    if dry_run:
        return state, None
    places = survey.composition.places
    if config:
        key, value = _place(entry, survey.composition, config, scope)
        await to_thread.run_sync(partial(change, scope, key, value, places))
    return state, await to_thread.run_sync(partial(change, scope, ("config", "active"), entry.name, places))


def _place(
    entry: ProviderEntry, composition: Composition, config: Mapping[str, JSONValue], scope: str
) -> tuple[tuple[str | int, ...], JSONValue]:
    """Return the key of the provider in a scope's file, behind the last where it has none yet, and its new value."""
    layer = next((layer for layer in composition.settings.layers if layer.scope == scope), None)
    listed = None if layer is None else value_at(layer.values, _LIST)
    entries = listed if isinstance(listed, list) else []
    instance = entry.entry.get("instance_id")
    for index, known in enumerate(entries):
        if isinstance(known, dict) and (known.get("module"), known.get("id")) == (entry.module, instance):
            return (*_LIST, index), {**known, "config": {**_mapping(known.get("config")), **config}}
    fresh: JSONObject = {"module": entry.module, **({"id": instance} if instance else {}), "config": dict(config)}
    return (*_LIST, len(entries)), fresh


def _mapping(value: JSONValue) -> Mapping[str, JSONValue]:
    return value if isinstance(value, Mapping) else {}
