"""The deep check of a module package: its files here, its code in child processes, one report of both."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import attrs

from amplifier.validation.checks import CHECKS
from amplifier.validation.packages import Package, PackagedModule, find_package
from amplifier.validation.report import CheckResult, ModuleReport, Report
from amplifier.validation.structure import check_module_files, check_package
from amplifier.validation.supervision import ChildRun, ChildTask, run_child
from amplifier_sdk.convert import to_json
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.hookspecs import KINDS
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["validate"]

BACKENDS: Final = ("asyncio", "trio")
"""The event loops on which behaviours are tried."""

_SETTINGS: Final = ("config", "samples", "leave_out")
"""The keys of `[tool.amplifier.validate.<id>]`."""


def validate(
    path: str | Path,
    *,
    type: str | None = None,  # noqa: A002  # the name of the command's option
    config: Mapping[str, JSONValue] | None = None,
    behavioral: bool = False,
    timeout: float = 30.0,
) -> Report:
    """Check a package of modules and report what was found.

    The modules' code runs in child processes. This blocks; call it in a thread from asynchronous code.

    Args:
        path: a repository's root, a package's folder, or the id of an installed module.
        type: the type as which the modules are checked; default the one they declare or their ids suggest.
        config: the configuration with which they are mounted; default what `pyproject.toml` says under
            `[tool.amplifier.validate.<id>]`, else none.
        behavioral: try every behaviour of the type as well, on asyncio, and on trio where it is installed.
        timeout: seconds that one step may take: an import, a mount, a behaviour.

    Raises:
        ModuleNotFoundError: there is no such package and no such module.
        ModuleConflictError: several distributions have the id.
        ConfigError: the type is unknown, or `pyproject.toml` gives settings that are none.
    """
    _refuse_unknown_type(type)
    package = find_package(path)
    # All settings are read before anything runs: a mistake in one costs no time.
    tasks = {
        candidate: _task(package, candidate, type, config, timeout)
        for candidate in package.candidates
    }
    return Report(
        path=package.path,
        distribution=package.name,
        results=tuple(check_package(package)),
        modules=tuple(
            _check(package, candidate, task, behavioral)
            for candidate, task in tasks.items()
        ),
    )


def _check(
    package: Package, candidate: PackagedModule, task: ChildTask, behavioral: bool
) -> ModuleReport:
    """Check one module: its files, its structure in a child process, its behaviours in others."""
    structure = run_child(task)
    runs = [structure]
    results = [
        *check_module_files(package, candidate),
        *structure.results,
        *_broken(structure),
    ]
    if behavioral and _mounts(structure):
        for backend in BACKENDS:
            # trio is not required, and without it there is nothing to try
            if find_spec(backend) is not None:
                runs += _try_behaviors(
                    attrs.evolve(
                        task, type=structure.type, backend=backend, behaviors=True
                    )
                )
        results += [
            result for run in runs[1:] for result in (*run.results, *_broken(run))
        ]
    elif behavioral:
        results.append(
            CHECKS["module.mounting"].skipped(
                "No behaviour was tried, since nothing of the module is mounted."
            )
        )
    # of all processes: a module may print in a behaviour alone
    results.append(_check_output(runs))
    return ModuleReport(
        id=candidate.id,
        target=candidate.target,
        type=structure.type,
        results=tuple(_relative(package, results)),
    )


def _mounts(structure: ChildRun) -> bool:
    return any(
        result.check == "module.mounting" and result.status == "passed"
        for result in structure.results
    )


def _try_behaviors(task: ChildTask) -> list[ChildRun]:
    """Try the behaviours on one event loop; after one that ended its process a new process continues behind it."""
    runs: list[ChildRun] = []
    tried: list[str] = []
    while True:
        run = run_child(attrs.evolve(task, skip=tuple(tried)))
        runs.append(run)
        # the last guards against a process that ends in the same check for ever
        if run.ending is None or run.running is None or run.running in tried:
            return runs
        tried += [*(result.check for result in run.results), run.running]


def _broken(run: ChildRun) -> list[CheckResult]:
    """Return the error of a child that ended early, under the check that ran."""
    if run.ending is None:
        return []
    check = CHECKS["module.process"]
    result = check.error(f"Its code {run.ending}.", place=run.place)
    return [attrs.evolve(result, check=run.running or check.id, backend=run.backend)]


def _check_output(runs: list[ChildRun]) -> CheckResult:
    check = CHECKS["module.stdout"]
    printed = next((run.stdout for run in runs if run.stdout), None)
    if printed is None:
        return check.passed()
    return check.warning(f"It printed {printed[:120]!r}.")


def _task(
    package: Package,
    candidate: PackagedModule,
    kind: str | None,
    config: Mapping[str, JSONValue] | None,
    timeout: float,
) -> ChildTask:
    settings = package.settings(candidate.id)
    subject = f"table [tool.amplifier.validate.{candidate.id}]"
    problems = [
        Problem(
            key, f"unknown; known: {', '.join(_SETTINGS)}{did_you_mean(key, _SETTINGS)}"
        )
        for key in settings
        if key not in _SETTINGS
    ]
    problems += [
        Problem(key, f"a table; got {type(settings[key]).__name__}")
        for key in _SETTINGS
        if not isinstance(settings.get(key, {}), dict)
    ]
    if problems:
        raise ConfigError(problems, subject=subject)
    return ChildTask(
        module=candidate.id,
        target=candidate.target,
        location=candidate.location,
        type=kind,
        config=_data(settings.get("config")) if config is None else config,
        samples=_data(settings.get("samples")),
        leave_out=_data(settings.get("leave_out")),
        timeout=timeout,
    )


def _data(table: object) -> Mapping[str, JSONValue]:
    """Return a table of `pyproject.toml` as JSON data; dates become text."""
    data = to_json(table)
    if isinstance(data, dict):
        return data
    return {}


def _refuse_unknown_type(kind: str | None) -> None:
    known = [each.name for each in KINDS]
    if kind is not None and kind not in known:
        hint = did_you_mean(kind, known) or f"; known: {', '.join(known)}"
        raise ConfigError.of(
            "type", f"there is no module type {kind!r}{hint}", subject="validation"
        )


def _relative(package: Package, results: list[CheckResult]) -> list[CheckResult]:
    if package.root is None:
        return results
    root = f"{package.root}/"
    return [
        attrs.evolve(result, place=result.place.removeprefix(root))
        if result.place is not None
        else result
        for result in results
    ]
