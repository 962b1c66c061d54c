"""A behaviour as data, and the engine that checks it.

A behaviour is a row of a table: its id, what is true of a good module, what the author does when it is not, a
scenario that sets the module up and does something with it, and the expectations that must hold of what came of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable
from contextlib import asynccontextmanager
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Concatenate,
    Final,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
)

import anyio
import attrs

if TYPE_CHECKING:
    from amplifier.validation.behaviors.subject import Subject

__all__ = [
    "Behavior",
    "BehaviorFailed",
    "Check",
    "CheckOutcome",
    "Expectation",
    "NotApplicable",
    "Scenario",
    "check_behavior",
    "contains",
    "equals",
    "expect",
    "promise",
    "require",
    "scenario",
    "skip_unless",
]

P = ParamSpec("P")
T = TypeVar("T")

Check: TypeAlias = "Callable[[Subject], Awaitable[None]]"
"""Finds out whether a behaviour is true of a module; returns when it is."""

Scenario: TypeAlias = "Callable[[Subject], AsyncIterator[Iterable[T]]]"
"""Sets a module up, does something with it, and yields once what came of it, while the module is still mounted."""

Expectation: TypeAlias = "Callable[[T], Awaitable[None] | None]"
"""What must hold of each thing that a scenario yields; raises `BehaviorFailed` or `NotApplicable`."""

DEADLINE: Final = 30.0
"""Seconds that one check may take."""

ATTEMPTS: Final = 3
"""How often a check that measures time has to fail."""


class BehaviorFailed(Exception):  # noqa: N818  # a finding about a module, not a fault of the check
    """The behaviour is not true of the module; the message says what was seen instead."""


class NotApplicable(Exception):  # noqa: N818  # a finding about a module, not a fault of the check
    """The behaviour is about something that the module does not have; the message says what."""


@attrs.frozen(kw_only=True)
class Behavior:
    """Something that is true of every good module of a type.

    Args:
        id: stable between releases, such as `tool.rejects-unknown-arguments`.
        kind: the module type, or `module` for what is true of all.
        says: what is true, in one sentence.
        fix: what the author does when it is not.
        check: returns when it is true; raises `BehaviorFailed`, or `NotApplicable`.
        is_timed: whether the check measures time. A busy machine delays everything once in a while; what a module
            does, it does each time.
    """

    id: str
    kind: str
    says: str
    fix: str
    check: Check
    is_timed: bool = False


@attrs.frozen(kw_only=True)
class CheckOutcome:
    """The outcome of a check; `detail` says what was seen, or why nothing was checked."""

    status: Literal["passed", "failed", "skipped"]
    detail: str
    behavior: Behavior


def scenario(
    function: Callable[Concatenate[Subject, P], AsyncIterator[Iterable[T]]],
) -> Callable[P, Scenario[T]]:
    """Let a scenario take parameters: a call with them, in a table, makes the scenario itself."""

    @wraps(function)
    def make(*args: P.args, **kwargs: P.kwargs) -> Scenario[T]:
        return lambda subject: function(subject, *args, **kwargs)

    return make


def promise(
    id: str,
    scenario: Scenario[T],
    *expectations: Expectation[T],
    says: str,
    fix: str,
    is_timed: bool = False,
) -> Behavior:
    """Make a row of a table; its kind is what the id begins with.

    Without an expectation what the scenario itself requires is all that is promised.
    """
    played = asynccontextmanager(scenario)

    async def check(subject: Subject) -> None:
        async with played(subject) as seen:
            for thing in seen:
                for expectation in expectations:
                    answer = expectation(thing)
                    # expectations that need not wait are plain functions
                    if answer is not None:
                        await answer

    kind = id.partition(".")[0]
    return Behavior(
        id=id, kind=kind, says=says, fix=fix, check=check, is_timed=is_timed
    )


def require(condition: object, detail: str) -> None:
    """Return when the condition is true.

    Raises:
        BehaviorFailed: it is not.
    """
    if not condition:
        raise BehaviorFailed(detail)


def skip_unless(value: object, why: str) -> None:
    """Return when there is something to check.

    Raises:
        NotApplicable: there is not.
    """
    if not value:
        raise NotApplicable(why)


def equals(read: Callable[[T], object], wanted: object, what: str) -> Expectation[T]:
    """Expect a value that is read from what a scenario yields."""

    def expectation(seen: T) -> None:
        found = read(seen)
        require(
            found == wanted, f"{what} should be {wanted!r:.300}; got {found!r:.300}"
        )

    return expectation


def contains(
    read: Callable[[T], Container[str]], wanted: str, what: str
) -> Expectation[T]:
    """Expect a text in a text or list that is read from what a scenario yields."""

    def expectation(seen: T) -> None:
        found = read(seen)
        require(
            wanted in found, f"{what} should have {wanted!r:.300}; got {found!r:.300}"
        )

    return expectation


def expect(value: object, cls: type[T] | tuple[type[T], ...], what: str) -> T:
    """Return a value of a class, or of one of several.

    Raises:
        BehaviorFailed: it is of none of them.
    """
    if not isinstance(value, cls):
        if isinstance(cls, tuple):
            classes = cls
        else:
            classes = (cls,)
        names = " or ".join(part.__name__ for part in classes)
        raise BehaviorFailed(
            f"{what} should be of the class {names}; it is {type(value).__name__}: {value!r:.200}"
        )
    return value


async def check_behavior(
    behavior: Behavior, subject: Subject, *, timeout: float = DEADLINE
) -> CheckOutcome:
    """Check a behaviour of a module; whatever the module does, the outcome says it.

    Only a cancellation, or what ends the process, is raised. A module that blocks the event loop holds this as well.

    Args:
        behavior: one of `behaviors(subject.kind)`.
        subject: the module.
        timeout: seconds that the check may take; several attempts share them.
    """
    outcome = CheckOutcome(
        status="failed",
        detail=f"It did not end within {timeout:g} s",
        behavior=behavior,
    )
    # All attempts share the deadline, which the process's own is measured by.
    with anyio.move_on_after(timeout):
        for _ in range(ATTEMPTS if behavior.is_timed else 1):
            outcome = await _attempt(behavior, subject)
            # one that passes proves that the module can; a busy machine only delays
            if outcome.status != "failed":
                break
    return outcome


async def _attempt(behavior: Behavior, subject: Subject) -> CheckOutcome:
    try:
        await behavior.check(subject)
    except (Exception, SystemExit) as error:
        # foreign code: whatever it raises is the finding
        return _outcome(behavior, _cause(error))
    return CheckOutcome(status="passed", detail="", behavior=behavior)


def _outcome(behavior: Behavior, error: BaseException) -> CheckOutcome:
    match error:
        case NotApplicable():
            return CheckOutcome(status="skipped", detail=str(error), behavior=behavior)
        case BehaviorFailed():
            return CheckOutcome(status="failed", detail=str(error), behavior=behavior)
        case _:
            return CheckOutcome(
                status="failed",
                detail=f"{type(error).__name__}: {error}",
                behavior=behavior,
            )


def _cause(error: BaseException) -> BaseException:
    """Return what a check found, however many task groups it was raised through."""
    while isinstance(error, BaseExceptionGroup):
        # a finding counts before whatever else its cancelled neighbours raised
        found = error.subgroup((BehaviorFailed, NotApplicable))
        error = (found or error).exceptions[0]
    return error
