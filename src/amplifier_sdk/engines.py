"""What runs turns beyond one process: what an application asks of an engine, however that schedules them.

A *run* is one execution of a *workflow*, a function that the workers of an engine know by name. It survives its
worker: another one calls the function again from its beginning, and each *step* that was finished returns what it
returned then, without running again. A step that was begun and not finished may have had its effect; what must not
happen twice notes in a journal that it begins, as a turn's tool calls do.

A run that waits for an *event* or for a time is *suspended*: its function is left with `RunSuspendedError`, so that it
holds no worker, task, lock or connection. When the event comes, the function is called again.

Engines schedule, wake and elect. What a session said and did is the session store's, whose journal is the truth about
a turn: an engine's steps hold the outcome of a whole turn, and never what happened in it.

`amplifier.testing.engines` checks whether an engine guarantees all this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import attrs

from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.values import Value

__all__ = [
    "EngineOpener",
    "ExecutionEngine",
    "Run",
    "RunRequest",
    "RunState",
    "WorkerOptions",
    "Workflow",
    "WorkflowContext",
]

RunState: TypeAlias = Literal[
    "queued", "running", "waiting", "finished", "failed", "cancelled"
]
"""How a run stands; the last three are for ever."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RunRequest(Value):
    """A run that shall begin.

    Args:
        run_id: its id in the whole engine; the same one again is the same run.
        workflow: the name of the function.
        argument: what the function is given.
        tenant: for whom it runs; tenants take turns in the queue.
        priority: the runs of a tenant begin in the order in which they are queued, and one of priority N as if it were
            queued N minutes later: a lower one goes first, and none waits for ever. Not negative.
    """

    run_id: str
    workflow: str
    argument: JSONValue = None
    tenant: str = ""
    priority: int = 0


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Run(Value):
    """How a run stands.

    Args:
        request: as what it was begun.
        state: whether it waits for a worker, runs, waits for an event or is over.
        result: what its function returned.
        problem: why it failed.
        waits_for: the event, or the name of the sleep, that it waits for.
    """

    request: RunRequest
    state: RunState
    result: JSONValue = None
    problem: str | None = None
    waits_for: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing happens in it any more."""
        return self.state in ("finished", "failed", "cancelled")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class WorkerOptions(Value):
    """How a worker works.

    Args:
        name: its own, in the whole engine; also that of no worker before it.
        max_runs: how many runs at once.
        max_tenant_runs: how many runs of one tenant at once, over all workers.
        period: seconds after which it is taken for dead unless it says that it lives; it says so every third.
        drain: seconds for runs to end when it is stopped; what is left is returned to the queue.
    """

    name: str
    max_runs: int = 8
    max_tenant_runs: int = 8
    period: float = 15.0
    drain: float = 10.0


class WorkflowContext(Protocol):
    """What a workflow's function has of its run. Its calls are made one after another, in the same order each time."""

    @property
    def run_id(self) -> str:
        """The id of the run."""

    async def step(
        self, name: str, action: Callable[[], Awaitable[JSONValue]]
    ) -> JSONValue:
        """Run an action, once it is finished never again; return what it returned when it was.

        Args:
            name: its own in the run.
            action: what is done.

        Raises:
            StepFailedError: the action raised an error, now or when it ran.
            RunLostError: another worker has the run by now; nothing was recorded.
        """

    async def wait_for_event(
        self, name: str, *, timeout: float | None = None
    ) -> JSONValue:
        """Return the value of an event, each time the same; suspend the run until it comes.

        Args:
            name: the event; each name is waited for once in a run.
            timeout: seconds after which `None` is returned, from the first call on.

        Raises:
            RunSuspendedError: it has not come yet; let it pass.
        """

    async def sleep(self, name: str, seconds: float) -> None:
        """Suspend the run for a time, by the engine's clock.

        Args:
            name: its own in the run, among the events.
            seconds: how long, from the first call on.

        Raises:
            RunSuspendedError: it is not over yet; let it pass.
        """


Workflow: TypeAlias = Callable[[WorkflowContext, JSONValue], Awaitable[JSONValue]]
"""A function that a run calls, with the run's argument; what it returns is the run's result."""


@runtime_checkable
class ExecutionEngine(Protocol):
    """An engine; whoever opened it closes it with `aclose`.

    Every method may raise `EngineError` where what the engine stores cannot be reached.
    """

    async def start(self, request: RunRequest) -> None:
        """Put a run in the queue; one of the same id changes nothing, whatever became of it."""

    async def send(self, run_id: str, event: str, value: JSONValue) -> None:
        """Send an event to a run, which need not wait for it yet; of one name the first value counts.

        Raises:
            EngineError: there is no such run.
        """

    async def cancel(self, run_id: str) -> None:
        """Cancel a run: it begins no further step, and its function is cancelled where it runs.

        One that is over stays as it is.

        Raises:
            EngineError: there is no such run.
        """

    async def find(self, run_id: str) -> Run | None:
        """Return how a run stands; `None` where there is none."""

    async def runs(self, state: RunState, *, limit: int) -> tuple[Run, ...]:
        """Return the runs of a state, the oldest first."""

    async def work(
        self, workflows: Mapping[str, Workflow], options: WorkerOptions
    ) -> None:
        """Run what is in the queue, until the caller cancels this.

        One of the workers, elected by lease, calls `take_over` in every period. A worker that is cancelled takes no
        further run and gives those that it has `drain` seconds; the others are back in the queue when it returns.

        Args:
            workflows: the functions by name; a run of another one stays in the queue.
            options: how it works.
        """

    async def take_over(self) -> tuple[str, ...]:
        """Put the runs of dead workers back in the queue and wake those whose time has come; return their ids."""

    async def aclose(self) -> None:
        """Close the engine; a second call does nothing. Its runs stay."""
        ...


class EngineOpener(Protocol):
    """What an entry point of the group `amplifier.engines` names; the entry point's name is the scheme of its URLs."""

    async def __call__(self, url: str, *, namespace: str) -> ExecutionEngine:
        """Open an engine; whoever asks for it closes it.

        Args:
            url: where it stores its runs.
            namespace: whose runs are meant; nothing of another one is seen.

        Raises:
            EngineError: it cannot be opened; the message names the place without a password, and what helps.
        """
        ...
