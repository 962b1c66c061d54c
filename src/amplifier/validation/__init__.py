"""The deep check of a module package: what `amplifier module validate` runs.

`validate` reads a package's metadata and files, runs its modules in child processes, and returns a `Report`.
Names load when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier.validation.report import CheckResult, ModuleReport, Report
    from amplifier.validation.validator import validate

__all__ = ["CheckResult", "ModuleReport", "Report", "validate"]

_HOME = {
    "report": ("CheckResult", "ModuleReport", "Report"),
    "validator": ("validate",),
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
