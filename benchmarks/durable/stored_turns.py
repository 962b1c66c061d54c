"""Ours: a turn that a worker runs, with its journal, its events and its lease in a store."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from uuid import uuid4

from anyio.from_thread import BlockingPortal, start_blocking_portal

from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.server.activity import ActivityLog
from amplifier.server.records import new_record, turns_of, with_new_turn
from amplifier.server.served_turns import TurnSetup
from amplifier.server.stores import ServerStores
from amplifier.server.turns import store_prompt
from amplifier.server.workers import TurnWorker
from amplifier_sdk.engines import WorkerOptions
from benchmarks.durable.samples import answer_samples
from tests.server.effects import write_effects

__all__: list[str] = []


class Uninterrupted:
    """What a turn that waits for nobody needs of its run."""

    run_id = "run"


def sampler(portal: BlockingPortal, url: str, root: Path) -> Callable[[int], float]:
    """Return what runs a turn and says how long it took."""
    home, folder = root / "home", root / "project"
    home.mkdir()
    folder.mkdir()
    write_effects(home / "packages", home / "plan.json", 1)
    sys.path.insert(0, str(home / "packages"))
    os.environ["EFFECTS"] = str(home / "effects.log")
    stores = ServerStores(url, AppDirs(working_dir=folder, home=home, root=folder))

    async def turn(steps: int) -> float:
        plan = home / f"{steps}.json"
        if not plan.exists():
            write_effects(root / str(steps), plan, steps)
        tenant, session_id, turn_id = (
            await stores.tenant("default"),
            uuid4().hex,
            str(uuid4()),
        )
        lease = await tenant.store.acquire(session_id, owner="bench", period=15)
        record = with_new_turn(new_record(session_id, str(folder), None), turn_id, "Go")
        await tenant.store.write_record(lease, record)
        await store_prompt(tenant.store, lease, "Go")
        await tenant.store.release(lease)
        setup = TurnSetup(PlanOptions(file=plan), ActivityLog(await stores.server()))
        options = WorkerOptions(name="bench", period=15)
        worker = TurnWorker(stores, setup, options, home / "working")
        begun = perf_counter()
        await worker.run(
            Uninterrupted(),  # type: ignore[arg-type]  # what it uses of it
            {"tenant": "default", "session_id": session_id, "turn_id": turn_id},
        )
        seconds = perf_counter() - begun
        ended = await tenant.store.read_record(session_id)
        if ended is None or turns_of(ended)[-1].get("output") != "Done.":
            raise RuntimeError(f"the turn did not finish: {ended}")
        return seconds

    return lambda steps: portal.call(turn, steps)


if __name__ == "__main__":
    with TemporaryDirectory() as place, start_blocking_portal(sys.argv[2]) as opened:
        answer_samples(sampler(opened, sys.argv[1], Path(place)))
