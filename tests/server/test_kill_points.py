"""A worker that dies at any of its writes: the next one continues, repeats nothing, and says what is in doubt."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import anyio
import attrs
import pytest

from amplifier.app.plans.base_plans import PlanOptions
from amplifier.server.activity import ActivityLog
from amplifier.server.application import StoredServer
from amplifier.server.records import turns_of
from amplifier.server.served_turns import TurnSetup
from amplifier.server.stores import ServerStores, Tenant
from amplifier.server.workers import TurnWorker
from amplifier.testing.engines import InMemoryEngine
from amplifier_sdk.engines import WorkerOptions
from amplifier_sdk.errors import LeaseLostError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.loops.notices import IN_DOUBT
from amplifier_sdk.stores import Lease, SessionStore
from tests.server.effects import write_effects
from tests.server.killed_workers import NoWaits
from tests.server.serving import Site
from tests.serving.client import Caller

_STEPS = int(os.environ.get("AMPLIFIER_KILL_STEPS", "2"))
_STRIDE = int(os.environ.get("AMPLIFIER_KILL_STRIDE", "6"))
_WRITES = frozenset(
    {"write_record", "append", "replace", "write_document", "ask", "void_questions"}
)

pytestmark = [pytest.mark.figures, pytest.mark.timeout(60 * _STEPS)]


@attrs.define(eq=False)
class Dying:
    """A store that takes a number of writes of a process, and none behind them: the process is dead.

    Args:
        store: where they go.
        left: how many it takes.
    """

    store: object
    left: int
    lease: Lease | None = None

    def __getattr__(self, name: str) -> object:
        method: Callable[..., Awaitable[object]] = getattr(self.store, name)  # type: ignore[explicit-any]  # of any signature
        if name not in _WRITES | {"acquire", "renew", "release"}:
            return method

        async def call(*args: object, **options: object) -> object:
            if not self.left:
                raise LeaseLostError("dead")
            if name in _WRITES:
                self.left -= 1
            result = await method(*args, **options)
            if isinstance(result, Lease):
                self.lease = result
            return result

        return call


@attrs.frozen(eq=False)
class Trial:
    """One session whose worker dies, and another worker that continues."""

    server: StoredServer
    caller: Caller
    effects: Path

    async def dies_at(self, point: int) -> int:
        """Run a turn with a worker that dies at its write of a number; return how many writes were left to it."""
        session = await self.caller.begin()
        answer = await self.caller.post(f"/sessions/{session}/turns", {"prompt": "Go"})
        turn = answer.json["turn_id"]
        tenant = await self.server.stores.tenant("default")
        dying = Dying(tenant.store, point)
        first = attrs.evolve(tenant, store=cast("SessionStore", dying))
        if await self._run(first, session, turn):
            assert dying.lease is not None
            await tenant.store.release(dying.lease)  # as its end does
        await self._run(tenant, session, turn)
        await self._require_sound(tenant, session)
        return dying.left

    async def _run(self, tenant: Tenant, session: str, turn: str) -> bool:
        """Run a turn; return whether its worker died."""
        stores = ServerStores("files", self.server.stores.dirs)
        stores._tenants["default"] = tenant  # noqa: SLF001  # the one way in
        setup = TurnSetup(
            self.server.options, ActivityLog(await self.server.stores.server())
        )
        folder = self.effects.parent / "working"
        worker = TurnWorker(stores, setup, WorkerOptions(name="w"), folder)
        argument: JSONValue = {
            "tenant": "default",
            "session_id": session,
            "turn_id": turn,
        }
        try:
            await worker.run(NoWaits(), argument)  # type: ignore[arg-type]  # what it uses of it
        except LeaseLostError:
            return True
        return False

    async def _require_sound(self, tenant: Tenant, session: str) -> None:
        record = await tenant.store.read_record(session)
        assert record is not None
        assert turns_of(record)[-1]["state"] == "finished"
        said = await tenant.store.read_log(session, "transcript")
        doubtful = sum(IN_DOUBT in str(entry.data) for entry in said.entries)
        answers = sum("'role': 'assistant'" in str(each.data) for each in said.entries)
        lines = self.effects.read_text().splitlines() if self.effects.exists() else []
        mine = [line for line in lines if line.startswith(session)]
        assert answers == _STEPS + 1
        assert len(set(mine)) == len(mine), said.entries
        assert _STEPS - doubtful <= len(mine) <= _STEPS, said.entries


async def test_worker_may_die_at_any_write(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = site.home / "packages"
    write_effects(packages, site.home / "plan.json", _STEPS)
    effects = site.home / "effects.log"
    monkeypatch.syspath_prepend(str(packages))
    # an earlier test of this process may have imported its own
    monkeypatch.delitem(sys.modules, "effects_tool", raising=False)
    monkeypatch.setenv("EFFECTS", str(effects))
    secret = await site.token()
    server = StoredServer(
        ServerStores("files", site.dirs),
        PlanOptions(file=site.home / "plan.json"),
        queue=InMemoryEngine(),
    )
    point = 1
    async with server.lifespan():
        trial = Trial(server, Caller(server, secret), effects)
        while not await trial.dies_at(point):
            point += _STRIDE
            await anyio.lowlevel.checkpoint()
    reported = f"{point // _STRIDE} kill points of a turn of {_STEPS} steps: sound"
    print(reported)  # noqa: T201  # a row of the table
    assert point > 4 * _STEPS
