"""What a validation found: results of checks, gathered for each module and for its package.

`Report.to_json` is the form that programs read; `docs/reference/validation-report.schema.json` describes it.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import attrs

from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "REPORT_VERSION",
    "STATUSES",
    "CheckResult",
    "ModuleReport",
    "Report",
    "Status",
]

REPORT_VERSION: Final = 1
"""The version of the JSON form; it grows when a key changes its meaning or goes."""

Status: TypeAlias = Literal["passed", "warning", "error", "skipped"]
"""How a check ended. A `warning` is worth mending and fails nothing; what is `skipped` could not be checked."""

STATUSES: Final[tuple[Status, ...]] = ("passed", "warning", "error", "skipped")


@attrs.frozen(kw_only=True)
class CheckResult:
    """What one check found.

    Args:
        check: the id of the check, stable between releases.
        status: how it ended.
        message: what is true, or what is wrong.
        fix: what the author does about it; `None` for a check that passed.
        place: a file, with a line where one is known.
        backend: the event loop on which a behaviour was tried; `None` for what does not depend on it.
    """

    check: str
    status: Status
    message: str
    fix: str | None = None
    place: str | None = None
    backend: str | None = None

    def to_json(self) -> JSONObject:
        """Return the result as JSON data; every key is there."""
        return attrs.asdict(self)


@attrs.frozen(kw_only=True)
class ModuleReport:
    """What was found about one module.

    Args:
        id: the module's id, as a mount plan names it.
        target: what its entry point names.
        type: the type as which it was checked; `None` if it is unknown.
        results: one for each check, in the order in which they ran.
    """

    id: str
    target: str
    type: str | None = None
    results: tuple[CheckResult, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no check found an error."""
        return all(result.status != "error" for result in self.results)

    def to_json(self) -> JSONObject:
        """Return the module's part of the report as JSON data."""
        return {
            "id": self.id,
            "type": self.type,
            "target": self.target,
            "passed": self.passed,
            "results": [result.to_json() for result in self.results],
        }


@attrs.frozen(kw_only=True)
class Report:
    """What was found about a package and its modules.

    Args:
        path: what was validated: a folder, or the id of an installed module.
        distribution: the distribution's name, where one is declared.
        results: what concerns the package as a whole.
        modules: its modules, in the order of their entry points.
    """

    path: str
    distribution: str | None = None
    results: tuple[CheckResult, ...] = ()
    modules: tuple[ModuleReport, ...] = ()

    @property
    def all_results(self) -> tuple[CheckResult, ...]:
        """The results of the package and of every module."""
        return (
            *self.results,
            *(result for module in self.modules for result in module.results),
        )

    @property
    def passed(self) -> bool:
        """Whether no check found an error."""
        # a package without modules has an error of its own
        return self.count("error") == 0

    def count(self, status: Status) -> int:
        """Count the results of one status."""
        return sum(result.status == status for result in self.all_results)

    def to_json(self) -> JSONObject:
        """Return the report as JSON data; every key is there."""
        # every status, also with 0: programs look keys up
        counts: dict[str, JSONValue] = {
            status: self.count(status) for status in STATUSES
        }
        return {
            "version": REPORT_VERSION,
            "path": self.path,
            "distribution": self.distribution,
            "passed": self.passed,
            "counts": counts,
            "results": [result.to_json() for result in self.results],
            "modules": [module.to_json() for module in self.modules],
        }
