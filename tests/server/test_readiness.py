"""Whether a server is ready: all who ask at once share one look at its store."""

from __future__ import annotations

import anyio
import attrs
import pytest

from amplifier.server.activity import ActivityLog
from amplifier.server.readiness import Readiness
from amplifier.server.stores import ServerStores
from amplifier_sdk.errors import StoreUnavailableError
from tests.server.serving import Site


@attrs.define(eq=False)
class _SilentLog(ActivityLog):
    """The log of a store that answers once it may."""

    checks: int = 0
    answers: anyio.Event = attrs.field(factory=anyio.Event)
    problem: Exception | None = None

    async def check(self) -> None:
        self.checks += 1
        await self.answers.wait()
        if self.problem is not None:
            raise self.problem


async def made(site: Site) -> tuple[Readiness, _SilentLog]:
    stores = ServerStores(site.store, site.dirs)
    log = _SilentLog(await stores.server())
    return Readiness(stores, log), log


async def asked_at_once(readiness: Readiness, count: int) -> list[str]:
    """Let several ask, and return what each was told."""
    reported: list[str] = []

    async def ask() -> None:
        try:
            await readiness.check()
        except StoreUnavailableError as error:
            reported.append(str(error))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for _ in range(count):
                group.start_soon(ask)
    return reported


async def test_silent_store_is_waited_for_once_by_all(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier.server.readiness._TIMEOUT", 0.2)
    readiness, log = await made(site)
    reported = await asked_at_once(readiness, 50)

    assert reported == ["The store has not answered for 0.2 seconds"] * 50
    assert log.checks == 1


async def test_refusal_is_asked_for_once_and_is_over_with_its_second(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    readiness, log = await made(site)
    log.problem = OSError("No space left on device")
    log.answers.set()
    reported = await asked_at_once(readiness, 3) + await asked_at_once(readiness, 3)
    checks, log.problem = log.checks, None
    monkeypatch.setattr("amplifier.server.readiness._FRESH", 0.0)
    after = await asked_at_once(readiness, 3)

    assert reported == ["No space left on device"] * 6
    assert checks == 1
    assert after == []


async def test_caller_that_goes_away_takes_the_answer_from_nobody(site: Site) -> None:
    readiness, log = await made(site)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            first = anyio.CancelScope()

            async def leave() -> None:
                with first:
                    await readiness.check()

            group.start_soon(leave)
            await anyio.wait_all_tasks_blocked()
            group.start_soon(readiness.check)
            await anyio.wait_all_tasks_blocked()
            first.cancel()
            log.answers.set()

    assert log.checks == 2
