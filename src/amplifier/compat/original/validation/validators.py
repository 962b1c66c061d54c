"""The five validators.

Each imports the module at a path, calls its `mount` on a coordinator of its own, and checks what that mounted
against the contract of its type.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import ClassVar, cast

from amplifier.compat.original.models import ProviderInfo
from amplifier.compat.original.testing import MockCoordinator
from amplifier.compat.original.validation.base import ValidationCheck, ValidationResult

__all__ = [
    "ContextValidator",
    "HookValidator",
    "OrchestratorValidator",
    "ProviderValidator",
    "ToolValidator",
    "Validator",
]

_Mount = Callable[[object, dict[str, object]], Awaitable[object]]


class Validator:
    """What the five have in common."""

    module_type: ClassVar[str]
    mount_point: ClassVar[str]
    methods: ClassVar[Mapping[str, int]] = {}
    """The async methods that the contract asks for, and how many parameters each has at least."""

    async def validate(
        self,
        module_path: str | Path,
        entry_point: str | None = None,
        config: Mapping[str, object] | None = None,
    ) -> ValidationResult:
        """Check the module whose package lies at a path.

        Args:
            module_path: the package's folder.
            entry_point: the function that mounts it; default `mount`.
            config: what it is mounted with.
        """
        result = ValidationResult(self.module_type, str(module_path))
        package = _import(Path(module_path), result)
        if package is None:
            return result
        mount = getattr(package, entry_point or "mount", None)
        if not _checked_mount(mount, result):
            return result
        _check_ready(package, result)
        await self._check_mounted(cast("_Mount", mount), dict(config or {}), result)
        return result

    async def _check_mounted(
        self, mount: _Mount, config: dict[str, object], result: ValidationResult
    ) -> None:
        coordinator = MockCoordinator()
        try:
            returned = await mount(coordinator, config)
        except Exception as error:  # foreign code
            _note(result, "protocol_compliance", f"mount raised {error!r}")
            return
        try:
            instance = self._instance(coordinator, returned)
            _note(result, "protocol_compliance", *self._problem(instance, returned))
            if instance is not None:
                for check in self._checks(instance):
                    result.add(check)
        finally:
            if callable(returned):
                coordinator.register_cleanup(returned)
            await coordinator.cleanup()

    def _instance(self, coordinator: MockCoordinator, returned: object) -> object:
        """Return what was mounted, else what the mount returned."""
        for call in coordinator.mount_history:
            if call["mount_point"] == self.mount_point:
                return call["module"]
        if self.methods and all(hasattr(returned, name) for name in self.methods):
            return returned
        return None

    def _problem(self, instance: object, returned: object) -> tuple[str, ...]:
        if instance is None and returned is None:
            return (f"the module mounted nothing at {self.mount_point!r}",)
        return ()

    def _checks(self, instance: object) -> Iterator[ValidationCheck]:
        """Check what was mounted against the contract."""
        for name, count in self.methods.items():
            method = getattr(instance, name, None)
            yield _check(
                f"{self.module_type}_{name}", _is_async(method, count), "async method"
            )


class ToolValidator(Validator):
    """Checks a tool."""

    module_type = "tool"
    mount_point = "tools"
    methods: ClassVar[Mapping[str, int]] = {"execute": 1}

    def _checks(self, instance: object) -> Iterator[ValidationCheck]:
        yield _check("tool_name", bool(_text(instance, "name")), "name")
        described = _text(instance, "description")
        yield _check("tool_description", described is not None, "description")
        schema = getattr(instance, "input_schema", {})
        if not isinstance(schema, dict):
            yield ValidationCheck(
                "tool_input_schema",
                passed=False,
                message="input_schema is no dict",
                severity="warning",
            )
        yield from super()._checks(instance)


class ProviderValidator(Validator):
    """Checks a provider."""

    module_type = "provider"
    mount_point = "providers"
    methods: ClassVar[Mapping[str, int]] = {"list_models": 0, "complete": 1}

    def _checks(self, instance: object) -> Iterator[ValidationCheck]:
        yield _check("provider_name", bool(_text(instance, "name")), "name")
        yield _info_check(instance)
        yield from super()._checks(instance)
        parse = getattr(instance, "parse_tool_calls", None)
        yield _check("provider_parse_tool_calls", callable(parse), "method")


class OrchestratorValidator(Validator):
    """Checks an orchestrator."""

    module_type = "orchestrator"
    mount_point = "orchestrator"
    methods: ClassVar[Mapping[str, int]] = {"execute": 5}


class ContextValidator(Validator):
    """Checks a context manager."""

    module_type = "context"
    mount_point = "context"
    methods: ClassVar[Mapping[str, int]] = {
        "add_message": 1,
        "get_messages_for_request": 0,
        "get_messages": 0,
        "set_messages": 1,
        "clear": 0,
    }


class HookValidator(Validator):
    """Checks a hook: any that mounts passes, since its handlers are checked when they are called."""

    module_type = "hook"
    mount_point = "hooks"

    def _problem(self, instance: object, returned: object) -> tuple[str, ...]:  # noqa: ARG002  # no instance to ask
        return ()


# -- parts


def _import(path: Path, result: ValidationResult) -> ModuleType | None:
    folder, name = str(path.parent.resolve()), path.name.removesuffix(".py")
    # first, so that what is installed under the name does not stand for it
    sys.path.insert(0, folder)
    try:
        package = import_module(name)
    except Exception as error:  # foreign code
        _note(result, "module_importable", f"importing {name!r} failed: {error!r}")
        return None
    finally:
        sys.path.remove(folder)
    _note(result, "module_importable")
    return package


def _checked_mount(mount: object, result: ValidationResult) -> bool:
    if not callable(mount):
        _note(result, "mount_exists", "the module has no mount function")
        return False
    _note(result, "mount_exists")
    if not _is_async(mount, 2):
        _note(result, "mount_signature", "it is 'async def mount(coordinator, config)'")
        return False
    _note(result, "mount_signature")
    return True


def _check_ready(package: ModuleType, result: ValidationResult) -> None:
    ready = getattr(package, "on_session_ready", None)
    if ready is not None and not inspect.iscoroutinefunction(ready):
        _note(result, "on_session_ready_async", "on_session_ready is not async")


def _info_check(instance: object) -> ValidationCheck:
    try:
        info: object = instance.get_info()  # type: ignore[attr-defined]  # what is checked
    except Exception as error:  # foreign code
        return ValidationCheck(
            "provider_get_info",
            passed=False,
            message=f"get_info raised {error!r}",
            severity="warning",
        )
    return _check("provider_get_info", isinstance(info, ProviderInfo), "ProviderInfo")


def _text(instance: object, name: str) -> str | None:
    value: object = getattr(instance, name, None)
    return value if isinstance(value, str) else None


def _is_async(method: object, count: int) -> bool:
    call = getattr(method, "__call__", None)  # noqa: B004  # doubles are objects with an async __call__
    if not (inspect.iscoroutinefunction(method) or inspect.iscoroutinefunction(call)):
        return False
    parameters = inspect.signature(cast("Callable[[], object]", method)).parameters
    return len(parameters) >= count or any(
        each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        for each in parameters.values()
    )


def _check(name: str, passed: bool, wanted: str) -> ValidationCheck:
    return ValidationCheck(name, passed, "" if passed else f"{name}: no {wanted}")


def _note(result: ValidationResult, name: str, problem: str = "") -> None:
    result.add(ValidationCheck(name, not problem, problem))
