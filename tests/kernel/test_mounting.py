"""Mounting a plan: deadlines, instances under names of their own, and who is told that the session is ready."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, MutableMapping
from contextlib import asynccontextmanager
from types import ModuleType

import anyio
import pytest

from amplifier import AmplifierSession, ModuleLoader
from amplifier_sdk import tool, toolset
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import ModuleConfigError, ModuleConflictError, ModuleLoadError
from amplifier_sdk.events import TOOL_PRE
from amplifier_sdk.hookspecs import Config, amplifier_tool
from amplifier_sdk.results import HookResult
from tests.doubles import (
    EchoLoop,
    MemoryContext,
    PlainProvider,
    Recorder,
    ScriptedProvider,
    Worker,
    build_loader,
    build_plan,
    build_session,
    call,
    calling,
    mounted_context,
    mounting,
    only_result,
)

Reports = list[MutableMapping[str, object]]


async def forever(coordinator: Coordinator, config: Config) -> object:
    await coordinator.mount("tools", Worker("half"))
    await anyio.sleep_forever()
    raise AssertionError("unreachable")


def a_session(plan: dict[str, object], **modules: object) -> AmplifierSession:
    own: dict[str, object] = {"loop": EchoLoop(), "context": MemoryContext(), **modules}
    return AmplifierSession(
        plan,
        build_loader({name.replace("_", "-"): module for name, module in own.items()}),
    )


# -- deadlines


async def test_slow_mount_is_abandoned_with_its_registrations() -> None:
    with anyio.fail_after(10):
        async with build_session(
            "hi", tools=[forever, Worker("x")], limits={"mount_timeout": 0.05}
        ) as session:
            (failure,) = session.failures
            assert list(session.coordinator.tools) == ["x"]

    assert isinstance(failure, ModuleLoadError)
    assert (
        failure.reason
        == "its mount took longer than 0.05 s ('mount_timeout' of the plan's limits)"
    )


# -- instances


@toolset
class Notes:
    """Two tools in one module."""

    def __init__(self, config: dict[str, str]) -> None:
        self.owner = config["owner"]

    @tool
    def add_note(self, text: str) -> str:
        """Add a note."""
        return f"{self.owner} noted {text}"

    @tool
    def list_notes(self) -> str:
        """List the notes."""
        return f"the notes of {self.owner}"


async def test_each_instance_of_module_has_name_and_configuration() -> None:
    async def mount(coordinator: Coordinator, config: Config) -> object:
        return Worker(str(config["name"]))

    entries = [
        {"module": "tool-x", "config": {"name": "one"}},
        {"module": "tool-x", "instance_id": "second", "config": {"name": "two"}},
    ]
    async with a_session(build_plan(tools=entries), tool_x=mount) as session:
        names = {name: tool.name for name, tool in session.coordinator.tools.items()}

    assert names == {"one": "one", "second": "two"}


async def test_several_tools_of_instance_keep_names_behind_own() -> None:
    entries = [
        {"module": "tool-notes", "config": {"owner": "nobody"}},
        {"module": "tool-notes", "instance_id": "ada", "config": {"owner": "Ada"}},
        {"module": "tool-notes", "instance_id": "bob", "config": {"owner": "Bob"}},
    ]
    provider = ScriptedProvider(calling(call("bob_add_note", {"text": "milk"})), "done")
    plan = build_plan(providers=["provider"], tools=entries)

    async with a_session(plan, tool_notes=Notes, provider=provider) as session:
        assert session.failures == ()
        assert list(session.coordinator.tools) == [
            "add_note",
            "list_notes",
            "ada_add_note",
            "ada_list_notes",
            "bob_add_note",
            "bob_list_notes",
        ]
        await session.execute("go")
        assert (
            only_result(await session.coordinator.context.get_messages())
            == "Bob noted milk"
        )
        assert [spec.name for spec in provider.requests[0].tools or ()] == list(
            session.coordinator.tools
        )
        session.coordinator.plugins.manager.unregister(name="tools/ada_add_note")
        assert "ada_add_note" not in session.coordinator.tools


async def test_three_tools_that_instance_mounts_itself_named_alike() -> None:
    async def mount(coordinator: Coordinator, config: Config) -> object:
        first = Worker("a")
        await coordinator.mount("tools", first)
        await coordinator.mount("tools", Worker("b"), name="bee")
        await coordinator.mount("tools", Worker("c"))
        await coordinator.mount("tools", first)
        return None

    plan = build_plan(tools=[{"module": "tool-x", "instance_id": "mine"}])
    async with a_session(plan, tool_x=mount) as session:
        assert session.failures == ()
        assert sorted(session.coordinator.tools) == ["mine_a", "mine_bee", "mine_c"]


async def test_instance_that_mounts_at_two_points_has_name_at_both() -> None:
    async def mount(coordinator: Coordinator, config: Config) -> object:
        await coordinator.mount("tools", Worker("a"))
        return PlainProvider("hi")

    plan = build_plan(providers=[{"module": "provider-x", "instance_id": "mine"}])
    async with a_session(plan, provider_x=mount) as session:
        assert (
            list(session.coordinator.tools)
            == list(session.coordinator.providers)
            == ["mine"]
        )


async def test_a_failing_instance_leaves_none_of_its_tools() -> None:
    async def mount(coordinator: Coordinator, config: Config) -> object:
        await coordinator.mount("tools", Worker("a"))
        await coordinator.mount("tools", Worker("b"))
        raise OSError("gone")

    plan = build_plan(tools=[{"module": "tool-x", "instance_id": "mine"}])
    async with a_session(plan, tool_x=mount) as session:
        assert session.coordinator.tools == {}
        (failure,) = session.failures

    assert "OSError: gone" in str(failure)


async def test_a_failing_module_leaves_none_of_its_handlers() -> None:
    """Half a module must not decide on the calls of a session that goes on without it."""

    async def mount(coordinator: Coordinator, config: Config) -> object:
        coordinator.hooks.register(
            TOOL_PRE, lambda event, data: HookResult.deny("half a module")
        )
        raise OSError("gone")

    async with build_session(
        calling(call("work")), "end", tools=[mount, Worker()]
    ) as session:
        assert len(session.failures) == 1
        await session.execute("go")

        assert only_result(mounted_context(session.coordinator).messages) == "done"


async def test_failing_instance_leaves_its_siblings_mounted() -> None:
    class Twice:
        @amplifier_tool.impl
        async def mount_it(self, coordinator: Coordinator, config: Config) -> object:
            coordinator.hooks.register(
                TOOL_PRE, lambda event, data: None, name=str(config["name"])
            )
            if config["name"] == "bad":
                raise OSError("gone")
            return Worker()

    entries = [
        {"module": "x", "instance_id": name, "config": {"name": name}}
        for name in ("good", "bad")
    ]
    loader = ModuleLoader(
        modules={
            "loop": mounting(EchoLoop()),
            "context": mounting(MemoryContext()),
            "x": Twice(),
        }
    )
    async with AmplifierSession(build_plan(tools=entries), loader) as session:
        assert list(session.coordinator.tools) == ["good"]
        assert session.coordinator.hooks.list_handlers() == {TOOL_PRE: ["good"]}


@pytest.mark.parametrize("fails", [False, True])
async def test_what_modules_task_mounts_meanwhile_is_not_next_modules(
    fails: bool,
) -> None:
    """As the tools of a slow server are, which join while other modules are mounted."""
    go_on, joined = anyio.Event(), anyio.Event()

    @asynccontextmanager
    async def joining(coordinator: Coordinator) -> AsyncGenerator[None, None]:
        async def join() -> None:
            await go_on.wait()
            await coordinator.mount("tools", Worker("late"))
            joined.set()

        async with anyio.create_task_group() as group:
            group.start_soon(join)
            yield

    async def server(coordinator: Coordinator, config: Config) -> None:
        await coordinator.own(joining(coordinator))

    async def next_one(coordinator: Coordinator, config: Config) -> object:
        go_on.set()
        await joined.wait()
        if fails:
            raise OSError("gone")
        return Worker("work")

    plan = build_plan(tools=["server", {"module": "next", "instance_id": "mine"}])
    with anyio.fail_after(5):
        async with a_session(plan, server=server, next=next_one) as session:
            assert list(session.coordinator.tools) == (
                ["late"] if fails else ["late", "mine"]
            )


async def test_a_failed_instance_is_announced_with_its_name_and_type() -> None:
    plan = build_plan(tools=["a", {"module": "a", "instance_id": "second"}])
    session = a_session(plan, a=mounting(OSError("gone")))
    recorder = Recorder.of(session.coordinator.hooks, "module:load_failed")

    async with session:
        assert len(session.failures) == 2

    first, second = recorder.all("module:load_failed")
    assert (first["module_id"], first["module_type"], first.get("instance_id")) == (
        "a",
        "tool",
        None,
    )
    assert (second["module_id"], second["module_type"], second["instance_id"]) == (
        "a",
        "tool",
        "second",
    )


async def test_two_instances_under_one_name_are_a_conflict() -> None:
    plan = build_plan(
        tools=[{"module": "a", "instance_id": "x"}, {"module": "b", "instance_id": "x"}]
    )

    async with a_session(plan, a=Worker("a"), b=Worker("b")) as session:
        (failure,) = session.failures

    assert isinstance(failure, ModuleConflictError)


async def test_refused_configuration_is_named_by_its_place_in_plan() -> None:
    plan = build_plan(tools=["a", {"module": "b", "config": {"colour": "red"}}])

    @toolset
    class Paint:
        @tool
        def paint(self) -> str:
            return ""

    async with a_session(plan, a=Worker("a"), b=Paint) as session:
        (failure,) = session.failures

    assert isinstance(failure, ModuleConfigError)
    (problem,) = failure.problems
    assert problem.path == "tools[1].config.colour"


async def test_a_module_that_mounts_nothing_is_no_failure_and_is_told() -> None:
    plan = build_plan(providers=["away"], tools=["here"], hooks=["hook"])
    session = a_session(
        plan, away=mounting(None), here=Worker("x"), hook=mounting(None)
    )
    recorder = Recorder.of(session.coordinator.hooks, "module:*")

    async with session:
        assert session.failures == ()
        assert session.skipped == ("away",)

    assert [
        (name, data["module_id"], data["module_type"]) for name, data in recorder.events
    ] == [("module:skipped", "away", "provider")]


# -- ready


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A Python module that holds a module's `mount`, and may hold its `on_session_ready`."""
    made = ModuleType("kernel_test_home")
    monkeypatch.setitem(sys.modules, made.__name__, made)

    async def mount(coordinator: Coordinator, config: Config) -> object:
        return Worker(str(config.get("name", "x")))

    mount.__module__ = made.__name__
    vars(made)["mount"] = mount
    return made


