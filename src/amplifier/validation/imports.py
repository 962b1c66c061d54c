"""From an entry point to what it names, its type and whether it can be mounted; nothing is mounted here."""

from __future__ import annotations

import inspect
import traceback
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

import attrs

from amplifier.kernel.modules.adapters import adapted, provide
from amplifier.kernel.modules.loader import ModuleLoader
from amplifier.kernel.modules.plugins import Plugins
from amplifier.kernel.modules.shapes import ImportedModule, load_plugin, main_of
from amplifier.kernel.plans.plan import ModuleSpec
from amplifier.validation.checks import CHECKS
from amplifier.validation.report import CheckResult
from amplifier.validation.supervision import ChildTask
from amplifier_sdk.errors import ModuleError
from amplifier_sdk.hookspecs import KINDS, ModuleKind

__all__ = [
    "CheckedModule",
    "check_mountable",
    "check_ready",
    "import_target",
    "place_of",
]

_IMPORT_FIXES: Final = {
    AttributeError: "Name in the entry point what the package has, as 'package.module:attribute'.",
    ModuleNotFoundError: "Install what it needs into this environment, and name it in the dependencies.",
    SystemExit: "Take the call that ends the process out of what runs on import.",
}


@attrs.frozen(kw_only=True)
class CheckedModule:
    """A module that is imported, and the type as which it is checked."""

    module: ImportedModule
    kind: ModuleKind

    @property
    def target(self) -> object:
        """What the entry point names."""
        return self.module.target


def import_target(task: ChildTask) -> tuple[CheckedModule | None, list[CheckResult]]:
    """Import a module and find its type; return what was found on the way, and `None` where that ended it."""
    check = CHECKS["module.imports"]
    try:
        imported = _import(task)
    except (Exception, SystemExit) as error:
        # whatever foreign code raises is the finding
        message = f"Importing {task.target!r} failed: {type(error).__name__}: {error}"
        fix = next(
            (text for cls, text in _IMPORT_FIXES.items() if isinstance(error, cls)),
            None,
        )
        return None, [
            check.error(message, fix=fix, place=place_of(error, task.location))
        ]
    # an installed package of the name would be reported as if it were the author's
    if (elsewhere := _elsewhere(imported, task.location)) is not None:
        message = f"Another package of the same name is imported instead: {elsewhere}."
        return None, [
            check.error(message, fix="Rename the package, or uninstall the other one.")
        ]
    name, result = _type(task, imported)
    kind = next((kind for kind in KINDS if kind.name == name), None)
    if kind is None or result.status == "error":
        loaded = None
    else:
        loaded = CheckedModule(module=imported, kind=kind)
    return loaded, [check.passed(), result]


def place_of(error: BaseException, location: Path | None) -> str | None:
    """Return the innermost line of the module itself in an error's traceback, or in that of its causes."""
    cause: BaseException | None = error
    found = None
    # the kernel wraps what a module raises, so that its line is further down
    while cause is not None:
        for frame in traceback.extract_tb(cause.__traceback__):
            if location is not None and Path(frame.filename).is_relative_to(location):
                found = f"{frame.filename}:{frame.lineno}"
        cause = cause.__cause__
    return found


def check_mountable(loaded: CheckedModule) -> CheckResult:
    """Check that the loader can make a plugin of it."""
    check = CHECKS["module.mountable"]
    spec = ModuleSpec(
        module=loaded.module.id, path=f"the section {loaded.kind.section!r}"
    )
    try:
        # a manager of its own, which is thrown away: nothing stays registered
        load_plugin(loaded.module, spec, loaded.kind, Plugins())
    except ModuleError as error:
        return check.error(
            f"It cannot be mounted: {error.reason}.",
            place=_place_of_object(loaded.target),
        )
    return check.passed()


def check_ready(loaded: CheckedModule) -> CheckResult:
    """Check that `on_session_ready` is async, where there is one."""
    check = CHECKS["module.on-session-ready"]
    ready = loaded.module.on_session_ready
    if ready is None or inspect.iscoroutinefunction(ready):
        return check.passed()
    return check.error(
        "on_session_ready is not async, so no session calls it.",
        place=_place_of_object(ready),
    )


def _import(task: ChildTask) -> ImportedModule:
    """Import the package and find in it what the entry point names, or what stands for the module."""
    name, _, path = task.target.partition(":")
    # as sessions load it, a module of another kernel among them
    provide()
    package = import_module(name)
    target: object = package
    # as `importlib.metadata.EntryPoint.load` does it
    for attribute in filter(None, path.split(".")):
        target = getattr(target, attribute)
    if not path:
        target = main_of(package, task.module)
    return adapted(ImportedModule(id=task.module, target=target, package=package))


def _elsewhere(imported: ImportedModule, location: Path | None) -> str | None:
    file = getattr(imported.package, "__file__", None)
    if (
        location is None
        or file is None
        or Path(file).resolve().is_relative_to(location.resolve())
    ):
        return None
    return str(file)


def _type(task: ChildTask, imported: ImportedModule) -> tuple[str | None, CheckResult]:
    """Tell the type: the declared one, else the one that was asked for, else the one that the id suggests."""
    check = CHECKS["module.type"]
    known = [kind.name for kind in KINDS]
    declared = imported.declared_type or _implemented(imported.target)
    suggested = ModuleLoader(path=[], search_paths=[]).type_of(task.module)
    name = declared or task.type or (suggested if suggested in known else None)
    if name is None:
        return None, check.error(
            f"Nothing says which type {task.module!r} has; it is one of {', '.join(known)}."
        )
    if name not in known:
        return None, check.error(
            f"It declares the type {name!r}; there are {', '.join(known)}."
        )
    if task.type not in (None, name):
        return name, check.error(
            f"It declares the type {name!r}, but was to be checked as {task.type!r}."
        )
    if declared is not None and suggested not in ("unknown", declared):
        return name, check.warning(
            f"It declares the type {name!r}, but its id suggests {suggested!r}."
        )
    return name, check.passed(f"The module's type is {name}.")


def _implemented(target: object) -> str | None:
    """Return the one type whose hook an object implements."""
    manager = Plugins().manager
    marked = [
        options
        for name in dir(target)
        if (options := manager.parse_hookimpl_opts(target, name)) is not None
    ]
    specs = {options["specname"] for options in marked}
    kinds = [kind.name for kind in KINDS if kind.spec.name in specs]
    if len(kinds) == 1:
        return kinds[0]
    return None


def _place_of_object(target: object) -> str | None:
    if not (
        inspect.isclass(target)
        or inspect.isroutine(target)
        or isinstance(target, ModuleType)
    ):
        return None
    try:
        return (
            f"{inspect.getsourcefile(target)}:{inspect.getsourcelines(target)[1] or 1}"
        )
    except (OSError, TypeError):
        return None
