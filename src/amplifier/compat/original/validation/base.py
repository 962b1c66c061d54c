"""What a validation found: checks, each passed or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["ValidationCheck", "ValidationResult"]


@dataclass
class ValidationCheck:
    """One check; a failed one of severity `error` fails the module."""

    name: str
    passed: bool
    message: str = ""
    severity: Literal["error", "warning", "info"] = "error"


@dataclass
class ValidationResult:
    """All checks of one module."""

    module_type: str
    module_path: str
    checks: list[ValidationCheck] = field(default_factory=list)

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
        return f"{word}: {passed}/{len(self.checks)} checks passed ({len(self.errors)} errors)"