def reported(home: ModuleType, session: AmplifierSession) -> Recorder:
    return Recorder.of(session.coordinator.hooks, "module:on_session_ready_failed")


async def test_several_instances_of_one_module_are_told_once(home: ModuleType) -> None:
    calls: list[list[str]] = []

    async def on_session_ready(coordinator: Coordinator) -> None:
        calls.append(list(coordinator.get("tools")))  # type: ignore[call-overload]  # the mounted tools

    vars(home)["on_session_ready"] = on_session_ready
    plan = build_plan(tools=["a", {"module": "a", "instance_id": "b"}])

    async with a_session(plan, a=vars(home)["mount"]):
        pass

    assert calls == [["x", "b"]]


async def test_a_sync_one_is_not_called_and_that_is_reported(
    home: ModuleType, reports: Reports
) -> None:
    def on_session_ready(coordinator: Coordinator) -> None:
        raise AssertionError("never called")

    vars(home)["on_session_ready"] = on_session_ready

    async with a_session(build_plan(tools=["a"]), a=vars(home)["mount"]) as session:
        assert session.failures == ()

    (report,) = reports
    assert (report["event"], report["module"], report["problem"]) == (
        "module.on_session_ready_skipped",
        "a",
        "write it as 'async def'",
    )


async def test_one_that_takes_too_long_is_announced_and_ends_nothing(
    home: ModuleType, reports: Reports
) -> None:
    async def on_session_ready(coordinator: Coordinator) -> None:
        await anyio.sleep_forever()

    vars(home)["on_session_ready"] = on_session_ready
    session = a_session(
        build_plan(tools=["a"], limits={"mount_timeout": 0.05}), a=vars(home)["mount"]
    )
    recorder = reported(home, session)

    with anyio.fail_after(10):
        async with session:
            assert list(session.coordinator.tools) == ["x"]

    announced = recorder.one("module:on_session_ready_failed")
    assert (announced["module_id"], announced["error"]) == (
        "a",
        "TimeoutError: it took longer than 0.05 s",
    )
    assert [report["event"] for report in reports] == ["module.on_session_ready_failed"]


