"""What becomes of what a module mounts or returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping

import pytest

from amplifier import (
    ModuleCoordinator,
)
from amplifier_sdk.contracts import (
    Coordinator,
)
from amplifier_sdk.jsontypes import JSONValue
from tests.doubles import (
    EchoLoop,
    MemoryContext,
    Recorder,
    Worker,
    build_session,
    mounting,
)

Reports = list[MutableMapping[str, object]]


@pytest.mark.parametrize(
    ("name", "instance"), [("context", MemoryContext()), ("orchestrator", EchoLoop())]
)
async def test_the_session_mount_point_is_an_alias(name: str, instance: object) -> None:
    coordinator = ModuleCoordinator()

    await coordinator.mount("session", instance, name=name)

    assert coordinator.get(name) is coordinator.get("session", name) is instance
    await coordinator.mount(name, instance)
    await coordinator.unmount("session", name)
    assert coordinator.get(name) is None


@pytest.mark.parametrize(
    ("point", "name"), [("session", None), ("session", "memory"), ("agents", "x")]
)
async def test_no_other_name_is_a_place_of_the_session(
    point: str, name: str | None
) -> None:
    with pytest.raises(ValueError, match=f"Unknown mount point '{point}'"):
        await ModuleCoordinator().mount(point, MemoryContext(), name=name)


def test_an_instance_is_mounted_when_the_call_returns() -> None:
    coordinator, tool = ModuleCoordinator(), Worker()

    awaitable = coordinator.mount("tools", tool)

    assert coordinator.get("tools", "work") is tool
    assert hasattr(awaitable, "__await__")


async def test_what_is_refused_is_refused_by_the_call() -> None:
    coordinator = ModuleCoordinator()

    with pytest.raises(
        ValueError, match="Unknown mount point 'tolls'; did you mean 'tools'"
    ):
        _ = coordinator.mount("tolls", Worker())
    await coordinator.mount("tools", Worker())


async def test_a_returned_instance_is_mounted_once() -> None:
    async def mount_and_return(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        worker = Worker("itself")
        await coordinator.mount("tools", worker)
        return worker

    async with build_session(
        "hi", tools=[mounting(Worker("returned")), mount_and_return]
    ) as session:
        assert list(session.coordinator.tools) == ["returned", "itself"]
        assert session.failures == ()


async def test_a_function_is_a_cleanup_and_an_instance_is_not() -> None:
    called: list[str] = []

    class Callable(Worker):
        def __call__(self) -> None:
            called.append("instance")

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        await coordinator.mount("tools", Worker("x"))
        return lambda: called.append("cleanup")

    async with build_session("hi", tools=[mount, mounting(Callable("y"))]) as session:
        assert list(session.coordinator.tools) == ["x", "y"]

    assert called == ["cleanup"]


async def test_returning_nothing_is_only_reported() -> None:
    session = build_session("hi", tools=[mounting(None)])
    recorder = Recorder.of(session.coordinator.hooks, "module:*")

    async with session:
        assert await session.execute("go") == "hi"
        assert session.failures == ()

    assert recorder.names == ["module:skipped"]


@pytest.mark.parametrize("kind", ["sync", "async", "returns an awaitable"])
async def test_a_cleanup_may_be_of_any_kind(kind: str, reports: Reports) -> None:
    called: list[str] = []

    async def release() -> None:
        called.append(kind)

    cleanups: dict[str, Callable[[], object]] = {
        "sync": lambda: called.append(kind),
        "async": release,
        "returns an awaitable": lambda *_: release(),
    }

    async def mount(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        await coordinator.mount("tools", Worker("x"))
        return cleanups[kind]

    async with build_session("hi", tools=[mount]):
        pass

    assert called == [kind]
    assert reports == []
