"""Workers that differ: one that lacks what a session was made of leaves it to others, and says what is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Final

import anyio
import attrs
import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from amplifier.app.store.shared import LeasedSessions
from amplifier.kernel.modules.loader import ModuleInfo, ModuleLoader
from amplifier_sdk.engines import ExecutionEngine
from tests.server.serving import Site, ended
from tests.server.test_sessions import begun
from tests.server.test_workers import Fleet, fleet

pytestmark = pytest.mark.timeout(60)

INSTALLED: Final[ContextVar[str]] = ContextVar("INSTALLED", default="new")
"""What the worker has whose task this is: `new`, an `old` version of a module, or not even that."""

MODULE: Final = "tool-filesystem"


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what is installed depend on the worker."""
    discover: Callable[[ModuleLoader], Sequence[ModuleInfo]] = ModuleLoader.discover

    def found(loader: ModuleLoader) -> list[ModuleInfo]:
        infos = list(discover(loader))
        match INSTALLED.get():
            case "old":
                return [
                    attrs.evolve(each, version="99.0") if each.id == MODULE else each
                    for each in infos
                ]
            case "none":
                return [each for each in infos if each.id != MODULE]
            case _:
                return infos

    monkeypatch.setattr(ModuleLoader, "discover", found)


async def begun_by_new(all_: Fleet) -> tuple[str, str]:
    """Let a worker that has everything take the first turn of a session, and ask for a second one."""
    session, turn = await begun(all_.caller)
    async with all_.worker("first"):
        await ended(all_.caller, session, turn)
        await all_.until(turn, "finished")
    path = f"/sessions/{session}/turns"
    answer = await all_.caller.post(path, {"prompt": "And then?"})
    return session, answer.json["turn_id"]


async def left(logs: Sequence[EventDict]) -> str:
    """Return what a worker says is missing when it leaves a turn."""
    with anyio.fail_after(20):
        while True:
            for entry in logs:
                if entry["event"] == "worker.left":
                    return str(entry["missing"])
            await anyio.sleep(0.02)


async def met_again(engine: ExecutionEngine, turn: str, times: int) -> None:
    """Wait until a worker has given a turn back so many times."""
    sleeps = set[str]()
    with anyio.fail_after(20):
        while len(sleeps) < times:
            run = await engine.find(turn)
            if run is not None and (run.waits_for or "").startswith("left"):
                sleeps.add(run.waits_for or "")
            await anyio.sleep(0.02)


@pytest.mark.parametrize("lacking", ["old", "none"])
async def test_worker_without_the_modules_leaves_a_session_to_one_that_has_them(
    site: Site, lacking: str
) -> None:
    async with fleet(site, "Fine.") as all_:
        session, turn = await begun_by_new(all_)
        INSTALLED.set(lacking)
        with capture_logs() as logs:
            async with all_.worker("lacking", period=0.3):
                said = await left(logs)
                shown = (
                    await all_.caller.get(f"/sessions/{session}/turns/{turn}")
                ).json
        INSTALLED.set("new")
        async with all_.worker("whole", period=0.3):
            done = await ended(all_.caller, session, turn)

    assert MODULE in said
    assert shown["state"] == "running"
    assert done["state"] == "finished"


async def test_worker_that_left_a_session_lets_others_have_it_first(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that lacks the modules lives on, and is always the first to look."""
    fetched: list[str] = []
    fetch = LeasedSessions.fetch

    async def fetch_noted(files: LeasedSessions) -> None:
        fetched.append(files.lease.owner)
        await fetch(files)

    async with fleet(site, "Fine.") as all_:
        session, turn = await begun_by_new(all_)
        monkeypatch.setattr(LeasedSessions, "fetch", fetch_noted)
        INSTALLED.set("none")
        with capture_logs() as logs:
            async with all_.worker("lacking", period=0.6):
                await left(logs)
                await met_again(all_.engine, turn, 3)
                INSTALLED.set("new")
                async with all_.worker("whole", period=0.6):
                    done = await ended(all_.caller, session, turn)

    assert done["state"] == "finished"
    # what it left it does not open again to find the same missing
    assert fetched == ["lacking", "whole"]


async def test_turn_that_nobody_can_run_fails_and_names_what_is_missing(
    site: Site,
) -> None:
    async with fleet(site, "Fine.") as all_:
        session, turn = await begun_by_new(all_)
        INSTALLED.set("none")
        async with all_.worker("lacking", period=0.3, max_left=0.5):
            INSTALLED.set("new")
            done = await ended(all_.caller, session, turn)

    error = done["error"]
    assert isinstance(error, dict)
    assert error["code"] == "session_refused"
    assert MODULE in str(error["message"])
