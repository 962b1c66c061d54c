"""Where the modules of a plan come from, and whether they still come from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amplifier.app.modules.resolver import LayeredResolver
from amplifier.app.store.recorded import ModuleOrigin
from amplifier.kernel.modules.loader import ModuleInfo, ModuleLoader
from amplifier.kernel.plans.plan import MountPlan
from amplifier_sdk.errors import ModuleError, Problem
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["check_origins", "find_origins"]


def find_origins(
    plan: Mapping[str, JSONValue], resolver: LayeredResolver
) -> tuple[ModuleOrigin, ...]:
    """Return where each module of a plan comes from now, sorted by id; one that cannot be used has no origin.

    Raises:
        ConfigError: the plan has problems.
    """
    installed = {info.id: info for info in ModuleLoader().discover()}
    origins = []
    for module, hint in sorted(_modules(plan).items()):
        try:
            origins.append(_origin(module, hint, resolver, installed.get(module)))
        except ModuleError:  # the session has opened without it
            origins.append(ModuleOrigin(module=module))
    return tuple(origins)


def check_origins(
    recorded: Sequence[ModuleOrigin],
    plan: Mapping[str, JSONValue],
    resolver: LayeredResolver,
) -> list[Problem]:
    """Return one problem for each module that does not come any more from where it came."""
    installed = {info.id: info for info in ModuleLoader().discover()}
    hints = _modules(plan)
    problems = []
    for origin in recorded:
        # A module that restrictions removed need not be anywhere.
        if not origin.is_known or origin.module not in hints:
            continue
        name = origin.module
        try:
            now = _origin(name, hints[name], resolver, installed.get(name))
            problem = _difference(origin, now)
        except ModuleError as error:
            problem = str(error)
        if problem:
            problems.append(Problem(name, problem))
    return problems


def _modules(plan: Mapping[str, JSONValue]) -> dict[str, object]:
    specs = MountPlan.read(plan).modules.values()
    return {spec.module: spec.source for of_kind in specs for spec in of_kind}


def _origin(
    module: str, hint: object, resolver: LayeredResolver, installed: ModuleInfo | None
) -> ModuleOrigin:
    location = resolver.locate(module, hint)
    if location is not None:
        return ModuleOrigin(module=module, source=str(location))
    if installed is None:
        return ModuleOrigin(module=module)
    return ModuleOrigin(
        module=module, distribution=installed.distribution, version=installed.version
    )


def _difference(then: ModuleOrigin, now: ModuleOrigin) -> str:
    if not now.is_known:
        return f"it came from {_described(then)}, and is not there any more"
    if then.source != now.source or then.distribution != now.distribution:
        return f"it came from {_described(then)}, and comes from {_described(now)} now"
    # Minor versions of a package keep its behaviour; refusing them would end every
    # session at each update.
    if _major(then.version) != _major(now.version):
        return f"it was version {then.version} of {then.distribution}, and is {now.version} now"
    return ""


def _described(origin: ModuleOrigin) -> str:
    return origin.source or " ".join(
        filter(None, (origin.distribution, origin.version))
    )


def _major(version: str | None) -> str:
    return (version or "").split(".")[0]
