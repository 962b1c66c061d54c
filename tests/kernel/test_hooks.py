"""The hook registry: who hears an event, in which order, and with what data."""

from __future__ import annotations

import string
from collections.abc import MutableMapping
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier import HookRegistry
from amplifier_sdk import on
from amplifier_sdk.events import PROMPT_SUBMIT, TOOL_POST, TOOL_PRE, PromptSubmit
from amplifier_sdk.results import HookResult
from tests.doubles import (
    Listener,
    Recorder,
    ScriptedProvider,
    Sentry,
    Worker,
    build_session,
    call,
    calling,
)

Reports = list[MutableMapping[str, object]]


def noting(order: list[str], name: str) -> object:
    def hear(event: str, data: dict[str, object]) -> None:
        order.append(name)

    return hear


async def test_handlers_run_by_priority_then_registration_order() -> None:
    hooks, order = HookRegistry(), list[str]()
    for name, priority in (("late", 10), ("a", 0), ("early", -5), ("b", 0)):
        hooks.register("x", lambda event, data, name=name: order.append(name), priority)  # type: ignore[misc]

    await hooks.emit("x", {})

    assert order == ["early", "a", "b", "late"]


@given(st.lists(st.integers(-3, 3), max_size=8))
def test_the_listing_is_in_the_order_of_the_run(priorities: list[int]) -> None:
    hooks = HookRegistry()
    for number, priority in enumerate(priorities):
        hooks.register("x", lambda event, data: None, priority, f"h{number}")

    expected = [
        f"h{number}"
        for number in sorted(range(len(priorities)), key=lambda n: (priorities[n], n))
    ]
    assert hooks.list_handlers("x") == hooks.list_handlers("x") == {"x": expected}
    assert hooks.list_handlers() == ({"x": expected} if expected else {})


async def test_sync_async_and_callable_objects_are_handlers() -> None:
    hooks, order = HookRegistry(), list[str]()

    async def later(event: str, data: dict[str, object]) -> None:
        order.append("async")

    def awaitable(event: str, data: dict[str, object]) -> object:
        return later(event, data)

    hooks.register("x", lambda event, data: order.append("sync"))
    hooks.register("x", later)
    hooks.register("x", awaitable)  # type: ignore[arg-type]  # returns a coroutine, as a partial of one does
    hooks.register("x", Sentry())

    assert (await hooks.emit("x", {})).action == "continue"
    assert order == ["sync", "async", "async"]


def test_what_cannot_be_called_is_no_handler() -> None:
    with pytest.raises(TypeError, match=r"A handler of 'x' must be callable; got 3"):
        HookRegistry().register("x", 3)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("pattern", "event", "heard"),
    [
        ("*", "tool:pre", True),
        ("tool:*", "tool:pre", True),
        ("tool:*", "prompt:submit", False),
        ("x", "xy", False),
    ],
)
async def test_a_pattern_hears_every_event_that_fits(
    pattern: str, event: str, heard: bool
) -> None:
    hooks = HookRegistry()
    sentry = Sentry()
    hooks.register(pattern, sentry)

    await hooks.emit(event, {})

    assert hooks.has_handlers(event) is heard
    assert bool(sentry.seen) is heard


@given(
    st.text(string.ascii_lowercase + ":*?[]!", max_size=8),
    st.text(string.ascii_lowercase + ":", max_size=8),
)
def test_a_pattern_is_a_glob_or_the_name_itself(pattern: str, event: str) -> None:
    hooks = HookRegistry()
    hooks.register(pattern, lambda name, data: None)

    assert hooks.has_handlers(event) is (
        pattern == event or fnmatchcase(event, pattern)
    )


async def test_registering_during_an_event_counts_from_the_next_one() -> None:
    hooks, order = HookRegistry(), list[str]()

    def grow(event: str, data: dict[str, object]) -> None:
        order.append("first")
        hooks.register("x", lambda event, data: order.append("second"))

    hooks.register("x", grow)
    await hooks.emit("x", {})
    assert order == ["first"]

    await hooks.emit("x", {})
    assert order == ["first", "first", "second"]


async def test_handler_is_removed_by_handle_or_by_name() -> None:
    hooks = HookRegistry()
    gone = hooks.register("x", lambda event, data: None)
    hooks.on("x", lambda event, data: None, name="named")
    hooks.on("y", lambda event, data: None, name="named")

    gone()
    gone()
    assert hooks.list_handlers() == {"x": ["named"], "y": ["named"]}

    hooks.unregister("named")
    hooks.unregister("never was")
    assert hooks.list_handlers() == {}
    assert not hooks.has_handlers("x")


