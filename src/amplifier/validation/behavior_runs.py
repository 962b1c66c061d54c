"""The behaviours of a module, tried in the child process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import anyio
import attrs

from amplifier.validation.behaviors import (
    SAMPLES,
    Behavior,
    CheckOutcome,
    Subject,
    behaviors,
    check_behavior,
)
from amplifier.validation.checks import CHECKS
from amplifier.validation.imports import import_target
from amplifier.validation.journal import FindingsJournal
from amplifier.validation.report import CheckResult, Status
from amplifier.validation.supervision import ChildTask
from amplifier_sdk.configuration import read_config
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["try_behaviors"]

_STATUS: Final[dict[str, Status]] = {
    "passed": "passed",
    "failed": "error",
    "skipped": "skipped",
}


def try_behaviors(task: ChildTask, journal: FindingsJournal) -> None:
    """Try every behaviour of the module's type that was not tried yet; every outcome goes into the journal."""
    with journal.step("module.imports"):
        loaded, results = import_target(task)
    # what an import depends on may be the time or the folder: it is reported again
    if loaded is None:  # it was loaded in another process
        for result in results:
            journal.add(attrs.evolve(result, backend=task.backend))
        return
    kind = loaded.kind.name
    known = behaviors(kind)
    try:
        samples = read_config(SAMPLES[kind], task.samples, subject="samples")
        # a misspelt id would leave out nothing, and nobody would see it
        _refuse_unknown(task.leave_out, known)
    except ConfigError as error:
        said = error.in_one_line
        journal.add(
            attrs.evolve(CHECKS["module.samples"].error(said), backend=task.backend)
        )
        return
    subject = Subject(
        kind=kind, module=loaded.target, config=task.config, samples=samples
    )
    for behavior in (behavior for behavior in known if behavior.id not in task.skip):
        if behavior.id in task.leave_out:
            journal.add(_left_out(behavior, task))
            continue
        # beyond the check's own deadline, which says more than an ended process
        with journal.step(behavior.id, times=1.5):
            outcome = anyio.run(
                _try, behavior, subject, task.timeout, backend=task.backend
            )
        journal.add(_result(outcome, task.backend))


def _refuse_unknown(
    leave_out: Mapping[str, JSONValue], known: Sequence[Behavior]
) -> None:
    ids = [behavior.id for behavior in known]
    problems = [
        Problem(
            f"leave_out.{name}", f"no behaviour has this id{did_you_mean(name, ids)}"
        )
        for name in leave_out
        if name not in ids
    ]
    if problems:
        raise ConfigError(problems)


def _left_out(behavior: Behavior, task: ChildTask) -> CheckResult:
    reason = f"Left out by pyproject.toml: {task.leave_out[behavior.id]}"
    return CheckResult(
        check=behavior.id, status="skipped", message=reason, backend=task.backend
    )


async def _try(behavior: Behavior, subject: Subject, timeout: float) -> CheckOutcome:
    return await check_behavior(behavior, subject, timeout=timeout)


def _result(outcome: CheckOutcome, backend: str) -> CheckResult:
    return CheckResult(
        check=outcome.behavior.id,
        status=_STATUS[outcome.status],
        message=outcome.detail or outcome.behavior.says,
        fix=outcome.behavior.fix if outcome.status == "failed" else None,
        backend=backend,
    )
