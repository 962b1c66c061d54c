"""The five validators.

Each imports the module at a path, calls its `mount` on a coordinator of its own, and checks what that mounted
against the contract of its type.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import ClassVar, cast

from amplifier.compat.original.models import ProviderInfo
from amplifier.compat.original.testing import MockCoordinator
from amplifier.compat.original.validation.base import (
    Severity,
    ValidationCheck,
    ValidationResult,
    check_on_session_ready,
    import_module_from_path,
)

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
        ready = check_on_session_ready(package)
        if ready is not None:
            result.add(ready)
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
            result.add(self._compliance(instance, returned))
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

    def _compliance(self, instance: object, returned: object) -> ValidationCheck:
        """Check that something was mounted; a clean-up alone may belong to what is mounted later."""
        problem = ""
        if instance is None:
            problem = f"the module mounted nothing at {self.mount_point!r}"
        if problem and callable(returned):
            return ValidationCheck(
                "protocol_compliance", passed=True, message=problem, severity="warning"
            )
        return _found("protocol_compliance", problem, "error")

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
        yield _check(
            "tool_description", bool(described), "description", severity="warning"
        )
        schema = getattr(instance, "input_schema", {})
        yield _check(
            "tool_input_schema", isinstance(schema, dict), "dict", severity="warning"
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

    def _compliance(self, instance: object, returned: object) -> ValidationCheck:  # noqa: ARG002  # no instance to ask
        return _found("protocol_compliance", "", "error")


# -- parts


def _import(path: Path, result: ValidationResult) -> ModuleType | None:
    try:
        package = import_module_from_path(path)
    except Exception as error:  # foreign code
        _note(result, "module_importable", f"importing {path.name!r} failed: {error!r}")
        return None
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


def _check(
    name: str, passed: bool, wanted: str, *, severity: Severity = "error"
) -> ValidationCheck:
    problem = "" if passed else f"{name}: no {wanted}"
    return _found(name, problem, severity)


def _note(result: ValidationResult, name: str, problem: str = "") -> None:
    result.add(_found(name, problem, "error"))


def _found(name: str, problem: str, severity: Severity) -> ValidationCheck:
    """Return a check: what passed is information, what failed has the severity."""
    if problem:
        return ValidationCheck(name, passed=False, message=problem, severity=severity)
    return ValidationCheck(name, passed=True, message=f"{name}: ok", severity="info")
