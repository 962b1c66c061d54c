"""Choosing the provider of new sessions, in the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import attrs
from anyio import to_thread

from amplifier.app.providers.details import ProviderState, inspect_providers
from amplifier.app.providers.entries import ProviderEntry, Survey
from amplifier.app.settings.changes import revise
from amplifier.app.settings.layers import Key, find_module, value_at
from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.errors import ConfigError
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
    merged: JSONObject = {
        **entry.entry,
        "config": {**as_object(entry.entry.get("config")), **config},
    }
    tried = attrs.evolve(entry, entry=merged if merged["config"] else entry.entry)
    (state,) = await inspect_providers(
        [tried], survey.composition, survey.keys, timeout=timeout
    )
    if state.problem:
        raise ConfigError.of(entry.name, state.problem, subject="choice of a provider")
    if dry_run:
        return state, None

    def chosen(values: JSONObject) -> Iterator[tuple[Key, JSONValue]]:
        if config:
            yield from _configured(entry, values, config)
        yield ("config", "active"), entry.name

    return state, await to_thread.run_sync(
        partial(revise, scope, chosen, survey.composition.dirs)
    )


def _configured(
    entry: ProviderEntry, values: JSONObject, config: Mapping[str, JSONValue]
) -> Iterator[tuple[Key, JSONValue]]:
    """Yield what is set of the provider in a scope's file, or the whole of it where it is not there yet."""
    listed = as_list(value_at(values, _LIST))
    instance = entry.entry.get("instance_id")
    index = find_module(listed, entry.module, instance)
    if index < len(listed):
        for name, value in config.items():
            yield (*_LIST, index, "config", name), value
        return
    fresh: JSONObject = {"module": entry.module, "config": dict(config)}
    if instance:
        fresh["id"] = instance
    yield (*_LIST, index), fresh
