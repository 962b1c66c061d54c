"""Resources that hold tasks of their own: opened and closed in one task, in order, whatever happens outside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager

import anyio
import pytest

from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import ModuleLoadError
from amplifier_sdk.jsontypes import JSONValue
from tests.doubles import Mount, Worker, build_session

Reports = list[MutableMapping[str, object]]


@asynccontextmanager
async def client(order: list[str], name: str) -> AsyncIterator[str]:
    """A client with a background task, as vendors write them."""

    async def listen() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            order.append(f"{name} stopped")

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        await anyio.lowlevel.checkpoint()
        order.append(f"{name} open")
        try:
            yield name
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            order.append(f"{name} closing")
            group.cancel_scope.cancel()


def owning(order: list[str], *names: str) -> Mount:
    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        for name in names:
            assert await coordinator.own(client(order, name), name=name) == name
        return Worker(names[0])

    return mount


async def test_owned_resources_close_in_reverse_order() -> None:
    order: list[str] = []
    async with build_session(tools=[owning(order, "a", "b"), owning(order, "c")]):
        assert order == ["a open", "b open", "c open"]

    assert order[3:] == [
        "c closing",
        "c stopped",
        "b closing",
        "b stopped",
        "a closing",
        "a stopped",
    ]


async def test_owned_resources_close_in_reverse_when_cancelled() -> None:
    order: list[str] = []
    with anyio.fail_after(5), anyio.CancelScope() as scope:
        async with build_session(tools=[owning(order, "a", "b")]):
            scope.cancel()
            await anyio.sleep_forever()

    assert [entry for entry in order if "closing" in entry] == [
        "b closing",
        "a closing",
    ]


async def test_owned_resources_close_in_reverse_when_block_fails() -> None:
    order: list[str] = []
    with anyio.fail_after(5), pytest.raises(ZeroDivisionError):
        async with build_session(tools=[owning(order, "a", "b")]):
            raise ZeroDivisionError

    assert [entry for entry in order if "closing" in entry] == [
        "b closing",
        "a closing",
    ]


async def test_owned_resources_close_when_the_session_s_start_fails() -> None:
    order: list[str] = []

    async def fail(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> object:
        raise ValueError("no policy")

    with anyio.fail_after(5), pytest.raises(ModuleLoadError, match="no policy"):
        async with build_session(tools=[owning(order, "a")], hooks=[fail]):
            pytest.fail("the block must not run")

    assert order == ["a open", "a closing", "a stopped"]


async def test_without_a_task_group_a_module_is_told_what_to_write() -> None:
    session = build_session("hi", tools=[owning([], "client")])

    assert await session.execute("go") == "hi"

    (failure,) = session.failures
    assert str(failure) == (
        "Module 'tool-0': mounting failed: OwnerTaskError: client needs a task of its own:"
        " open the session with 'async with', or give it a task_group (at tools[0] in the mount plan)"
    )
    await session.cleanup()


async def test_a_bare_session_may_be_given_a_task_group() -> None:
    order: list[str] = []
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            session = build_session(
                "hi", tools=[owning(order, "a", "b")], task_group=group
            )
            await session.execute("go")
            await session.cleanup()

    assert [entry for entry in order if "closing" in entry] == [
        "b closing",
        "a closing",
    ]


async def test_cancelling_application_group_closes_its_resources() -> None:
    """Nobody may ever clean the session up, and the group must end all the same."""
    order: list[str] = []
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            session = build_session("hi", tools=[owning(order, "a")], task_group=group)
            await session.initialize()
            group.cancel_scope.cancel()

    assert "a closing" in order
    await session.cleanup()


async def test_an_open_session_uses_the_task_group_it_was_given() -> None:
    order: list[str] = []
    with anyio.fail_after(5):
        async with (
            anyio.create_task_group() as group,
            build_session(
                "hi", tools=[owning(order, "a")], task_group=group
            ) as session,
        ):
            await session.execute("go")

    assert order == ["a open", "a closing", "a stopped"]


async def test_a_resource_that_cannot_open_fails_its_module_alone() -> None:
    order: list[str] = []

    @asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        if order == []:
            raise ConnectionError("refused")
        yield

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        await coordinator.own(broken(), name="server")
        return Worker()

    async with build_session("hi", tools=[mount]) as session:
        assert await session.execute("go") == "hi"
        assert [str(failure) for failure in session.failures] == [
            "Module 'tool-0': mounting failed: ConnectionError: refused (at tools[0] in the mount plan)"
        ]


def failing_close(order: list[str]) -> Callable[[], AsyncIterator[None]]:
    async def resource() -> AsyncIterator[None]:
        yield
        order.append("closing")
        raise ConnectionError("lost")

    return resource


@pytest.mark.parametrize("given", [False, True])
async def test_failing_close_is_reported_and_stops_nothing(
    given: bool, reports: Reports
) -> None:
    order: list[str] = []

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        coordinator.register_cleanup(lambda: order.append("the rest"))
        await coordinator.own(asynccontextmanager(failing_close(order))())
        return Worker()

    with anyio.fail_after(5):
        async with (
            anyio.create_task_group() as group,
            build_session(tools=[mount], task_group=group if given else None),
        ):
            pass

    assert order == ["closing", "the rest"]
    assert [report["event"] for report in reports] == ["cleanup.failed"]
    assert str(reports[0]["exc_info"]) == "lost"


async def test_a_resource_that_hangs_as_it_closes_is_given_up(reports: Reports) -> None:
    order: list[str] = []

    @asynccontextmanager
    async def stuck() -> AsyncIterator[None]:
        yield
        try:
            await anyio.sleep_forever()
        finally:
            order.append("given up")

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        await coordinator.own(stuck())
        return Worker()

    with anyio.fail_after(5):
        async with build_session(tools=[mount], limits={"cleanup_timeout": 0.02}):
            pass

    assert order == ["given up"]
    assert [report["event"] for report in reports] == ["cleanup.timed_out"]


async def test_a_mount_that_is_cancelled_as_its_resource_opens_ends() -> None:
    order: list[str] = []

    @asynccontextmanager
    async def opened_at_once() -> AsyncIterator[str]:
        order.append("open")
        try:
            yield "resource"
        finally:
            order.append("closed")

    async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        scope.cancel()
        await coordinator.own(opened_at_once())

    with anyio.fail_after(20), anyio.CancelScope() as scope:
        async with build_session(tools=[mount]):
            pass

    assert scope.cancelled_caught
    assert order in ([], ["open", "closed"])