async def test_handlers_of_one_name_are_told_apart() -> None:
    hooks = HookRegistry()

    def guard(event: str, data: dict[str, object]) -> None:
        return None

    for _ in range(3):
        hooks.register("x", guard)
    hooks.register("x", Sentry())

    assert hooks.list_handlers("x") == {"x": ["guard", "guard#2", "guard#3", "Sentry"]}


async def test_an_event_that_nobody_hears_comes_back_as_it_was() -> None:
    hooks = HookRegistry()
    hooks.set_default_fields(session_id="s")
    data: dict[str, object] = {"a": 1}

    assert (await hooks.emit("x", data)).data is data
    assert (await hooks.emit("x", None)).data == {}


async def test_event_carries_defaults_and_time_and_explicit_data_win() -> None:
    hooks = HookRegistry()
    hooks.set_default_fields(session_id="s", parent_id="p")
    recorder = Recorder.of(hooks)

    before = datetime.now(UTC)
    await hooks.emit("x", {"parent_id": "mine", "a": 1, "timestamp": "never"})
    await hooks.emit("x", None)
    after = datetime.now(UTC)

    first, second = recorder.all("x")
    assert (first["session_id"], first["parent_id"], first["a"]) == ("s", "mine", 1)
    assert (second["session_id"], second["parent_id"]) == ("s", "p")
    for data in (first, second):
        assert (
            before - timedelta(milliseconds=1)
            <= datetime.fromisoformat(str(data["timestamp"]))
            <= after
        )


async def test_each_handler_has_its_own_dict_and_values_themselves() -> None:
    hooks = HookRegistry()
    value = object()
    first, second = Sentry(), Sentry()

    def clear(event: str, data: dict[str, object]) -> None:
        data.clear()

    for handler in (first, clear, second):
        hooks.register("x", handler)
    emission = await hooks.emit("x", {"value": value})

    assert first.seen[0] is not second.seen[0]
    assert (
        first.seen[0]["value"]
        is second.seen[0]["value"]
        is emission.data["value"]
        is value
    )


async def test_every_event_names_session_turn_step_and_iteration() -> None:
    session = build_session(
        calling(call("work")), "done", tools=[Worker()], session_id="s", parent_id="p"
    )
    recorder = Recorder.of(session.coordinator.hooks)
    async with session:
        await session.execute("go")
        await session.cancel()

    in_turn = [
        (name, data)
        for name, data in recorder.events
        if name not in ("session:fork", "session:end")
    ]
    in_turn = [(name, data) for name, data in in_turn if not name.startswith("cancel")]
    assert {data["session_id"] for _, data in in_turn} == {"s"}
    assert {data["parent_id"] for _, data in in_turn} == {"p"}
    assert len({data["turn_id"] for _, data in in_turn}) == 1
    (turn_span,) = {
        data["span_id"]
        for name, data in in_turn
        if name.startswith(("prompt", "session"))
    }
    steps = [
        data
        for name, data in in_turn
        if name in ("provider:request", "tool:pre", "tool:post")
    ]
    # a call of a tool belongs to the answer that made it
    request = next(data for name, data in in_turn if name == "provider:request")
    for data in steps:
        above = request["span_id"] if "tool_name" in data else turn_span
        assert data["parent_span_id"] == above
    assert [
        (name, data["iteration"])
        for name, data in in_turn
        if name in ("provider:request", "tool:pre")
    ] == [
        ("provider:request", 0),
        ("tool:pre", 0),
        ("provider:request", 1),
    ]
    (pre, post) = (recorder.one("tool:pre"), recorder.one("tool:post"))
    assert pre["span_id"] == post["span_id"] != turn_span
    assert "turn_id" not in recorder.one("session:end")


async def test_child_turn_inside_tool_is_turn_of_its_own_below_call() -> None:
    child = build_session("from the child", session_id="child", parent_id="parent")
    heard = Recorder.of(child.coordinator.hooks)

    async def delegate(input: object) -> object:
        return await child.execute("sub")

    session = build_session(
        calling(call("work")),
        "done",
        tools=[Worker(function=delegate)],
        session_id="parent",
    )
    recorder = Recorder.of(session.coordinator.hooks)
    async with child, session:
        await session.execute("go")

    inner, outer = heard.one("prompt:submit"), recorder.one("tool:pre")
    assert inner["turn_id"] != outer["turn_id"]
    assert inner["parent_span_id"] == outer["span_id"]
    assert (inner["session_id"], outer["session_id"]) == ("child", "parent")


