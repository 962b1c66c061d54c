"""Run every check in turn; a check that fails is a finding as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

import anyio
from anyio import to_thread

from amplifier.app.directories import AppDirs
from amplifier.app.doctor.environment import (
    check_extras,
    check_home,
    check_platform,
    check_sandbox,
)
from amplifier.app.doctor.findings import DoctorFinding, broken, fine, warning
from amplifier.app.doctor.modules import check_modules
from amplifier.app.doctor.storage import check_secrets, check_sessions, check_trust
from amplifier.app.plans.base_plans import PlanOptions, installed_modules
from amplifier.app.providers.details import ProviderState, inspect_providers
from amplifier.app.providers.entries import list_entries, load_keys
from amplifier.app.sessions.composition import Composition, bare_composition, compose
from amplifier.app.sessions.details import find_problems
from amplifier.app.settings.secrets import SecretStore
from amplifier.app.settings.settings import Settings
from amplifier_kit.processes import find_sandbox
from amplifier_sdk.errors import ConfigError

__all__ = ["examine"]


async def examine(dirs: AppDirs, *, timeout: float = 60.0) -> list[DoctorFinding]:
    """Look at everything and return what was found, in the order in which one thing rests on another.

    Args:
        dirs: where the files stand.
        timeout: seconds that importing the modules may take, and that mounting one provider may take.
    """
    found: list[DoctorFinding] = []
    for area, check in (
        ("platform", check_platform),
        ("extras", check_extras),
        ("home", partial(check_home, dirs)),
        ("secrets", partial(check_secrets, dirs)),
    ):
        with _guarded(area, found):
            found.extend(check())
    composition: Composition | None = None
    with _guarded("settings", found):
        composition = _composition(dirs, found)
    if composition is not None:
        with _guarded("modules", found):
            look = partial(check_modules, composition.plan, timeout=timeout)
            found += await to_thread.run_sync(lambda: [*look()])
        with _guarded("providers", found):
            found += await _check_providers(composition, timeout)
        with _guarded("trust", found):
            found.extend(check_trust(dirs, composition.project))
    with _guarded("sandbox", found):
        found.append(check_sandbox(await find_sandbox()))
    with _guarded("sessions", found):
        found.extend(check_sessions(dirs))
    return found


@contextmanager
def _guarded(area: str, found: list[DoctorFinding]) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # a check that fails must not hide what the others find
        problem = f"it cannot be read: {type(error).__name__}: {error}"
        found.append(broken(area, problem, "repair what the message names"))


def _composition(dirs: AppDirs, found: list[DoctorFinding]) -> Composition | None:
    """Say what new sessions are made of, and add what keeps them from being made to the findings."""
    try:
        bare = bare_composition(dirs)
    except ConfigError as error:
        remedy = "correct the file; 'amplifier config edit' opens it"
        found += _findings_of("settings", error, remedy)
        return None
    found.append(_settings(bare.settings))
    try:
        composition = compose(PlanOptions(), dirs, fill=False)
        compose(PlanOptions(), dirs)
    except ConfigError as error:
        remedy = "'amplifier profile show' and 'amplifier config explain' say where it stands"
        found += _findings_of("profile", error, remedy)
        return bare
    name = "none; sessions are made of what is installed"
    if composition.profile is not None:
        name = composition.profile.name
    problems = find_problems(composition, installed_modules())
    remedy = "'amplifier profile show' says where each value comes from"
    found += [broken("profile", str(problem), remedy) for problem in problems]
    if not problems:
        found.append(fine("profile", name))
    return composition


def _settings(settings: Settings) -> DoctorFinding:
    files = ", ".join(str(layer.path) for layer in settings.layers)
    if files:
        return fine("settings", f"sound: {files}")
    return fine("settings", "there is no file; all values are the defaults")


def _findings_of(area: str, error: ConfigError, remedy: str) -> Iterator[DoctorFinding]:
    for problem in error.problems:
        yield broken(area, f"{error.subject}: {problem}", remedy)


async def _check_providers(
    composition: Composition, timeout: float
) -> Sequence[DoctorFinding]:
    """Mount each provider by itself and tell whether its key is there; nothing is asked of a vendor."""
    keys = await to_thread.run_sync(load_keys, SecretStore.of(composition.dirs))
    entries = list_entries(composition)
    with anyio.fail_after(timeout * max(1, len(entries))):
        states = await inspect_providers(entries, composition, keys, timeout=timeout)
    used = [_provider(state) for state in states if state.entry.is_used]
    others = [
        state.entry.name
        for state in states
        if not (state.entry.is_used or state.problem or state.needs_key)
    ]
    if not used:
        remedy = "amplifier provider use ID, or amplifier init"
        used = [broken("providers", "new sessions have no provider", remedy)]
    if others:
        message = f"others that could be used: {', '.join(others)}"
        used.append(fine("providers", message))
    return used


def _provider(state: ProviderState) -> DoctorFinding:
    say, name = broken, state.entry.name
    if not state.entry.is_asked:
        say, name = warning, f"{name} (not the one that is asked)"
    if state.problem:
        remedy = f"amplifier config explain overrides.{state.entry.module}"
        return say("providers", f"{name}: {state.problem}", remedy)
    variables = [key.variable for key in state.keys]
    if state.needs_key:
        remedy = f"amplifier config secret set {(variables or ['NAME'])[0]}"
        return say("providers", f"{name}: its key is not there", remedy)
    message = f"{name}: no key needed"
    for key in state.keys:
        if key.source is not None:
            message = f"{name}: key {key.variable} from {_SOURCES[key.source]}"
            break
    if state.model:
        message += f", model {state.model}"
    return fine("providers", message)


_SOURCES: Final = {
    "environment": "the environment",
    "keyring": "the keyring",
    "file": "secrets.json",
}
