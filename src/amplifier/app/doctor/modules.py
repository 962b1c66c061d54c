"""The modules: those of new sessions in the order in which they are mounted, and what does not import."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from amplifier.app.doctor.findings import DoctorFinding, broken, fine, warning
from amplifier.app.modules.own import OWN_MODULES, how_to_add, how_to_get, list_modules
from amplifier.app.plan_entries import named_modules
from amplifier.app.versions import read_versions
from amplifier.kernel.modules.loader import ModuleInfo
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["check_modules", "import_modules", "modules_of"]

_CHILD: Final = "amplifier.app.doctor._child:main"


def check_modules(
    plan: Mapping[str, JSONValue], *, timeout: float
) -> Iterator[DoctorFinding]:
    """Import every installed module in a process of its own, and tell those of a plan in their order.

    Args:
        plan: the mount plan of new sessions.
        timeout: seconds that the imports may take.
    """
    installed: dict[str, ModuleInfo] = {}
    for module in list_modules():
        installed.setdefault(module.id, module)
    problems = import_modules(list(installed), timeout=timeout)
    used = modules_of(plan)
    for number, name in enumerate(used, 1):
        yield _used(number, name, installed.get(name), problems.get(name))
    others = [name for name in installed if name not in used]
    sound = [name for name in others if name not in problems]
    for name in others:
        if name in problems:
            message, remedy = f"{name}: {problems[name]}", _reinstall(installed[name])
            yield warning("modules", message, remedy)
    if sound:
        yield fine("modules", f"installed and not used: {', '.join(sound)}")


def modules_of(plan: Mapping[str, JSONValue]) -> list[str]:
    """Return the ids of a plan's modules in the order in which they are mounted, those with a source left out."""
    named = (entry for _, entry in named_modules(plan) if entry.get("source") is None)
    return list(dict.fromkeys(str(entry.get("module")) for entry in named))


def import_modules(ids: Sequence[str], *, timeout: float) -> dict[str, str]:
    """Import modules in a child process and return what is wrong with those that fail.

    A module that ends its process, or takes all the time, is reported; the others are imported in another one.

    Args:
        ids: the modules.
        timeout: seconds for all of those that one process imports.
    """
    problems: dict[str, str] = {}
    waiting = list(ids)
    with TemporaryDirectory(prefix="amplifier-doctor-") as folder:
        while waiting:
            results = Path(folder) / f"{len(waiting)}.jsonl"
            empty = Path(folder) / f"{len(waiting)}.empty"
            empty.mkdir()
            ended = _import(waiting, results, empty, timeout)
            answers = [json.loads(line) for line in _lines(results)]
            begun = {line["id"] for line in answers}
            done = {
                line["id"]: line["problem"] for line in answers if "problem" in line
            }
            problems |= {name: text for name, text in done.items() if text is not None}
            # One at least leaves the list each time: the one at which the process ended, else the first.
            left = [name for name in waiting if name not in done]
            stopped = [name for name in left if name in begun] or waiting[:1]
            if left:
                problems |= dict.fromkeys(stopped, f"importing it {ended}")
            waiting = [name for name in left if name not in stopped]
    return problems


def _used(
    number: int, name: str, module: ModuleInfo | None, problem: str | None
) -> DoctorFinding:
    if module is None:
        message = f"{number}. {name} is not installed"
        return broken("modules", message, how_to_add(name, ()))
    message = (
        f"{number}. {name}, of {module.distribution} {module.version or ''}".rstrip()
    )
    if problem is not None:
        return broken("modules", f"{message}: {problem}", _reinstall(module))
    if _is_replaced(module):
        message += ": another package of that name stands in place of Amplifier's"
        remedy = f"{how_to_get(name)}; 'amplifier compat check {name}' says whose it is"
        return warning("modules", message, remedy)
    return fine("modules", message)


def _is_replaced(module: ModuleInfo) -> bool:
    """Whether pip put another package in place of one of ours: all of ours have one version."""
    return (
        module.id in OWN_MODULES
        and module.distribution == f"amplifier-module-{module.id}"
        and module.version != read_versions().amplifier
    )


def _reinstall(module: ModuleInfo) -> str:
    return f"pip install --force-reinstall {module.distribution}; 'amplifier module validate {module.id}' says more"


def _import(ids: Sequence[str], results: Path, empty: Path, timeout: float) -> str:
    # only who imports
    from amplifier_kit.processes import python_argv, python_environment, start_python

    task = {"ids": list(ids), "results": str(results)}
    child = start_python(
        python_argv(_CHILD, packages=True),
        environment=python_environment(),
        directory=str(empty),
        stdout=subprocess.DEVNULL,
    )
    try:
        child.communicate(json.dumps(task).encode() + b"\n", timeout=timeout)
    except subprocess.TimeoutExpired:
        return f"took more than {timeout:g} s"
    finally:
        with suppress(ProcessLookupError, PermissionError):  # it ended, and left nobody
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return f"ended the process with code {child.returncode}"


def _lines(results: Path) -> list[str]:
    if results.exists():
        return results.read_text("utf-8").splitlines()
    return []
