"""The coordinator: what modules receive, what they may set on it, what it says of the session."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from functools import partial

import anyio
import pytest

from amplifier import ModuleCoordinator
from amplifier.kernel.plans.plan import SessionSettings
from amplifier_sdk.limits import Limits
from tests.doubles import (
    MemoryContext,
    Person,
    Screen,
    ScriptedProvider,
    Worker,
    build_session,
)

Reports = list[MutableMapping[str, object]]


async def test_what_session_consists_of_can_be_written_as_plain_data() -> None:
    session = build_session(
        "hi",
        tools=[Worker("a"), Worker("b")],
        session_id="s",
        approval=Person(),
        display=Screen(),
    )
    async with session:
        session.coordinator.register_contributor("session.cost", "me", lambda: 1)
        reported = session.coordinator.to_dict()

    assert json.loads(json.dumps(reported)) == reported
    assert {
        key: reported[key]
        for key in ("session_id", "parent_id", "tools", "providers", "channels")
    } == {
        "session_id": "s",
        "parent_id": None,
        "tools": ["a", "b"],
        "providers": ["scripted"],
        "channels": ["session.cost"],
    }
    assert [reported[key] for key in reported if key.startswith("has_")] == [
        True,
        True,
        True,
        True,
    ]
    capabilities = reported["capabilities"]
    assert isinstance(capabilities, list)
    assert "approval.register_provider" in capabilities


def test_an_empty_coordinator_has_nothing() -> None:
    reported = ModuleCoordinator().to_dict()

    assert [reported[key] for key in reported if key.startswith("has_")] == [
        False,
        False,
        False,
        False,
    ]


async def test_the_parts_of_a_session_are_the_live_ones() -> None:
    provider = ScriptedProvider("hi")
    async with build_session(provider=provider, tools=[Worker()]) as session:
        coordinator = session.coordinator

        assert coordinator.session is session
        assert coordinator.loader is session.loader
        assert coordinator.config is session.config
        assert (
            coordinator.get("tools")
            is coordinator.tools
            is coordinator.mount_points["tools"]
        )
        assert coordinator.get("hooks") is coordinator.hooks
        assert coordinator.get("providers", "scripted") is provider
        assert coordinator.cancellation.is_cancelled is False


async def test_what_a_module_writes_into_a_mount_point_is_mounted() -> None:
    coordinator = ModuleCoordinator()
    tool = Worker("mine")

    tools = coordinator.mount_points["tools"]
    assert isinstance(tools, dict)
    tools["mine"] = tool

    assert coordinator.get("tools", "mine") is tool
    await coordinator.unmount("tools", "mine")
    assert coordinator.get("tools", "mine") is None


@pytest.mark.parametrize("what", ["mount", "unmount"])
async def test_handlers_are_not_mounted(what: str) -> None:
    coordinator = ModuleCoordinator()

    with pytest.raises(
        ValueError,
        match=r"Handlers are not mounted: register them on 'coordinator\.hooks'",
    ):
        await (
            coordinator.mount("hooks", print)
            if what == "mount"
            else coordinator.unmount("hooks")
        )


async def test_a_name_says_nothing_at_a_mount_point_with_one_place() -> None:
    coordinator, context = ModuleCoordinator(), MemoryContext()

    await coordinator.mount("context", context, name="memory")
    assert coordinator.get("context", "anything") is context
    assert coordinator.plugins.manager.has_plugin("session/context")

    await coordinator.unmount("context", "memory")
    assert coordinator.get("context") is None
    assert not coordinator.plugins.manager.has_plugin("session/context")


def test_the_limits_of_injections_can_be_read() -> None:
    settings = SessionSettings(injection_size_limit=7, injection_budget_per_turn=None)
    coordinator = ModuleCoordinator(settings=settings)

    assert (
        coordinator.injection_size_limit,
        coordinator.injection_budget_per_turn,
    ) == (7, None)


async def test_cleanups_run_backwards_and_their_failures_are_returned(
    reports: Reports,
) -> None:
    coordinator = ModuleCoordinator(
        settings=SessionSettings(limits=Limits(cleanup_timeout=0.01))
    )
    order: list[str] = []

    async def hang() -> None:
        order.append("hangs")
        await anyio.sleep_forever()

    def fail() -> None:
        order.append("fails")
        raise ValueError("no")

    async def close() -> None:
        order.append("closes")

    for cleanup in (close, fail, hang, lambda: order.append("first")):
        coordinator.register_cleanup(cleanup)

    with anyio.fail_after(5):
        late, failed = await coordinator.cleanup()

    assert order == ["first", "hangs", "fails", "closes"]
    assert isinstance(late, TimeoutError)
    assert str(late).endswith("hang did not finish within 0.01 s")
    assert str(failed) == "no"
    assert [report["event"] for report in reports] == [
        "cleanup.timed_out",
        "cleanup.failed",
    ]
    assert await coordinator.cleanup() == []


async def test_a_cleanup_is_named_without_what_it_is_called_with(
    reports: Reports,
) -> None:
    """What a client writes of itself may be a secret, or fail, which is no reason not to close it."""

    class Client:
        closed = False

        def __repr__(self) -> str:
            raise RuntimeError("not connected")

        def __call__(self) -> None:
            self.closed = True
            raise ValueError("no")

    def close(client: Client, _: str) -> None:
        client()

    client, other = Client(), Client()
    coordinator = ModuleCoordinator()
    coordinator.register_cleanup(partial(partial(close, client), "secret"))
    coordinator.register_cleanup(other)

    failures = await coordinator.cleanup()

    assert list(map(str, failures)) == ["no", "no"]
    assert (client.closed, other.closed) == (True, True)
    assert [str(report["cleanup"]).rpartition(".")[2] for report in reports] == [
        "Client",
        "close",
    ]
