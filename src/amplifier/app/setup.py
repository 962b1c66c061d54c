"""The first set-up: provider, key, model, profile, decided first and then carried out in one go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import attrs
from anyio import to_thread

from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import DEFAULT_PROVIDER, PlanOptions
from amplifier.app.providers.details import ProviderState
from amplifier.app.providers.entries import ProviderEntry, Survey
from amplifier.app.providers.selection import use_provider
from amplifier.app.sessions.activation import activate
from amplifier.app.sessions.composition import compose
from amplifier.app.settings.secrets import SecretStore
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.secret import Secret

__all__ = ["SetupDecision", "carry_out", "suggest"]

_OTHER_WINS: Final = "; in this folder another choice wins: 'amplifier config explain profile.active', or bundle.active"


@attrs.frozen(kw_only=True)
class SetupDecision:
    """What was decided.

    Args:
        provider: the provider of new sessions.
        model: the model of requests that name none; `None` leaves it to the provider.
        options: further options of the provider.
        variable: the variable under which the key is stored.
        key: the key; `None` where none is to be stored.
        profile: the profile of new sessions; `None` leaves it as it is.
        scope: whose settings are changed.
    """

    provider: ProviderEntry
    model: str | None = None
    options: Mapping[str, JSONValue] = attrs.field(factory=dict)
    variable: str | None = None
    key: Secret | None = None
    profile: str | None = None
    scope: str = "user"


def suggest(states: Sequence[ProviderState]) -> ProviderState | None:
    """Return the provider that a person most likely wants: one whose key is there, else the one that needs none.

    Args:
        states: the providers, the one that new sessions ask first.
    """
    sound = [state for state in states if not state.problem]
    keyed = [
        state for state in sound if any(key.source is not None for key in state.keys)
    ]
    free = [state for state in sound if not state.needs_key]
    embedded = [state for state in free if state.entry.module == DEFAULT_PROVIDER]
    return next(iter([*keyed, *embedded, *free, *sound]), None)


async def carry_out(
    setup: SetupDecision, survey: Survey, *, dry_run: bool = False
) -> list[str]:
    """Carry out what was decided and say what was done, a line each; the key is in none of them.

    What can fail is tried before anything is changed.

    Args:
        setup: what was decided.
        survey: the providers there are.
        dry_run: only try it, and say what would be done.

    Raises:
        ConfigError: the provider does not mount, or there is no such profile.
        AmplifierError: the scope has no file here.
        OSError: a file cannot be written.
    """
    dirs = survey.composition.dirs
    config = dict(setup.options)
    if setup.model is not None:
        config["default_model"] = setup.model
    state, _ = await use_provider(
        setup.provider, survey, config=config, scope=setup.scope, dry_run=True
    )
    if setup.profile is not None:
        await to_thread.run_sync(
            partial(compose, PlanOptions(profile=setup.profile), dirs, fill=False)
        )
    lines = []
    if setup.key is not None and setup.variable is not None:
        where = "the keyring or secrets.json"
        if not dry_run:
            where = await to_thread.run_sync(
                partial(_keep, dirs, setup.variable, setup.key)
            )
        lines.append(f"key: {setup.variable} is stored in {where}")
    if not dry_run:
        await use_provider(setup.provider, survey, config=config, scope=setup.scope)
    lines.append(f"provider: {setup.provider.name}")
    if state.model:
        lines[-1] += f", model {state.model}"
    if setup.profile is not None:
        lines.append(f"profile: {setup.profile}")
        if not dry_run:
            chosen = await to_thread.run_sync(
                activate, setup.profile, setup.scope, dirs
            )
            if not chosen.holds:
                lines[-1] += _OTHER_WINS
    return lines


def _keep(dirs: AppDirs, variable: str, key: Secret) -> str:
    where = SecretStore.of(dirs).set(variable, key.reveal())
    if where == "keyring":
        return "the keyring"
    return "secrets.json of your own folder"
