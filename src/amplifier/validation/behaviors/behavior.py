"""One behaviour of a module type, and what came of checking it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

import anyio
import attrs

if TYPE_CHECKING:
    from amplifier.validation.behaviors.subject import Subject

__all__ = [
    "Behavior",
    "BehaviorFailed",
    "Check",
    "NotApplicable",
    "Outcome",
    "Suite",
    "check_behavior",
    "expect",
    "require",
]

T = TypeVar("T")

Check: TypeAlias = "Callable[[Subject], Awaitable[None]]"
"""Finds out whether a behaviour is true of a module; returns when it is."""

DEADLINE: Final = 30.0
"""Seconds that one check may take."""

TRIES: Final = 3
"""How often a check that looks at the clock has to fail."""


class BehaviorFailed(Exception):  # noqa: N818  # a finding about a module, not a fault of the check
    """The behaviour is not true of the module; the message says what was seen instead."""


class NotApplicable(Exception):  # noqa: N818  # a finding about a module, not a fault of the check
    """The behaviour is about something that the module does not have; the message says what."""


@attrs.frozen(kw_only=True)
class Behavior:
    """Something that is true of every good module of a type.

    Args:
        id: stable between releases, such as `tool.rejects-unknown-arguments`.
        kind: the module type, or `module` for what holds of all.
        says: what is true, in one sentence.
        fix: what the author does when it is not.
        check: returns when it is true; raises `BehaviorFailed`, or `NotApplicable`.
        is_timed: whether the check looks at the clock. A busy machine holds everything up once in a while; what a
            module does, it does each time.
    """

    id: str
    kind: str
    says: str
    fix: str
    check: Check
    is_timed: bool = False


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of checking a behaviour; `detail` says what was seen, or why nothing was checked."""

    status: Literal["passed", "failed", "skipped"]
    detail: str
    behavior: Behavior


@attrs.define(eq=False)
class Suite:
    """The behaviours of one module type, in the order in which they are written."""

    kind: str
    behaviors: list[Behavior] = attrs.field(factory=list)

    def behavior(self, *, fix: str, is_timed: bool = False) -> Callable[[Check], Check]:
        """Add a check: its name becomes the id, its docstring what it says."""

        def add(check: Check) -> Check:
            name = getattr(check, "__name__", "").replace("_", "-")
            says = " ".join((inspect.getdoc(check) or "").split())
            id_ = f"{self.kind}.{name}"
            self.behaviors.append(Behavior(id=id_, kind=self.kind, says=says, fix=fix, check=check, is_timed=is_timed))
            return check

        return add


def require(condition: object, detail: str) -> None:
    """Go on when the condition is true.

    Raises:
        BehaviorFailed: it is not.
    """
    if not condition:
        raise BehaviorFailed(detail)


def expect(value: object, cls: type[T] | tuple[type[T], ...], what: str) -> T:
    """Return a value of a class, or of one of several.

    Raises:
        BehaviorFailed: it is of none of them.
    """
    if not isinstance(value, cls):
        names = " or ".join(part.__name__ for part in (cls if isinstance(cls, tuple) else (cls,)))
        raise BehaviorFailed(f"{what} should be of the class {names}; it is {type(value).__name__}: {value!r:.200}")
    return value


async def check_behavior(behavior: Behavior, subject: Subject, *, timeout: float = DEADLINE) -> Outcome:
    """Check a behaviour of a module; whatever the module does, the outcome says it.

    Only a cancellation, or what ends the process, is raised. A module that blocks the event loop holds this as well.

    Args:
        behavior: one of `behaviors(subject.kind)`.
        subject: the module.
        timeout: seconds that the check may take; several tries share them.
    """
    outcome = Outcome(status="failed", detail=f"It did not end within {timeout:g} s", behavior=behavior)
    with anyio.move_on_after(timeout):
        for _ in range(TRIES if behavior.is_timed else 1):
            outcome = await _try(behavior, subject)
            if outcome.status != "failed":
                break
    return outcome


async def _try(behavior: Behavior, subject: Subject) -> Outcome:
    try:
        await behavior.check(subject)
    except (Exception, SystemExit) as error:  # foreign code: whatever it raises is the finding
        return _outcome(behavior, _cause(error))
    return Outcome(status="passed", detail="", behavior=behavior)


def _outcome(behavior: Behavior, error: BaseException) -> Outcome:
    match error:
        case NotApplicable():
            return Outcome(status="skipped", detail=str(error), behavior=behavior)
        case BehaviorFailed():
            return Outcome(status="failed", detail=str(error), behavior=behavior)
        case _:
            return Outcome(status="failed", detail=f"{type(error).__name__}: {error}", behavior=behavior)


def _cause(error: BaseException) -> BaseException:
    """Return what a check found, however many task groups it was raised through."""
    while isinstance(error, BaseExceptionGroup):
        found = error.subgroup((BehaviorFailed, NotApplicable))
        error = (found or error).exceptions[0]
    return error
