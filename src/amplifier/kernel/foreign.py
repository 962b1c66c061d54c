"""Calls of foreign code in the caller's own task, which they have to leave as it was.

A coroutine that opens a task group or a cancel scope without leaving it takes the task
along: on asyncio the host's next scope cannot be exited any more, on trio the run ends.
Nobody means to. `async for` over a generator that yields inside a task group, left by
`break`, is enough, because an event loop closes such a generator in another task.

A task for each call would contain that, but costs 20 µs, more than the rest of a small
call. So a call stays in its caller's task, at 1 µs, and what it leaves is cleared up:

- A generator that the call began and dropped is closed at the end of the call, in its
  task, the last one first. Python's hooks for asynchronous generators say which it is.
- Exiting the call's scope fails where a scope inside it is still open. Those inside are
  exited then, and the call has failed, alone.
- A call that is cancelled again and again and does not end is not resumed any more.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from contextlib import nullcontext, suppress
from math import inf
from threading import Event, Thread
from time import perf_counter
from types import AsyncGeneratorType, coroutine
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar, cast
from weakref import ref

import anyio

from amplifier.kernel.budgets.deadlines import is_held
from amplifier.kernel.reports import report
from amplifier_sdk.errors import ScopeLeftOpenError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from amplifier.kernel.spans import Span

__all__ = ["ForeignCall"]

T = TypeVar("T")

_Generator: TypeAlias = AsyncGeneratorType[object, object]

MAX_CANCELLATIONS: Final = 100
"""How often a call may be cancelled before it counts as one that ignores it."""

_NO_SCOPE: Final = nullcontext()

_ABANDONED: Final[list[object]] = []
"""The calls that are not resumed any more. Python would resume them to close them if
they were deleted, be it when the process ends, and they ignore that as well."""


class _Nursery(Protocol):
    """What is needed of trio's nurseries; only the scope is documented."""

    cancel_scope: anyio.CancelScope
    _cancel_status: _CancelStatus

    async def _nested_child_finished(
        self, failure: BaseException | None
    ) -> BaseException | None: ...


class _CancelStatus(Protocol):
    abandoned_by_misnesting: bool


