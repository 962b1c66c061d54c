"""What a validation found: checks, each passed or not."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeAlias

__all__ = [
    "Checks",
    "Severity",
    "ValidationCheck",
    "ValidationResult",
    "check_on_session_ready",
    "import_module_from_path",
]

Severity: TypeAlias = Literal["error", "warning", "info"]
"""How much a failed check matters; one that passed is information."""


@dataclass
class ValidationCheck:
    """One check; a failed one of severity `error` fails the module."""

    name: str
    passed: bool
    message: str = ""
    severity: Severity = "error"


class Checks:
    """What results of a validation have in common: checks, each passed or not."""

    checks: list[ValidationCheck]

    def add(self, check: ValidationCheck) -> None:
        """Note a check."""
        self.checks.append(check)

    @property
    def passed(self) -> bool:
        """Whether no check of severity `error` failed."""
        return not self.errors

    @property
    def errors(self) -> list[ValidationCheck]:
        """The failed checks of severity `error`."""
        return [
            each for each in self.checks if not each.passed and each.severity == "error"
        ]

    @property
    def warnings(self) -> list[ValidationCheck]:
        """The failed checks of severity `warning`, and passed ones with a warning."""
        return [each for each in self.checks if each.severity == "warning"]

    def summary(self) -> str:
        """Say in one line how many checks passed."""
        word = "PASSED" if self.passed else "FAILED"
        passed = sum(each.passed for each in self.checks)
        return (
            f"{word}: {passed}/{len(self.checks)} checks passed"
            f" ({len(self.errors)} errors, {len(self.warnings)} warnings)"
        )


@dataclass
class ValidationResult(Checks):
    """All checks of one module."""

    module_type: str
    module_path: str
    checks: list[ValidationCheck] = field(default_factory=list)


def import_module_from_path(module_path: str | Path) -> ModuleType:
    """Import the package, or the file, at a path.

    Raises:
        ImportError: nothing is there that can be imported.
    """
    path = Path(module_path)
    folder, name = str(path.parent.resolve()), path.name.removesuffix(".py")
    # first, so that what is installed under the name does not stand for it
    sys.path.insert(0, folder)
    try:
        return import_module(name)
    finally:
        sys.path.remove(folder)


def check_on_session_ready(module: object) -> ValidationCheck | None:
    """Return what is wrong with a module's `on_session_ready`; `None` where it has none, or a good one."""
    ready: object = getattr(module, "on_session_ready", None)
    if ready is None:
        return None
    problem = ""
    if not inspect.iscoroutinefunction(ready):
        problem = "on_session_ready must be async"
    elif not inspect.signature(ready).parameters:
        problem = "on_session_ready must accept the coordinator"
    if not problem:
        return None
    return ValidationCheck("on_session_ready_async", passed=False, message=problem)