async def test_event_of_another_session_takes_no_running_ids() -> None:
    hooks = HookRegistry()
    hooks.set_default_fields(session_id="elsewhere")
    recorder = Recorder.of(hooks)

    async def emit(input: object) -> object:
        await hooks.emit("x", {})
        return "done"

    async with build_session(
        calling(call("work")), "done", tools=[Worker(function=emit)]
    ) as session:
        await session.execute("go")

    assert set(recorder.one("x")) == {"session_id", "timestamp"}


async def test_an_observer_that_fails_is_skipped_and_reported_once(
    reports: Reports,
) -> None:
    hooks = HookRegistry()
    order: list[str] = []

    def broken(event: str, data: dict[str, object]) -> None:
        raise ValueError("no")

    def leaves(event: str, data: dict[str, object]) -> None:
        raise SystemExit(1)

    def nonsense(event: str, data: dict[str, object]) -> None:
        return 3  # type: ignore[return-value]

    for handler in (broken, leaves, nonsense, lambda event, data: order.append("last")):
        hooks.register("x", handler)
    for _ in range(2):
        assert (await hooks.emit("x", {})).action == "continue"

    assert order == ["last", "last"]
    assert [
        (report["event"], report["handler"], report["hook_event"]) for report in reports
    ] == [
        ("hook.failed", "broken", "x"),
        ("hook.failed", "leaves", "x"),
        ("hook.failed", "nonsense", "x"),
    ]


async def test_an_observer_may_have_a_deadline_of_its_own(reports: Reports) -> None:
    hooks = HookRegistry()
    hooks.register("x", Listener(), timeout=0.01, name="slow")

    with anyio.fail_after(5):
        assert (await hooks.emit("x", {})).action == "continue"

    assert [report["handler"] for report in reports] == ["slow"]


async def test_an_observer_without_a_deadline_ends_with_its_caller() -> None:
    hooks = HookRegistry(hook_timeout=0.01)
    listener = Listener()
    hooks.register(TOOL_POST, listener)

    with anyio.fail_after(5), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(hooks.emit, "tool:post", {})
            await listener.started.wait()
            scope.cancel()

    assert listener.cancelled


async def test_collecting_asks_each_handler_and_keeps_data_of_answers(
    reports: Reports,
) -> None:
    hooks = HookRegistry()

    def broken(event: str, data: dict[str, object]) -> None:
        raise ValueError("no")

    hooks.register("x", Sentry([HookResult(data={"n": 1})]))
    hooks.register("x", Sentry([HookResult(action="deny", data={"n": 2})]))
    hooks.register("x", broken)
    hooks.register("x", Listener(), name="slow")
    hooks.register("x", Sentry())
    hooks.register("x", Sentry([HookResult(data={})]))

    with anyio.fail_after(5):
        found = await hooks.emit_and_collect("x", {"a": 1}, timeout=0.02)

    assert found == [{"n": 1}, {"n": 2}, {}]
    assert [report["handler"] for report in reports] == ["broken", "slow"]


async def test_a_typed_event_is_the_string_it_reads_as() -> None:
    hooks = HookRegistry()
    recorder = Recorder()
    hooks.register("prompt:submit", recorder.hear)

    await hooks.emit(PROMPT_SUBMIT, PromptSubmit(prompt="hi"))

    assert recorder.one("prompt:submit")["prompt"] == "hi"
    assert HookRegistry.TOOL_PRE == TOOL_PRE == "tool:pre"


async def test_a_registry_on_its_own_has_a_host_of_its_own() -> None:
    """A loop written for the seeds is called with a registry and nothing else."""
    hooks = HookRegistry()
    tool = Worker()

    result = await hooks.host.run_tool(call("work"), {"work": tool})

    assert result.output == "done"
    assert hooks.host is hooks.host


async def test_what_a_provider_is_sent_does_not_depend_on_who_listens() -> None:
    first, second = (
        ScriptedProvider(calling(call("work")), "x"),
        ScriptedProvider(calling(call("work")), "x"),
    )
    async with build_session(provider=first, tools=[Worker()]) as session:
        await session.execute("go")
    observed = build_session(provider=second, tools=[Worker()])
    Recorder.of(observed.coordinator.hooks)
    async with observed:
        await observed.execute("go")

    assert [list(request.messages) for request in first.requests] == [
        list(request.messages) for request in second.requests
    ]


@pytest.mark.parametrize("timeout", [-1.0, 0.0])
def test_a_handler_s_timeout_is_a_number_of_seconds_above_0(timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout is a number of seconds above 0"):
        HookRegistry().register("x", lambda *_: None, timeout=timeout)
    with pytest.raises(ValueError, match="timeout is a number of seconds above 0"):
        on("x", timeout=timeout)
