"""The adapter of original modules: what the module loader asks once somebody has imported `amplifier_core`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from inspect import iscoroutinefunction, isroutine, signature
from types import ModuleType
from typing import TypeAlias, cast

import attrs

from amplifier.compat.finder import FINDER, OriginalImportedError, is_provided
from amplifier.compat.sources import ModuleSources
from amplifier.kernel.coordinator import ModuleCoordinator as KernelCoordinator
from amplifier.kernel.modules.shapes import ImportedModule
from amplifier.kernel.spans import current_module
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import ModuleLoadError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.modules import definition_of

__all__ = ["adapt", "find_spec"]

_Mount: TypeAlias = Callable[[object, dict[str, object]], Awaitable[object]]
"""An original module's `mount`."""


def find_spec(
    fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
) -> ModuleSpec | None:
    """Find `amplifier_core` or a submodule of it."""
    return FINDER.find_spec(fullname, path, target)


def adapt(imported: ImportedModule) -> ImportedModule:
    """Return a module as the session mounts it; one that does not import the original's name stays as it is.

    Raises:
        ModuleLoadError: the original itself is imported, so the module has its classes.
    """
    # an application may hand in the package itself, which Python need not know
    package = imported.package or imported.target
    if (
        not isinstance(package, ModuleType)
        or definition_of(imported.target) is not None
    ):
        return imported
    sources = ModuleSources.of(package)
    if not sources.is_original:
        return imported
    try:
        is_provided()
    except OriginalImportedError as error:
        raise ModuleLoadError(
            imported.id, str(error), distribution=imported.distribution
        ) from error
    target = imported.target
    mount = target if isroutine(target) else getattr(target, "mount", None)
    if not iscoroutinefunction(mount):
        return imported
    return attrs.evolve(
        imported,
        target=_mounting(imported, cast("_Mount", mount), sources),
        package=_Package(package),
    )


def _mounting(
    imported: ImportedModule, mount: _Mount, sources: ModuleSources
) -> _Mount:
    """Return the function that mounts a module of the original on a session."""
    takes_config = len(signature(mount).parameters) > 1

    async def mount_original(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        sources.check_backend(imported.id, imported.distribution)
        view = _view(coordinator)
        _leave_injections_whole(view)
        if takes_config:
            result = await mount(view, dict(config))
        else:
            result = await cast("Callable[[object], Awaitable[object]]", mount)(view)
        # a clean-up, or an instance that is mounted nowhere; a dict of metadata is information for nobody
        from amplifier.compat.mounts import mounted_alone

        if isroutine(result) or isinstance(result, partial):
            return result
        return mounted_alone(result, view)

    return mount_original  # type: ignore[return-value]  # the contract's names


def _leave_injections_whole(coordinator: object) -> None:
    """Let the module that is mounted inject texts of any size, unless the plan itself limits that."""
    module = current_module.get()
    if module is None or not isinstance(coordinator, KernelCoordinator):
        return
    session = coordinator.config.get("session")
    if not isinstance(session, Mapping) or "injection_size_limit" not in session:
        coordinator.decisions.unbounded.append(module)


def _view(coordinator: Coordinator) -> object:
    from amplifier.compat.original.coordinator import ModuleCoordinator

    given: object = coordinator
    if isinstance(given, KernelCoordinator) and not isinstance(
        given, ModuleCoordinator
    ):
        return ModuleCoordinator.over(given)
    return given


class _Package(ModuleType):
    """A package of the original, whose `on_session_ready` gets the coordinator that it knows."""

    def __init__(self, package: ModuleType) -> None:
        super().__init__(package.__name__)
        self._package = package

    def __getattr__(self, name: str) -> object:
        return getattr(self._package, name)

    @property
    def on_session_ready(self) -> object:
        """What the module wants called when every module is mounted."""
        ready = getattr(self._package, "on_session_ready", None)
        if not iscoroutinefunction(ready):
            return ready

        async def call(coordinator: Coordinator) -> object:
            return await ready(_view(coordinator))

        return call