class ForeignCall:
    """One call of foreign code; `cancelled_caught` once its own scope has ended it.

    Args:
        name: how errors and reports name what is called.
        scope: what is entered around the call and has its deadline; without one the
            call has none, and a scope that it leaves open is its caller's to find.
        seconds: how long it may take; the deadline is set when it waits for the first
            time, since no deadline ends what never waits, and setting one costs as much
            as the scope itself.
        span: the span whose scope it is; while its deadline is held, none is set.
        outer: the scope of the turn that the call is a part of.
        grace: seconds for which it may ignore that it was cancelled.
    """

    __slots__ = (
        "_begun",
        "_cancellations",
        "_cancelled_at",
        "_dropped",
        "_error",
        "_finalizer",
        "_firstiter",
        "_has_waited",
        "cancelled_caught",
        "grace",
        "is_over",
        "name",
        "outer",
        "scope",
        "seconds",
        "span",
    )

    def __init__(
        self,
        name: str,
        scope: anyio.CancelScope | None = None,
        seconds: float = inf,
        *,
        span: Span | None = None,
        outer: anyio.CancelScope | None = None,
        grace: float = 5.0,
    ) -> None:
        self.name: str = name
        self.scope: anyio.CancelScope | None = scope
        self.seconds: float = seconds
        self.span: Span | None = span
        self.outer: anyio.CancelScope | None = outer
        self.grace: float = grace
        self.cancelled_caught: bool = False
        self.is_over: bool = False
        self._begun: dict[int, ref[_Generator]] | None = None
        self._dropped: list[_Generator] | None = None
        self._firstiter, self._finalizer = sys.get_asyncgen_hooks()
        self._error: BaseException | None = None
        self._has_waited = False
        self._cancellations = 0
        self._cancelled_at = 0.0

    @coroutine
    def run(self, call: Awaitable[T]) -> Generator[object, object, T | None]:
        """Await the call, and close the generators that it dropped; `None` when its scope was cancelled.

        Python's hooks are the call's own while it runs. It is resumed here and not in a function of its own, which
        would be one more frame of every traceback.

        Raises:
            ScopeLeftOpenError: it left a task group or a cancel scope open.
            BaseException: what it raised.
        """
        scope, started = self.scope, perf_counter()
        resume = cast("Callable[[object], object]", next)
        answer: T | None = None
        try:
            with scope or _NO_SCOPE:
                steps = cast("Generator[object, object, T]", call.__await__())
                given: object = steps
                try:
                    while True:
                        # Two names and not the pair: the garbage collector does not look into the
                        # pair, so a session that its hooks refer to would never be freed.
                        firstiter, finalizer = sys.get_asyncgen_hooks()
                        self._firstiter, self._finalizer = firstiter, finalizer
                        sys.set_asyncgen_hooks(self._note_begun, self._note_dropped)
                        try:
                            wanted = resume(given)
                        finally:
                            given = None  # an error would refer to this frame, and that to it
                            sys.set_asyncgen_hooks(firstiter, finalizer)
                        if resume is next:
                            self._set_deadline(started)
                        resume, given = yield from self._wait(wanted, steps)
                except StopIteration as end:
                    answer = end.value
                    self._report_ignored()
                except BaseException as error:
                    yield from self._fail(error)
                    raise
                if self._dropped:
                    yield from self._close_dropped().__await__()
            if scope is not None:
                self.cancelled_caught = scope.cancelled_caught
        except RuntimeError as error:
            if error is self._error or scope is None:
                raise
            yield from self._exit_failed(scope, error)
        finally:
            self.is_over = True
        if self.cancelled_caught:
            return None
        return answer

    def _wait(
        self, wanted: object, steps: Generator[object, object, T]
    ) -> Generator[object, object, tuple[Callable[[object], object], object]]:
        """Wait for what the call waits for, and return how it is resumed, and with what."""
        try:
            given = yield wanted
        except GeneratorExit:
            steps.close()
            raise
        except BaseException as error:  # it is the call's, which may handle it
            self._end_ignoring(error, steps)
            return cast("Callable[[object], object]", steps.throw), error
        # trio sends what a wait ended with, be it an error.
        failure: object = getattr(given, "error", None)
        if isinstance(failure, BaseException):
            self._end_ignoring(failure, steps)
        return steps.send, given

    def _exit_failed(
        self, scope: anyio.CancelScope, error: RuntimeError
    ) -> Generator[object, object, None]:
        """Exit what the call left of its scope, and raise what it has failed with, if it was not cancelled."""
        yield from self._exit(scope).__await__()
        ended_by = self._error
        if isinstance(ended_by, Exception) or ended_by is None:
            raise ScopeLeftOpenError(self.name) from error
        if not scope.cancel_called:
            raise ended_by from None
        self.cancelled_caught = True

    def _fail(self, error: BaseException) -> Generator[object, object, None]:
        """Note what the call raised, and close the generators that it dropped."""
        if isinstance(error, GeneratorExit):
            return  # nothing can be awaited
        self._error = error
        if self._dropped:
            yield from self._close_dropped().__await__()

    def limit(self, seconds: float) -> None:
        """Say how long the rest of the call may take, where what surrounds it may have waited by now."""
        self.seconds = seconds
        if self._has_waited:
            self._set_deadline(perf_counter())

    def _set_deadline(self, started: float) -> None:
        self._has_waited = True
        if self.scope is None or self.seconds == inf:
            return
        if self.span is None or not is_held(self.span):
            left = self.seconds - (perf_counter() - started)
            self.scope.deadline = anyio.current_time() + left

    def _end_ignoring(self, error: BaseException, steps: object) -> None:
        """Raise a cancellation that the call would ignore once more, and abandon it.

        At this moment nothing will resume the call. What its own scopes cancel is its
        own affair, however often that happens.
        """
        scopes = (self.scope, self.outer)
        if not any(scope is not None and scope.cancel_called for scope in scopes):
            return
        if not isinstance(error, anyio.get_cancelled_exc_class()):
            return
        now = anyio.current_time()
        if not self._cancellations:
            self._cancelled_at = now
        self._cancellations += 1
        is_late = now - self._cancelled_at >= self.grace
        if is_late and self._cancellations > MAX_CANCELLATIONS:
            report("call.abandoned", call=self.name)
            _abandon(steps)
            raise error

    def _report_ignored(self) -> None:
        if self._cancellations:
            report("call.ignored_cancellation", call=self.name)

    # -- generators

    def _note_begun(self, begun: AsyncGenerator[object, object]) -> None:
        generator = cast("_Generator", begun)  # Python reports no other
        if self._begun is None:
            self._begun = {}
        # One that was deleted may have had the same identity.
        self._begun.pop(id(generator), None)
        self._begun[id(generator)] = ref(generator)
        if self._firstiter is not None:
            self._firstiter(generator)

    def _note_dropped(self, dropped: AsyncGenerator[object, object]) -> None:
        """Keep a generator that Python is about to delete: its call closes it.

        A generator outlives its call where a tool has it in an attribute, for example.
        Then it is the event loop's.
        """
        if not self.is_over:
            if self._dropped is None:
                self._dropped = []
            self._dropped.append(cast("_Generator", dropped))
        elif self._finalizer is not None:
            self._finalizer(dropped)

    async def _close_dropped(self) -> None:
        """Close what the call dropped.

        Raises:
            ScopeLeftOpenError: there was a task group in it.
        """
        assert self._begun is not None
        order = list(self._begun)
        dropped, self._dropped = self._dropped or [], None
        dropped.sort(key=lambda generator: order.index(id(generator)), reverse=True)
        await self._close(dropped)

    async def _close(self, generators: Iterable[_Generator]) -> None:
        """Close generators in the task that began them, each whatever others raise."""
        failure: BaseException | None = None
        for generator in generators:
            try:
                await generator.aclose()
            # A task group raises all that ended it, what closes a generator too.
            except BaseExceptionGroup as group:  # foreign code
                if group.subgroup(GeneratorExit) is None:
                    report("generator.not_closed", group, call=self.name)
                else:
                    failure = failure or _left_open(self.name, generator, group)
            except Exception as error:  # foreign code
                report("generator.not_closed", error, call=self.name)
            except BaseException as error:  # the rest is to be closed first
                failure = error
        if failure is not None:
            raise failure

    # -- scopes

    async def _exit(self, scope: anyio.CancelScope) -> None:
        """Exit what is open inside the call's scope, and the scope itself.

        trio leaves the scopes inside by itself, but for its nurseries; asyncio needs the
        rest as well.
        """
        begun = (generator() for generator in reversed((self._begun or {}).values()))
        with suppress(ScopeLeftOpenError):
            await self._close([each for each in begun if each is not None])
        _exit_inner(scope)
        with suppress(RuntimeError):  # on trio it was exited
            scope.__exit__(None, None, None)
        await self._close_nurseries()

    async def _close_nurseries(self) -> None:
        """Cancel and close what the call left of trio's nurseries, the innermost first.

        trio ends a whole run in which a task has one left, and only the manager that
        entered it closes it by documented means. Those around the call are known by
        their scopes: none of them was abandoned when the call's was exited.
        """
        task: object = getattr(anyio.get_current_task(), "_task", None)
        nurseries: Iterable[_Nursery] = getattr(task, "child_nurseries", ())
        for nursery in reversed([*nurseries]):
            if not nursery._cancel_status.abandoned_by_misnesting:  # noqa: SLF001  # see above
                return
            nursery.cancel_scope.cancel()
            failure = await nursery._nested_child_finished(None)  # noqa: SLF001  # likewise
            if failure is not None:
                report("nursery.failed", failure, call=self.name)


def _abandon(call: object) -> None:
    """Keep a call for ever: nothing frees what a daemon thread's frame refers to."""
    if not _ABANDONED:
        Thread(
            target=_hold, args=(_ABANDONED,), name="abandoned calls", daemon=True
        ).start()
    _ABANDONED.append(call)


def _hold(_: object) -> None:
    Event().wait()


def _exit_inner(scope: anyio.CancelScope) -> None:
    """Cancel and exit the scopes inside another, the innermost first.

    anyio's scopes on asyncio know them, which is not documented; others have no need.
    """
    inner: Iterable[anyio.CancelScope] = getattr(scope, "_child_scopes", ())
    for each in tuple(inner):
        _exit_inner(each)
        each.cancel()
        with suppress(RuntimeError):  # another task's
            each.__exit__(None, None, None)


def _left_open(
    name: str, generator: _Generator, cause: BaseException
) -> ScopeLeftOpenError:
    code = generator.ag_code
    where = f"{generator.__qualname__} ({code.co_filename}:{code.co_firstlineno})"
    error = ScopeLeftOpenError(name, where)
    error.__cause__ = cause
    return error
