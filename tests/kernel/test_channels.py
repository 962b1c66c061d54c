"""Contribution channels and capabilities: modules offer, others ask."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from types import SimpleNamespace

import anyio
import pytest
from pluggy import HookimplMarker

from amplifier import AmplifierSession, ModuleCoordinator, ModuleLoader
from amplifier.kernel.modules.plugins import Plugins
from amplifier.kernel.plans.plan import SessionSettings
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import HookspecError
from amplifier_sdk.hookspecs import PROJECT, amplifier_contributions, amplifier_tool
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import Limits
from tests.doubles import (
    EchoLoop,
    Listener,
    MemoryContext,
    Worker,
    build_plan,
    mounting,
)

Reports = list[MutableMapping[str, object]]


async def test_contributors_answer_in_order_in_which_they_registered() -> None:
    coordinator = ModuleCoordinator()

    async def later() -> object:
        return ["b"]

    coordinator.register_contributor("events", "one", lambda: "a")
    coordinator.register_contributor("events", "two", later)
    coordinator.register_contributor("events", "one", lambda: 0)
    coordinator.register_contributor("events", "none", lambda: None)
    coordinator.register_contributor("other", "one", lambda: "not asked")

    assert await coordinator.collect_contributions("events") == ["a", ["b"], 0]
    assert await coordinator.collect_contributions("unheard of") == []


async def test_a_contributor_that_fails_is_reported_and_skipped(
    reports: Reports,
) -> None:
    coordinator = ModuleCoordinator()

    def fail() -> object:
        raise ValueError("no")

    coordinator.register_contributor("costs", "broken", fail)
    coordinator.register_contributor("costs", "fine", lambda: 1)

    assert await coordinator.collect_contributions("costs") == [1]
    (report,) = reports
    assert (report["event"], report["channel"], report["contributor"]) == (
        "channel.contributor_failed",
        "costs",
        "broken",
    )


async def test_contributor_that_exits_or_hangs_reported_and_skipped(
    reports: Reports,
) -> None:
    coordinator = ModuleCoordinator(
        settings=SessionSettings(limits=Limits(hook_timeout=0.01))
    )

    def leave() -> object:
        raise SystemExit(1)

    coordinator.register_contributor("costs", "leaves", leave)
    coordinator.register_contributor("costs", "hangs", anyio.sleep_forever)
    coordinator.register_contributor("costs", "fine", lambda: 1)

    with anyio.fail_after(5):
        assert await coordinator.collect_contributions("costs") == [1]
    assert [(report["event"], report["contributor"]) for report in reports] == [
        ("channel.contributor_failed", "leaves"),
        ("channel.contributor_late", "hangs"),
    ]


async def test_a_cancelled_collection_ends_and_nothing_is_returned() -> None:
    coordinator = ModuleCoordinator()
    waits, asked = Listener(), []
    coordinator.register_contributor("costs", "first", lambda: 1)
    coordinator.register_contributor("costs", "waits", lambda: waits("costs", {}))
    coordinator.register_contributor("costs", "later", lambda: asked.append(1))
    collected: list[object] = []

    async def collect() -> None:
        collected.append(await coordinator.collect_contributions("costs"))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(collect)
            await waits.started.wait()
            group.cancel_scope.cancel()

    assert (collected, asked, waits.cancelled) == ([], [], True)


def test_what_cannot_be_called_is_no_contributor() -> None:
    with pytest.raises(
        TypeError,
        match="The contributor 'me' of the channel 'costs' must be callable; got 3",
    ):
        ModuleCoordinator().register_contributor("costs", "me", 3)  # type: ignore[arg-type]


async def test_who_contributes_to_which_channel_can_be_listed() -> None:
    coordinator = ModuleCoordinator()

    def cost() -> object:
        return 1

    coordinator.register_contributor("costs", "me", cost)

    assert coordinator.channels == {"costs": [{"name": "me", "callback": cost}]}


# -- contributions through the hookspec


class Priced:
    """A tool module that contributes as well."""

    @amplifier_tool.impl
    async def mount_tool(
        self, coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        coordinator.register_contributor("session.cost", "registered", lambda: 1)
        return Worker()

    @amplifier_contributions.impl
    async def contribute(self, coordinator: Coordinator, channel: str) -> object:
        return {"from": coordinator.session_id} if channel == "session.cost" else None


async def test_a_module_contributes_by_implementing_the_hook() -> None:
    modules = {
        "loop": mounting(EchoLoop()),
        "context": mounting(MemoryContext()),
        "priced": Priced(),
    }
    plan = build_plan(tools=["priced"])
    async with AmplifierSession(
        plan, ModuleLoader(modules=modules, path=[]), "s"
    ) as session:
        assert await session.coordinator.collect_contributions("session.cost") == [
            1,
            {"from": "s"},
        ]
        assert (
            await session.coordinator.collect_contributions("observability.events")
            == []
        )


def contributing(
    value: object, *, tryfirst: bool = False, trylast: bool = False
) -> object:
    async def contribute(channel: str) -> object:
        return value

    impl = HookimplMarker(PROJECT)(
        specname="amplifier_contributions", tryfirst=tryfirst, trylast=trylast
    )
    return SimpleNamespace(f=impl(contribute))


async def test_plugins_follow_callbacks_in_registration_order() -> None:
    coordinator = ModuleCoordinator()
    coordinator.plugins.register_module("last", contributing("last", trylast=True))
    coordinator.plugins.register_module("a", contributing("a"))
    coordinator.plugins.register_module("b", contributing("b"))
    coordinator.plugins.register_module("first", contributing("first", tryfirst=True))
    coordinator.register_contributor("x", "me", lambda: "registered")

    assert await coordinator.collect_contributions("x") == [
        "registered",
        "first",
        "a",
        "b",
        "last",
    ]


async def test_an_unregistered_plugin_contributes_no_more() -> None:
    coordinator = ModuleCoordinator()
    coordinator.plugins.register_module("a", contributing("a"))

    coordinator.plugins.manager.unregister(name="a")

    assert await coordinator.collect_contributions("x") == []


def test_implementation_that_does_not_fit_refused_with_plugin() -> None:
    plugins = Plugins()
    impl = HookimplMarker(PROJECT)(specname="amplifier_contributions")

    with pytest.raises(
        HookspecError,
        match="sync: an implementation of amplifier_contributions is an 'async def'",
    ):
        plugins.register_module("sync", SimpleNamespace(f=impl(lambda channel: 1)))

    async def odd(coordinator: object, topic: str) -> None: ...

    with pytest.raises(HookspecError, match=r"odd: .*topic"):
        plugins.register_module("odd", SimpleNamespace(f=impl(odd)))

    assert plugins.manager.list_name_plugin() == []


def test_what_application_registers_itself_is_checked_likewise() -> None:
    manager = Plugins().manager
    impl = HookimplMarker(PROJECT)(specname="amplifier_contributions")

    with pytest.raises(
        HookspecError,
        match="own: an implementation of amplifier_contributions is an 'async def'",
    ):
        manager.register(SimpleNamespace(f=impl(lambda channel: 1)), name="own")

    assert manager.list_name_plugin() == []


def test_a_later_capability_replaces_an_earlier_one() -> None:
    coordinator = ModuleCoordinator()

    coordinator.register_capability("session.working_dir", "/a")
    coordinator.register_capability("session.working_dir", "/b")

    assert coordinator.get_capability("session.working_dir") == "/b"
    assert coordinator.get_capability("unheard of") is None


def test_modules_may_set_attributes_of_their_own_on_coordinator() -> None:
    coordinator = ModuleCoordinator()

    coordinator.mine = 1  # type: ignore[attr-defined]
    coordinator.session_state["seen"] = True

    assert coordinator.mine == 1  # type: ignore[attr-defined]
    assert coordinator.config == {}
    assert coordinator.session is None
