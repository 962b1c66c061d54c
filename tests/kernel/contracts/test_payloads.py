"""What events and messages carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import anyio
import pytest

from amplifier import (
    HookRegistry,
    ModuleCoordinator,
)
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.events import (
    TOOL_POST,
    TOOL_PRE,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import HookResult, ToolResult
from tests.doubles import (
    MemoryContext,
    Recorder,
    ScriptedProvider,
    Sentry,
    Worker,
    build_session,
    call,
    calling,
    mounted_context,
    only_result,
)

Handler = Callable[[str, dict[str, object]], HookResult | None]


def answering(result: object) -> Handler:
    """A handler that answers one thing, whatever it is."""
    return lambda event, data: result  # type: ignore[return-value]  # also what no handler should answer


async def test_handlers_get_a_dict_of_their_own() -> None:
    value, seen = object(), []

    def spoil(event: str, data: dict[str, object]) -> None:
        seen.append(data["value"])
        data.clear()

    hooks = HookRegistry()
    hooks.register("x", spoil)
    hooks.register("x", spoil)
    data = {"value": value}

    emission = await hooks.emit("x", data)

    assert seen == [value, value]
    assert emission.data["value"] is value
    assert data == {"value": value}


async def test_a_loop_sees_by_identity_whether_a_result_changed() -> None:
    """The customary test of loops written by hand: the same object came back, so nothing was changed."""
    hooks, result = HookRegistry(), ToolResult(output={"a": 1, "b": None})
    hooks.register(TOOL_POST, answering(None))

    emission = await hooks.emit("tool:post", {"result": result, "tool_result": result})

    assert emission.data["result"] is emission.data["tool_result"] is result


async def test_ids_never_replace_explicit_data() -> None:
    session = build_session(calling(call("work")), "end", tools=[Worker()])
    recorder = Recorder.of(session.coordinator.hooks)

    async def say(event: str, data: dict[str, object]) -> None:
        await session.coordinator.hooks.emit(
            "app:said", {"turn_id": "mine", "iteration": "my own"}
        )

    session.coordinator.hooks.register(TOOL_PRE, say)
    async with session:
        await session.execute("go")

    pre, said = recorder.one(TOOL_PRE), recorder.one("app:said")
    assert {
        "session_id",
        "parent_id",
        "turn_id",
        "span_id",
        "parent_span_id",
        "iteration",
        "timestamp",
    } <= set(pre)
    assert (said["turn_id"], said["iteration"], said["span_id"]) == (
        "mine",
        "my own",
        pre["span_id"],
    )


async def test_events_of_one_request_carry_one_id() -> None:
    hooks = HookRegistry()
    recorder = Recorder.of(hooks)
    for event in (
        "llm:request",
        "provider:retry",
        "provider:throttle",
        "llm:response",
        "provider:retry",
    ):
        await hooks.emit(event, {})

    ids = [data.get("request_id") for _, data in recorder.events]
    assert isinstance(ids[0], str)
    assert ids == [ids[0]] * 4 + [None]


async def test_a_requests_own_id_ends_with_its_error() -> None:
    hooks = HookRegistry()
    recorder = Recorder.of(hooks)

    await hooks.emit("llm:request", {"request_id": "mine"})
    await hooks.emit("provider:error", {})
    await hooks.emit("llm:response", {"request_id": "late"})
    await hooks.emit("llm:response", {})

    assert [data.get("request_id") for _, data in recorder.events] == [
        "mine",
        "mine",
        "late",
        None,
    ]


async def test_concurrent_requests_have_their_own_ids() -> None:
    hooks = HookRegistry()
    recorder = Recorder.of(hooks)
    both = anyio.Event()

    async def request(name: str) -> None:
        await hooks.emit("llm:request", {"provider": name})
        if name == "b":
            both.set()
        await both.wait()
        await hooks.emit("llm:response", {"provider": name})

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(request, "a")
            group.start_soon(request, "b")

    ids: dict[object, set[object]] = {}
    for _, data in recorder.events:
        ids.setdefault(data["provider"], set()).add(data["request_id"])
    assert [len(found) for found in ids.values()] == [1, 1]
    assert ids["a"] != ids["b"]


async def test_a_blocking_hook_sees_the_id_too() -> None:
    hooks, sentry = HookRegistry(), Sentry()
    hooks.register("llm:request", sentry, decides=True)

    emission = await hooks.emit("llm:request", {})

    assert emission.data["request_id"] == sentry.seen[0]["request_id"]


async def test_without_a_view_the_whole_history_is_sent() -> None:
    class Older:
        """A context of the older contract."""

        async def get_messages(self) -> list[JSONObject]:
            return [{"role": "user", "content": "hello"}]

    provider = ScriptedProvider("hi")
    coordinator = ModuleCoordinator()

    await coordinator.host.complete(provider, ChatRequest, context=Older())  # type: ignore[arg-type]

    assert provider.last_messages == [("user", "hello")]


async def test_a_request_is_announced_with_its_messages() -> None:
    """The hook contract names `messages` among the data; a message that a handler adds then is sent as well."""
    session = build_session("end")
    recorder = Recorder.of(session.coordinator.hooks, "provider:request")

    async def remind(event: str, data: dict[str, object]) -> None:
        await session.coordinator.context.add_message(
            {"role": "user", "content": "be brief"}
        )

    session.coordinator.hooks.register("provider:request", remind)
    async with session:
        await session.execute("hello")
        provider = session.coordinator.providers["scripted"]

    messages = recorder.one("provider:request")["messages"]
    assert isinstance(messages, Sequence)
    assert list(messages) == [{"role": "user", "content": "hello"}]
    assert isinstance(provider, ScriptedProvider)
    assert provider.last_messages == [("user", "hello"), ("user", "be brief")]


async def test_a_result_is_under_both_keys_as_one_object() -> None:
    session = build_session(calling(call("work")), "end", tools=[Worker()])
    recorder = Recorder.of(session.coordinator.hooks, TOOL_POST)
    async with session:
        await session.execute("go")

    data = recorder.one(TOOL_POST)
    assert data["result"] is data["tool_result"]
    assert isinstance(data["result"], ToolResult)


@pytest.mark.parametrize(
    ("first", "second"), list(product(["result", "tool_result"], repeat=2))
)
async def test_either_key_changes_the_result(first: str, second: str) -> None:
    session = build_session(calling(call("work")), "end", tools=[Worker()])
    changes = {
        first: ToolResult(output=f"by {first}"),
        second: ToolResult(output=f"by {second}"),
    }
    session.coordinator.hooks.register(TOOL_POST, answering(HookResult.modify(changes)))
    async with session:
        await session.execute("go")

        assert (
            only_result(mounted_context(session.coordinator).messages)
            == f"by {min(changes)}"
        )


async def test_tool_calls_have_both_names_and_no_null_content() -> None:
    session = build_session(calling(call("work", {"x": 1})), "end", tools=[Worker()])
    async with session:
        await session.execute("go")

        message = mounted_context(session.coordinator).messages[1]
        assert message["tool_calls"] == [
            {"id": "id-work", "tool": "work", "name": "work", "arguments": {"x": 1}}
        ]
        assert message["content"] == [
            {"type": "tool_call", "id": "id-work", "name": "work", "input": {"x": 1}}
        ]


async def test_a_context_with_a_file_may_ignore_what_it_gets() -> None:
    """The kernel never replaces a context's messages by itself: what the context says is the authority."""

    class Stubborn(MemoryContext):
        async def set_messages(self, messages: object, /) -> None:
            raise AssertionError("never called")

    provider = ScriptedProvider("one", "two")
    async with build_session(
        provider=provider, context=Stubborn(), is_resumed=True
    ) as session:
        await session.execute("first")
        await session.execute("second")

    assert [text for _, text in provider.last_messages] == ["first", "one", "second"]
