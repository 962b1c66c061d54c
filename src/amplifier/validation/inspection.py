"""The structure of a module, checked in the child process, from its import to what it leaves behind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, TypeAlias

import anyio
import attrs

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier.validation.behaviors.harness import Harness, open_harness
from amplifier.validation.behaviors.subject import Subject
from amplifier.validation.checks import CHECKS
from amplifier.validation.emitted import emitted_events, inherited_events
from amplifier.validation.imports import (
    CheckedModule,
    check_mountable,
    check_ready,
    import_target,
    place_of,
)
from amplifier.validation.journal import FindingsJournal
from amplifier.validation.leftovers import Leftovers, settle
from amplifier.validation.members import check_members
from amplifier.validation.supervision import ChildTask
from amplifier_sdk.errors import AmplifierError, ConfigError, ModuleError
from amplifier_sdk.events import ALL_EVENTS
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["inspect_module"]

UNKNOWN_KEY: Final = "no_such_key"
"""A configuration key that no module knows."""

CHANNEL: Final = "observability.events"
"""Where modules declare the events of their own, as channel and, in older modules, as capability."""


_Look: TypeAlias = Callable[[Harness], Awaitable[None]]
"""What is done while the module is mounted."""


def inspect_module(task: ChildTask, journal: FindingsJournal) -> None:
    """Check a module's structure; every result goes into the journal."""
    with journal.step("module.imports"):
        loaded, results = import_target(task)
        for result in results:
            journal.add(result)
    if loaded is not None:
        journal.note_type(loaded.kind.name)
        anyio.run(_Inspection(task, loaded, journal).run, backend=task.backend)


@attrs.define(eq=False)
class _Inspection:
    task: ChildTask
    loaded: CheckedModule
    journal: FindingsJournal
    _declared: set[str] = attrs.field(factory=set)

    async def run(self) -> None:
        """Run the checks in order; those that need a mounted module only when it mounts."""
        with self.journal.step("module.mountable"):
            mountable = check_mountable(self.loaded)
            self.journal.add(mountable)
            self.journal.add(check_ready(self.loaded))
        # what follows would only repeat the error in other words
        if mountable.status == "error":
            return
        with self.journal.step("module.mounting", times=2):
            mounted = await self._check_mounts()
        with self.journal.step("module.configuration", times=2):
            # also of a module that does not mount: the unknown key may still be named
            await self._check_configuration()
        if not mounted:
            return
        with self.journal.step("module.cleanup", times=2):
            await self._check_cleanup()
        with self.journal.step("module.events"):
            self._check_events()

    async def _check_mounts(self) -> bool:
        """Mount with the author's configuration and look at what is there; return whether it mounted."""
        check = CHECKS["module.mounting"]
        failure = await self._mount(self.task.config, self._look)
        if failure is None:
            return True
        message, fix = _explain_mount(failure, self.task.module)
        self.journal.add(
            check.error(message, fix=fix, place=place_of(failure, self.task.location))
        )
        return False

    async def _look(self, harness: Harness) -> None:
        check = CHECKS["module.mounting"]
        found = _mounted(harness, self.loaded.kind.mount_point)
        self._declared = await _declared_events(harness.coordinator)
        if not found:
            if self.loaded.kind.name == "hook":
                what = "no handler was registered"
            else:
                what = "nothing was mounted"
            fix = (
                "Give a configuration with which it does: "
                f"[tool.amplifier.validate.{self.task.module}] config = {{…}}."
            )
            self.journal.add(
                check.warning(
                    f"It mounts, but {what}, so the rest says little.", fix=fix
                )
            )
            return
        self.journal.add(check.passed(f"It mounts {', '.join(found)}."))
        members = found
        if self.loaded.kind.name == "hook":
            members = {
                f"{each.name} on {each.event}": each.handler
                for each in harness.handlers
            }
        for result in check_members(self.loaded.kind.name, members):
            self.journal.add(result)

    async def _check_configuration(self) -> None:
        check = CHECKS["module.configuration"]
        error = await self._mount({**self.task.config, UNKNOWN_KEY: True})
        if error is None:
            self.journal.add(
                check.warning(
                    f"The unknown key {UNKNOWN_KEY!r} was taken in silence; so is a misspelt one."
                )
            )
        elif UNKNOWN_KEY in str(error):
            self.journal.add(check.passed())
        else:
            reason = f"it could not be mounted with an unknown key, for another reason: {_first_line(error)}"
            self.journal.add(check.skipped(reason))

    async def _check_cleanup(self) -> None:
        """Mount once more, now that everything is loaded, and compare before and after."""
        check = CHECKS["module.cleanup"]
        before = Leftovers.baseline()
        failure = await self._mount(self.task.config)
        # in any case: what failed to mount may have left something, too
        left = await settle(before)
        if failure is not None:
            self.journal.add(
                check.error(f"It mounts only once in a process: {_first_line(failure)}")
            )
        elif left:
            self.journal.add(
                check.error(
                    f"When the session has ended there is still {', '.join(left)}."
                )
            )
        else:
            self.journal.add(check.passed())

    def _check_events(self) -> None:
        check = CHECKS["module.events"]
        if self.task.location is None:
            self.journal.add(check.skipped("the package's source was not found"))
            return
        emitted = emitted_events(self.task.location)
        own = {
            name: place
            for name, place in emitted.places.items()
            if name not in ALL_EVENTS
        }
        hidden = sorted(own.keys() - self._declared)
        known = emitted.places.keys() | inherited_events(self.loaded.target)
        # an event whose name is put together may be one of those that are declared
        if emitted.is_complete:
            unused = sorted(self._declared - known)
        else:
            unused = []
        if hidden:
            message = f"It emits {', '.join(hidden)}, which {CHANNEL} does not list."
            self.journal.add(check.warning(message, place=own[hidden[0]]))
        elif unused:
            fix = "Take them out of the contribution, or emit them."
            self.journal.add(
                check.warning(
                    f"It declares {', '.join(unused)} and never emits them.", fix=fix
                )
            )
        else:
            self.journal.add(check.passed())

    async def _mount(
        self, config: Mapping[str, JSONValue], look: _Look | None = None
    ) -> Exception | None:
        """Open and close a session with the module; return what prevented its mounting."""
        kind = self.loaded.kind.name
        subject = Subject(kind=kind, module=self.loaded.target, config=config)
        try:
            # shorter than the step's deadline: a hang that can be cancelled is a
            # finding, and does not end the process
            with anyio.fail_after(self.task.timeout):
                async with open_harness(subject) as harness:
                    if look is not None:
                        await look(harness)
        except TimeoutError:
            return TimeoutError(
                f"mounting and unmounting took longer than {self.task.timeout:g} s"
            )
        except Exception as error:  # whatever foreign code raises is the finding
            return error
        return None


