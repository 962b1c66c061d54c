"""Mounting a plan: load each module, mount it, and say what failed.

The loop and the context come first, then providers, tools and hooks, each in the plan's order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier.kernel.loader import LoadedModule, ModuleLoader
from amplifier.kernel.plan import ModuleSpec, MountPlan
from amplifier.kernel.reports import report
from amplifier_sdk.errors import (
    AmplifierError,
    ConfigError,
    ModuleConflictError,
    ModuleError,
    ModuleLoadError,
    ModuleNotFoundError,
    ModuleValidationError,
    Problem,
)
from amplifier_sdk.events import (
    MODULE_LOAD_FAILED,
    MODULE_ON_SESSION_READY_FAILED,
    ModuleLoadFailed,
    ModuleOnSessionReadyFailed,
)
from amplifier_sdk.hookspecs import ModuleKind

__all__ = ["Mounting"]

REQUIRED: Final = frozenset({"orchestrator", "context", "hook"})
"""The types without which a session does not start: the loop, the memory, and whatever guards it."""


@attrs.define(eq=False)
class Mounting:
    """Mounts one plan on one coordinator; `failures` are the modules the session starts without."""

    plan: MountPlan
    loader: ModuleLoader
    coordinator: ModuleCoordinator
    failures: list[ModuleError] = attrs.field(factory=list)

    async def mount_all(self) -> None:
        """Mount every module of the plan and tell each that the session is ready.

        Raises:
            ModuleError: a module that the session cannot do without failed.
        """
        self.failures.clear()
        ready: list[LoadedModule] = []
        for kind in self.loader.kinds:
            for spec in self.plan.modules[kind.name]:
                try:
                    ready.append(await self._mount(spec, kind))
                except ModuleError as error:
                    if kind.name in REQUIRED:
                        raise
                    self.failures.append(error)
        self._check_mounted()
        for failure in self.failures:
            await self._announce_failure(failure)
        for module in ready:
            await self._tell_ready(module)

    async def _mount(self, spec: ModuleSpec, kind: ModuleKind) -> LoadedModule:
        """Load and mount one module; every failure becomes an error that names it."""
        loaded = await self.loader.load(spec, kind, self.coordinator.plugins, self.plan.session.limits)
        try:
            await self.coordinator.mount_module(spec, kind, loaded.plugin)
        except ConfigError as error:
            problems = [
                Problem(".".join(filter(None, (spec.config_path, problem.path))), problem.message)
                for problem in error.problems
            ]
            raise ConfigError(problems, subject=f"configuration of module {spec.module!r}") from error
        except AmplifierError as error:
            if isinstance(error, ModuleError) and error.distribution is not None:
                raise
            raise _mount_error(loaded, error) from error
        except (Exception, SystemExit) as error:  # foreign code
            raise _mount_error(loaded, error) from error
        return loaded

    def _check_mounted(self) -> None:
        """Refuse to start without a loop or a context."""
        table = self.coordinator.mount_points
        for kind in self.loader.kinds:
            if kind.single and table[kind.mount_point] is None:
                spec = self.plan.modules[kind.name][0]
                raise ModuleLoadError(spec.module, f"mounted no {kind.name}; the session cannot start without one")

    async def _announce_failure(self, failure: ModuleError) -> None:
        report("module.load_failed", failure, module=failure.module_id, distribution=failure.distribution)
        payload = ModuleLoadFailed(
            module_id=failure.module_id,
            module_type=self.loader.type_of(failure.module_id),
            error=str(failure),
            reason_code=_REASONS.get(type(failure), "unknown"),
        )
        await self.coordinator.hooks.emit(MODULE_LOAD_FAILED, payload)

    async def _tell_ready(self, module: LoadedModule) -> None:
        """Call a module's `on_session_ready`; a failure is announced and ends nothing."""
        if module.ready is None:
            return
        try:
            await module.ready(self.coordinator)
        except (Exception, SystemExit) as error:  # foreign code
            report("module.on_session_ready_failed", error, module=module.id)
            payload = ModuleOnSessionReadyFailed(module_id=module.id, error=f"{type(error).__name__}: {error}")
            await self.coordinator.hooks.emit(MODULE_ON_SESSION_READY_FAILED, payload)


_REASONS: Final[Mapping[type[ModuleError], str]] = {
    ModuleNotFoundError: "missing_source",
    ModuleLoadError: "invalid_entry_point",
    ModuleValidationError: "validation_failed",
    ModuleConflictError: "invalid_module_metadata",
}
"""The reason codes of `module:load_failed`."""


def _mount_error(loaded: LoadedModule, error: BaseException) -> ModuleError:
    """Name the module and its distribution in what went wrong while it mounted."""
    reason = error.reason if isinstance(error, ModuleError) else f"mounting failed: {type(error).__name__}: {error}"
    cls = type(error) if isinstance(error, (ModuleConflictError, ModuleValidationError)) else ModuleLoadError
    return cls(loaded.id, reason, distribution=loaded.distribution)
