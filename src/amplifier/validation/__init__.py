"""The deep check of a module package: what `amplifier module validate` runs.

`validate` reads a package's metadata and files, runs its modules in child processes, and returns a `Report`.
Names load when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amplifier.validation.report import CheckResult as CheckResult
    from amplifier.validation.report import ModuleReport as ModuleReport
    from amplifier.validation.report import Report as Report
    from amplifier.validation.validating import validate as validate

__all__ = ["CheckResult", "ModuleReport", "Report", "validate"]

_HOME = {
    "CheckResult": "report",
    "ModuleReport": "report",
    "Report": "report",
    "validate": "validating",
}

if not TYPE_CHECKING:  # hidden from type checkers, which would accept any name otherwise

    def __getattr__(name: str) -> object:
        """Load a public name from the module that defines it."""
        home = _HOME.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
