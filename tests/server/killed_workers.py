"""Workers that are killed at a write of a step: `python -m tests.server.killed_workers`, with an order on each line.

Each worker is forked from this process, which has imported all that it needs and runs nothing itself, and ends by
SIGKILL: before the write, after it, or while it is under way. What is answered is how it ended, and where.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar, cast

import anyio
import attrs
import cattrs

from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.server.activity import ActivityLog
from amplifier.server.served_turns import TurnSetup
from amplifier.server.stores import ServerStores
from amplifier.server.workers import TurnWorker
from amplifier_sdk.engines import WorkerOptions
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import Lease, LogEntry, SessionLog, SessionStore

__all__ = ["MOMENTS", "WRITES", "KillPoint", "NoWaits", "Order", "Outcome"]

T = TypeVar("T")
Write: TypeAlias = Literal[
    "message", "call_started", "call_finished", "events", "opening"
]
Moment: TypeAlias = Literal["before", "during", "after"]

WRITES: Final[tuple[Write, ...]] = (
    "message",
    "call_started",
    "call_finished",
    "events",
    "opening",
)
MOMENTS: Final[tuple[Moment, ...]] = ("before", "during", "after")

_PRELOADED: Final = (
    "amplifier_module_context_simple",
    "amplifier_module_loop_basic",
    "amplifier_module_provider_scripted",
    "amplifier_module_store_postgres",
    "anyio._backends._asyncio",
    "anyio._backends._trio",
    "filelock",
    "jsonschema_rs",
    "psycopg",
)
"""What a turn imports when it needs it: a worker that is forked would import it each time."""

_CHANGES: Final = frozenset(
    {"write_record", "replace", "write_document", "append", "void_questions"}
)


@attrs.frozen
class KillPoint:
    """Where a worker is killed.

    Args:
        step: the number of the step, from 0.
        write: the record of the journal that it writes then, an event that watchers see, or what a worker writes
            before it continues a turn.
        moment: before it is written, after it, or meanwhile.
    """

    step: int
    write: Write
    moment: Moment


@attrs.frozen(kw_only=True)
class Order:
    """One worker to start.

    Args:
        home: the person's folder, with the plan.
        folder: the served folder.
        store: the name of the store.
        turn: the turn that it continues.
        backend: its event loop.
        point: where it is killed; `None` lets it live.
    """

    home: str
    folder: str
    store: str
    turn: Mapping[str, str]
    backend: str
    point: KillPoint | None = None

    @property
    def dirs(self) -> AppDirs:
        folder = Path(self.folder)
        return AppDirs(working_dir=folder, home=Path(self.home), root=folder)


@attrs.frozen(kw_only=True)
class Outcome:
    """How a worker ended.

    Args:
        signal: the signal that ended it, as the system says; 0 for none.
        reached: where it said that it was, right before.
        lease: the lease that it had.
    """

    signal: int
    reached: KillPoint | None = None
    lease: Lease | None = None


class NoWaits:
    """What a workflow that waits for nobody has of its run."""

    run_id = "run"

    async def wait_for_event(self, name: str, *, timeout: float | None = None) -> None:
        raise AssertionError(name, timeout)


@attrs.define(eq=False)
class _DoomedStore:
    """A store whose process is killed at one of its writes.

    Args:
        store: where they go.
        point: which one it is.
        notify: reports the lease and the point.
    """

    store: SessionStore
    point: KillPoint
    notify: Callable[[str, Lease | KillPoint], None]
    _answers: int = 0
    _has_journaled: bool = False

    def __getattr__(self, name: str) -> object:
        method: Callable[..., Awaitable[object]] = getattr(self.store, name)  # type: ignore[explicit-any]  # of any signature

        async def call(*args: object, **options: object) -> object:
            if name in _CHANGES and self._is_reached(name, *args):
                await self._die(method, *args)
            result = await method(*args, **options)
            self._read(result, args)
            return result

        return call

    def _read(self, result: object, args: tuple[object, ...]) -> None:
        if isinstance(result, Lease):
            self.notify("lease", result)
        if isinstance(result, SessionLog) and "journal" in args and not self._answers:
            self._answers = sum(each.kind == "message" for each in result.entries)

    def _is_reached(self, name: str, *args: object) -> bool:
        log = str(args[1]) if name == "append" else name
        if log != "journal":
            is_opening = self.point.write == "opening" and not self._has_journaled
            is_event = self.point.write == log == "events"
            return is_opening or (is_event and self._answers > self.point.step)
        self._has_journaled = True
        (kind,) = {entry.kind for entry in cast("tuple[LogEntry, ...]", args[2])}
        self._answers += kind == "message"
        return kind == self.point.write and self._answers > self.point.step

    async def _die(  # type: ignore[explicit-any]  # of any signature
        self, method: Callable[..., Awaitable[object]], *args: object
    ) -> None:
        # events are written beside the steps, and may be of a later one
        step = self._answers - (self.point.write != "opening")
        self.notify("point", attrs.evolve(self.point, step=step))
        if self.point.moment == "during":
            self.notify("kill", self.point)
        if self.point.moment != "before":
            await method(*args)
        if self.point.moment != "during":
            os.kill(os.getpid(), signal.SIGKILL)
        await anyio.sleep_forever()  # the kill is on its way


def _run(order: Order) -> Outcome:
    """Start a worker, and wait for its end."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            anyio.run(_work, order, writing, backend=order.backend)
            os._exit(0)
        except BaseException:  # nothing of the parent's may run in a child
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(writing)
    reported: dict[str, JSONObject] = {}
    with os.fdopen(reading) as notices:
        for line in notices:
            reported.update(json.loads(line))
            if "kill" in reported:
                os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return Outcome(
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        reached=_structured(reported, "point", KillPoint),
        lease=_structured(reported, "lease", Lease),
    )


def _structured(
    reported: Mapping[str, JSONObject], kind: str, type_: type[T]
) -> T | None:
    if kind not in reported:
        return None
    return cattrs.structure(reported[kind], type_)


async def _work(order: Order, pipe: int) -> None:
    """Be the worker."""

    def notify(kind: str, what: Lease | KillPoint) -> None:
        os.write(pipe, f"{json.dumps({kind: cattrs.unstructure(what)})}\n".encode())

    stores = ServerStores(order.store, order.dirs)
    tenant = await stores.tenant("default")
    if order.point is not None:
        doomed = _DoomedStore(tenant.store, order.point, notify)
        store = cast("SessionStore", doomed)
        stores._tenants["default"] = attrs.evolve(tenant, store=store)  # noqa: SLF001  # the one way in
    options = PlanOptions(file=Path(order.home) / "plan.json")
    setup = TurnSetup(options, ActivityLog(await stores.server()))
    folder = Path(order.home) / "working"
    worker = TurnWorker(stores, setup, WorkerOptions(name=f"w{os.getpid()}"), folder)
    await worker.run(NoWaits(), dict(order.turn))  # type: ignore[arg-type]  # what it uses of it
    await stores.aclose()


if __name__ == "__main__":
    for name in _PRELOADED:
        import_module(name)
    for line in sys.stdin:
        outcome = _run(cattrs.structure(json.loads(line), Order))
        print(json.dumps(cattrs.unstructure(outcome)), flush=True)  # noqa: T201  # the answer