def _mounted(harness: Harness, mount_point: str) -> dict[str, object]:
    """Return what the module mounted, by name; for a hook module its handlers, by event."""
    if harness.subject.kind == "hook":
        return {each.event: each.handler for each in harness.handlers}
    found = harness.coordinator.get(mount_point)
    if isinstance(found, dict):
        return dict(found)
    return {harness.subject.kind: found}


async def _declared_events(coordinator: ModuleCoordinator) -> set[str]:
    """Collect the declared events; a contribution is a name or a list of names."""
    offered = await coordinator.collect_contributions(CHANNEL)
    offered.append(coordinator.get_capability(CHANNEL))
    names: set[str] = set()
    for part in offered:
        listed = [part] if isinstance(part, str) else part
        names |= (
            {str(name) for name in listed if isinstance(name, str)}
            if isinstance(listed, Iterable)
            else set()
        )
    return names


def _explain_mount(error: Exception, module_id: str) -> tuple[str, str | None]:
    """Return what prevented the mounting, and the remedy where the error itself knows none."""
    match error:
        case ConfigError(problems=problems):
            said = "; ".join(
                f"{problem.path.partition('config.')[2] or problem.path}: {problem.message}"
                for problem in problems
            )
            fix = f"Give it what it needs under [tool.amplifier.validate.{module_id}] config in pyproject.toml."
            return f"It refuses its configuration: {said}", fix
        case ModuleError(reason=reason):
            return f"It cannot be mounted: {reason}", None
        case AmplifierError() | TimeoutError():
            return f"It cannot be mounted: {error}", None
        case _:
            return f"It cannot be mounted: {type(error).__name__}: {error}", None


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