async def test_a_module_that_failed_to_mount_is_not_told(home: ModuleType) -> None:
    vars(home)["on_session_ready"] = 3
    mount = mounting(OSError("gone"))
    mount.__module__ = home.__name__

    async with a_session(build_plan(tools=["a"]), a=mount) as session:
        assert len(session.failures) == 1


async def test_they_are_told_one_after_other_before_fork_is_announced(
    home: ModuleType,
) -> None:
    order: list[str] = []

    async def on_session_ready(coordinator: Coordinator) -> None:
        order.append("ready")

    vars(home)["on_session_ready"] = on_session_ready
    loader = build_loader(
        {"loop": EchoLoop(), "context": MemoryContext(), "a": vars(home)["mount"]}
    )
    session = AmplifierSession(build_plan(tools=["a"]), loader, parent_id="parent")
    session.coordinator.hooks.register(
        "session:fork", lambda event, data: order.append(event)
    )

    async with session:
        pass

    assert order == ["ready", "session:fork"]


async def test_instance_s_name_is_none_where_there_is_but_one_place() -> None:
    async def mount(coordinator: Coordinator, config: Config) -> object:
        await coordinator.mount("context", MemoryContext())
        await coordinator.mount("context", MemoryContext())
        return Worker("x")

    async with a_session(
        build_plan(tools=[{"module": "tool-x", "instance_id": "mine"}]), tool_x=mount
    ) as session:
        assert session.failures == ()
        assert list(session.coordinator.tools) == ["mine"]
