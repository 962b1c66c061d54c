"""The mounter of a plan: load each module, mount it, and say what failed.

The loop and the context come first, then providers, tools and hooks, each in the plan's order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import iscoroutinefunction
from typing import Final

import anyio
import attrs

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier.kernel.foreign import ForeignCall
from amplifier.kernel.modules.imports import ImportPaths
from amplifier.kernel.modules.loader import ModuleLoader
from amplifier.kernel.modules.mounts import RESOLVER
from amplifier.kernel.modules.shapes import LoadedModule, Ready, load_plugin
from amplifier.kernel.plans.plan import ModuleSpec, MountPlan
from amplifier.kernel.reports import report
from amplifier.kernel.spans import current_module
from amplifier_sdk.errors import (
    AmplifierError,
    ConfigError,
    ModuleConfigError,
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
from amplifier_sdk.limits import Limits

__all__ = ["MODULE_SKIPPED", "ModuleMounter"]

REQUIRED: Final = frozenset({"orchestrator", "context", "hook"})
"""The types without which a session does not start: the loop, the memory, and whatever guards it."""

MODULE_SKIPPED: Final = "module:skipped"
"""Sent with `module_id` and `module_type` for a module that chose to mount nothing, which is no failure."""


@attrs.define(eq=False, repr=False)
class ModuleMounter:
    """Mounts one plan on one coordinator.

    `failures` are the modules that the session starts without, `skipped` those that chose to mount nothing, `modules`
    those that were loaded, by their id and `instance_id`.
    """

    plan: MountPlan
    loader: ModuleLoader
    coordinator: ModuleCoordinator
    failures: list[ModuleError] = attrs.field(factory=list)
    skipped: list[str] = attrs.field(factory=list)
    modules: dict[tuple[str, str | None], LoadedModule] = attrs.field(factory=dict)
    _paths: ImportPaths = attrs.field(factory=ImportPaths)

    async def mount_all(self) -> None:
        """Mount every module of the plan and notify each that the session is ready.

        Raises:
            ModuleError: a module that the session cannot do without failed; `ModuleConfigError` where it refused
                its configuration.
        """
        # first registered, so last run: other clean-ups may still import
        self.coordinator.register_cleanup(self._paths.release)
        failed: list[tuple[ModuleSpec, ModuleKind, ModuleError]] = []
        mounted: list[tuple[LoadedModule, bool]] = []
        for kind in self.loader.kinds:
            for spec, plugin in self._specs(kind):
                try:
                    mounted.append(await self._mount(spec, kind, plugin))
                except ModuleError as error:
                    failure = error if error.path else error.amended(path=spec.path)
                    # an application knows what a session does without that it blocked
                    is_blocked = self.coordinator.plugins.is_blocked(spec.plugin_name)
                    if kind.name in REQUIRED and (kind.single or not is_blocked):
                        raise failure from error.__cause__
                    self.failures.append(failure)
                    failed.append((spec, kind, failure))
        # from here on a plugin that is registered with pluggy would never be called
        self.coordinator.plugins.end_mounting()
        # a module may mount nothing and succeed, which these two types must not
        self._check_mounted()
        for spec, kind, failure in failed:
            # only now: the hooks that hear of it are mounted last
            await self._announce_failure(spec, kind, failure)
        for module, has_mounted in mounted:
            if not has_mounted and module.kind.mount_point != "hooks":
                await self._announce_skipped(module)
        # Several entries of a plan may be instances of one module, which is notified once.
        for ready, module in {module.ready: module for module, _ in mounted}.items():
            if ready is not None:
                await self._notify_ready(ready, module)

    @property
    def _limits(self) -> Limits:
        return self.plan.session.limits

    def _specs(self, kind: ModuleKind) -> Iterator[tuple[ModuleSpec, object]]:
        """Yield the plan's modules of a type, then the plugins that the application registered with pluggy."""
        for spec in self.plan.modules[kind.name]:
            yield spec, None
        for name, plugin in self.coordinator.plugins.given(kind):
            yield ModuleSpec(module=name, path=f"the plugin {name!r}"), plugin

    async def _load(
        self, spec: ModuleSpec, kind: ModuleKind, plugin: object
    ) -> LoadedModule:
        """Return a module of the plan, or the one that an application's plugin is."""
        coordinator = self.coordinator
        if plugin is not None:
            return LoadedModule(id=spec.module, kind=kind, plugin=plugin)
        if coordinator.plugins.is_blocked(spec.plugin_name):
            raise ModuleLoadError(
                spec.module,
                f"the application blocked it with 'set_blocked({spec.plugin_name!r})'",
            )
        resolver = coordinator.mount_points.get(RESOLVER)
        imported = await self.loader.find(
            spec, resolver=resolver, limits=self._limits, paths=self._paths
        )
        module = load_plugin(imported, spec, kind, coordinator.plugins)
        self.modules[spec.module, spec.instance_id] = module
        return module

    async def _mount(
        self, spec: ModuleSpec, kind: ModuleKind, plugin: object
    ) -> tuple[LoadedModule, bool]:
        """Load and mount one module, and return whether it mounted anything; every failure names the module."""
        coordinator = self.coordinator
        module = await self._load(spec, kind, plugin)
        limit = self._limits.mount_timeout
        name = f"The mount of module {module.id!r}"
        mounting = ForeignCall(name, anyio.CancelScope(), limit)
        try:
            has_mounted = await mounting.run(
                coordinator.mount_module(spec, kind, module.plugin)
            )
        except ConfigError as error:
            problems = [
                Problem(
                    ".".join(filter(None, (spec.config_path, problem.path))),
                    problem.message,
                )
                for problem in error.problems
            ]
            raise ModuleConfigError(
                spec.module, problems, distribution=module.distribution, path=spec.path
            ) from error.__cause__
        except AmplifierError as error:
            # it says already who failed; to wrap it would only make it longer
            if isinstance(error, ModuleError) and error.distribution is not None:
                raise
            raise _mount_error(module, error) from error
        except (Exception, SystemExit) as error:  # foreign code
            raise _mount_error(module, error) from error
        if mounting.cancelled_caught:
            reason = f"its mount took longer than {limit:g} s ('mount_timeout' of the plan's limits)"
            raise ModuleLoadError(module.id, reason, distribution=module.distribution)
        return module, has_mounted is True

    def _check_mounted(self) -> None:
        """Refuse to start without a loop or a context."""
        table = self.coordinator.mount_points
        for kind in self.loader.kinds:
            if kind.single and table[kind.mount_point] is None:
                spec = self.plan.modules[kind.name][0]
                reason = f"mounted no {kind.name}; the session cannot start without one"
                raise ModuleLoadError(spec.module, reason, path=spec.path)

    async def _announce_failure(
        self, spec: ModuleSpec, kind: ModuleKind, failure: ModuleError
    ) -> None:
        """Announce a module that is not mounted to the handlers, which are all mounted by now."""
        report(
            "module.load_failed",
            failure,
            module=failure.module_id,
            distribution=failure.distribution,
        )
        payload = ModuleLoadFailed(
            module_id=failure.module_id,
            module_type=kind.name,
            error=str(failure),
            reason_code=_REASONS.get(type(failure), "unknown"),
        )
        if spec.instance_id is not None:
            payload["instance_id"] = spec.instance_id
        await self.coordinator.hooks.emit(MODULE_LOAD_FAILED, payload)

    async def _announce_skipped(self, module: LoadedModule) -> None:
        self.skipped.append(module.id)
        skipped = {"module_id": module.id, "module_type": module.kind.name}
        await self.coordinator.hooks.emit(MODULE_SKIPPED, skipped)

    async def _notify_ready(self, ready: Ready, module: LoadedModule) -> None:
        """Call a module's `on_session_ready`; a failure is announced and ends nothing."""
        # a plain function would block the event loop under no deadline
        if not iscoroutinefunction(ready):
            report(
                "module.on_session_ready_skipped",
                module=module.id,
                problem="write it as 'async def'",
            )
            return
        limit = self._limits.mount_timeout
        failure: BaseException | None = None
        token = current_module.set(module.plugin)
        foreign = ForeignCall(f"Module {module.id!r}", anyio.CancelScope(), limit)
        try:
            await foreign.run(ready(self.coordinator))
        except (Exception, SystemExit) as error:  # foreign code
            failure = error
        finally:
            current_module.reset(token)
        if foreign.cancelled_caught:
            failure = TimeoutError(f"it took longer than {limit:g} s")
        if failure is not None:
            report("module.on_session_ready_failed", failure, module=module.id)
            payload = ModuleOnSessionReadyFailed(
                module_id=module.id, error=f"{type(failure).__name__}: {failure}"
            )
            await self.coordinator.hooks.emit(MODULE_ON_SESSION_READY_FAILED, payload)


_REASONS: Final[Mapping[type[ModuleError], str]] = {
    ModuleNotFoundError: "missing_source",
    ModuleLoadError: "invalid_entry_point",
    ModuleValidationError: "validation_failed",
    ModuleConfigError: "validation_failed",
    ModuleConflictError: "invalid_module_metadata",
}
"""The reason codes of `module:load_failed`."""


def _mount_error(module: LoadedModule, error: BaseException) -> ModuleError:
    """Name the module and its distribution in what went wrong while it mounted."""
    if isinstance(error, ModuleError):
        reason = error.reason
    else:
        reason = f"mounting failed: {type(error).__name__}: {error}"
    cls = (
        type(error)
        if isinstance(error, (ModuleConflictError, ModuleValidationError))
        else ModuleLoadError
    )
    return cls(module.id, reason, distribution=module.distribution)
