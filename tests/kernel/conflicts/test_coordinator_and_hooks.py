"""What the published contracts say of coordinators and hooks in more than one way.

Each test names its row in the table that settles the matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from itertools import product

import anyio
import pytest

from amplifier import HookRegistry, ModuleCoordinator
from amplifier.kernel.cancellation import CancellationState, CancellationToken
from amplifier.kernel.plans.plan import MountPlan
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.contracts import ContextManager, Hooks, Provider, Tool
from amplifier_sdk.events import ALL_EVENTS, PROMPT_SUBMIT, TOOL_POST, TOOL_PRE
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import HookResult, ToolResult
from tests.doubles import (
    EchoLoop,
    Listener,
    MemoryContext,
    Person,
    PlainLoop,
    Recorder,
    Screen,
    ScriptedProvider,
    Sentry,
    Worker,
    build_plan,
    build_session,
    call,
    calling,
    mounted_context,
    only_result,
)

Reports = list[MutableMapping[str, object]]
Handler = Callable[[str, dict[str, object]], HookResult | None]


def answering(result: object) -> Handler:
    """A handler that answers one thing, whatever it is."""
    return lambda event, data: result  # type: ignore[return-value]  # also what no handler should answer


# -- coordinator


@pytest.mark.parametrize(("name", "instance"), [("context", MemoryContext()), ("orchestrator", EchoLoop())])
async def test_row_1_the_contracts_session_mount_point_is_an_alias(name: str, instance: object) -> None:
    coordinator = ModuleCoordinator()

    await coordinator.mount("session", instance, name=name)

    assert coordinator.get(name) is coordinator.get("session", name) is instance
    await coordinator.mount(name, instance)
    await coordinator.unmount("session", name)
    assert coordinator.get(name) is None


@pytest.mark.parametrize(("point", "name"), [("session", None), ("session", "memory"), ("agents", "x")])
async def test_row_1_no_other_name_is_a_place_of_the_session(point: str, name: str | None) -> None:
    with pytest.raises(ValueError, match=f"Unknown mount point '{point}'"):
        await ModuleCoordinator().mount(point, MemoryContext(), name=name)


async def test_row_11_a_loop_gets_the_registry_and_returns_text() -> None:
    heard: list[str] = []

    async def execute(
        prompt: str, context: ContextManager, providers: dict[str, Provider], tools: dict[str, Tool], hooks: Hooks
    ) -> str:
        assert isinstance(hooks, HookRegistry)
        hooks.register("own:event", lambda event, data: heard.append(event))
        return prompt.upper()

    async with build_session(loop=PlainLoop(execute)) as session:
        assert await session.execute("hello") == "HELLO"
        await session.coordinator.hooks.emit("own:event", {})

    assert heard == ["own:event"]


def test_row_20_an_instance_is_mounted_when_the_call_returns() -> None:
    coordinator, tool = ModuleCoordinator(), Worker()

    awaitable = coordinator.mount("tools", tool)

    assert coordinator.get("tools", "work") is tool
    assert hasattr(awaitable, "__await__")


async def test_row_20_what_is_refused_is_refused_by_the_call() -> None:
    coordinator = ModuleCoordinator()

    with pytest.raises(ValueError, match="Unknown mount point 'tolls'; did you mean 'tools'"):
        _ = coordinator.mount("tolls", Worker())
    await coordinator.mount("tools", Worker())


# -- injections


def test_row_21_injections_have_a_limit_of_size_and_no_budget_unless_the_plan_says_so() -> None:
    default = MountPlan.read(build_plan()).session
    unlimited = MountPlan.read(build_plan(injection_size_limit=None)).session

    assert (default.injection_size_limit, default.injection_budget_per_turn) == (10_240, None)
    assert unlimited.injection_size_limit is None


@pytest.mark.parametrize(("text", "kept"), [("é" * 10, "é" * 10), ("é" * 11, "é" * 10), ("\x00" * 90, None)])
async def test_row_21_the_size_limit_counts_characters_that_are_injected(text: str, kept: str | None) -> None:
    session = build_session("end", settings={"injection_size_limit": 10})
    async with session:
        await session.coordinator.process_hook_result(HookResult.inject(text), "app:tick", "me")

        stored = [message["content"] for message in mounted_context(session.coordinator).messages]
    assert stored == ([] if kept is None else [kept])


async def test_row_21_the_budget_is_one_turn_s_and_only_reported(reports: Reports) -> None:
    session = build_session("one", "two", settings={"injection_budget_per_turn": 3})
    session.coordinator.hooks.register(PROMPT_SUBMIT, lambda event, data: HookResult.inject("x" * 12))
    async with session:
        await session.execute("first")
        await session.execute("second")
        assert reports == []
        await session.coordinator.process_hook_result(HookResult.inject("x" * 4), "app:tick", "me")

        assert [report["event"] for report in reports] == ["injection.over_budget"]
        assert len(mounted_context(session.coordinator).messages) == 7


# -- decisions


@pytest.mark.parametrize(
    ("reply", "options", "allowing", "allowed"),
    [
        ("Allow", None, (), True),
        ("allow ONCE", None, (), True),
        ("Allow always", None, (), True),
        ("Deny", None, (), False),
        ("no", None, (), False),
        ("Ship it", ("Ship it", "Allow", "Wait"), (), False),
        ("Ship it", ("Ship it", "Wait"), ("Ship it",), True),
        ("Wait", ("Ship it", "Wait"), ("Ship it",), False),
    ],
)
async def test_row_22_an_answer_allows_by_its_word_or_as_an_option_that_was_named_as_allowing(
    reply: str, options: tuple[str, ...] | None, allowing: tuple[str, ...], allowed: bool
) -> None:
    coordinator = ModuleCoordinator(approval_system=Person(reply))
    question = HookResult.ask("Ship?", options=options, allowing=allowing)

    decided = await coordinator.process_hook_result(question, "app:ship", "me")

    assert decided.denied is not allowed


async def test_row_23_every_message_for_the_person_is_shown_also_with_a_question_or_injections() -> None:
    screen = Screen()
    coordinator = ModuleCoordinator(approval_system=Person(), display_system=screen)
    coordinator.hooks.register("x", answering(HookResult(action="ask_user", user_message="asked")), name="a")
    coordinator.hooks.register("x", answering(HookResult.inject("one", user_message="first")), name="b")
    coordinator.hooks.register("x", answering(HookResult.inject("two", user_message="second")), name="c")

    emission = await coordinator.hooks.emit("x", {})
    await coordinator.process_hook_result(emission, "x")

    assert emission.user_message == "asked\nfirst\nsecond"
    assert [(text, source) for text, _, source in screen.shown] == [
        ("asked", "hook:a"),
        ("first", "hook:b"),
        ("second", "hook:c"),
    ]


@pytest.mark.parametrize("later", [HookResult.inject("note"), HookResult.ask("sure?"), HookResult.deny("no")])
async def test_row_24_a_change_is_kept_when_a_later_handler_injects_asks_or_denies(later: HookResult) -> None:
    hooks = HookRegistry()
    hooks.register("x", answering(HookResult.modify({"a": 2})))
    hooks.register("x", answering(later))

    emission = await hooks.emit("x", {"a": 1})

    assert (emission.action, emission.data["a"]) == (later.action, 2)


async def test_row_25_injections_are_kept_beside_a_question() -> None:
    hooks = HookRegistry()
    hooks.register("x", answering(HookResult.inject("one")))
    hooks.register("x", answering(HookResult.ask("sure?", options=["Allow", "No"])))
    hooks.register("x", answering(HookResult.inject("two", role="user")))

    emission = await hooks.emit("x", {})

    assert (emission.action, emission.approval_prompt, emission.approval_options) == (
        "ask_user",
        "sure?",
        ("Allow", "No"),
    )
    assert [(item.content, item.role) for item in emission.context_injections] == [("one", "system"), ("two", "user")]


async def test_row_25_an_emission_without_a_question_has_no_prompt() -> None:
    emission = await HookRegistry().emit("x", {})

    assert (emission.approval_prompt, emission.approval_options, emission.user_message) == (None, None, None)


async def test_row_26_an_empty_injection_is_dropped() -> None:
    coordinator, context = ModuleCoordinator(), MemoryContext()
    await coordinator.mount("context", context)
    hooks = coordinator.hooks
    hooks.register("x", answering(HookResult.inject("")))
    hooks.register("x", answering(HookResult.inject("note")))

    emission = await hooks.emit("x", {})
    await coordinator.process_hook_result(emission, "x")

    assert emission.context_injection == "note"
    assert [message["content"] for message in context.messages] == ["note"]


@pytest.mark.parametrize("nonsense", ["yes", 1, {"action": "explode"}, {"unknown": 1}, [HookResult.deny("no")]])
async def test_row_27_nonsense_from_a_handler_that_decides_denies(nonsense: object) -> None:
    hooks = HookRegistry()
    hooks.register(TOOL_PRE, answering(nonsense), name="odd")

    emission = await hooks.emit("tool:pre", {"tool_name": "x", "tool_input": {}})

    assert (emission.denied, emission.decided_by) == (True, "odd")


@pytest.mark.parametrize("nothing", [None, {}])
async def test_row_27_nothing_lets_the_operation_go_on(nothing: object) -> None:
    hooks = HookRegistry()
    hooks.register(TOOL_PRE, answering(nothing))

    assert (await hooks.emit("tool:pre", {"tool_name": "x", "tool_input": {}})).action == "continue"


async def test_row_28_an_observer_that_fails_is_skipped_and_a_decider_that_fails_denies(reports: Reports) -> None:
    def fail(event: str, data: Mapping[str, object]) -> None:
        raise ValueError("no")

    hooks = HookRegistry()
    hooks.register("*", fail, name="broken")

    assert (await hooks.emit("tool:post", {})).action == "continue"
    assert (await hooks.emit("tool:pre", {})).denied
    assert reports[0]["event"] == "hook.failed"


@pytest.mark.parametrize("event", ["tool:pre", "tool:post"])
async def test_row_28_a_cancellation_is_never_swallowed(event: str) -> None:
    hooks, listener = HookRegistry(), Listener()
    after: list[str] = []
    hooks.register(event, listener)
    hooks.register(event, lambda event, data: after.append(event))

    async def emit() -> None:
        await hooks.emit(event, {})
        after.append("returned")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(emit)
            await listener.started.wait()
            group.cancel_scope.cancel()

    assert (listener.cancelled, after) == (True, [])


async def test_row_29_handlers_get_a_dict_of_their_own_with_the_values_themselves() -> None:
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


async def test_row_29_a_loop_sees_by_identity_whether_a_handler_changed_a_result() -> None:
    """The customary test of loops written by hand: the same object came back, so nothing was changed."""
    hooks, result = HookRegistry(), ToolResult(output={"a": 1, "b": None})
    hooks.register(TOOL_POST, answering(None))

    emission = await hooks.emit("tool:post", {"result": result, "tool_result": result})

    assert emission.data["result"] is emission.data["tool_result"] is result


def test_row_30_a_handler_is_named_after_itself_and_the_name_is_made_unique() -> None:
    def guard(event: str, data: Mapping[str, object]) -> None: ...

    hooks = HookRegistry()
    for _ in range(3):
        hooks.register("x", guard)
    hooks.register("x", Sentry())

    assert hooks.list_handlers("x") == {"x": ["guard", "guard#2", "guard#3", "Sentry"]}


@pytest.mark.parametrize(
    ("pattern", "heard"), [("*", True), ("provider:*", True), ("*:error", True), ("tool:*", False)]
)
async def test_row_31_a_pattern_hears_what_fits(pattern: str, heard: bool) -> None:
    hooks = HookRegistry()
    recorder = Recorder()
    hooks.register(pattern, recorder.hear)

    await hooks.emit("provider:error", {})

    assert recorder.names == (["provider:error"] if heard else [])


# -- what events carry


async def test_row_5_ids_are_added_and_never_take_the_place_of_explicit_data() -> None:
    session = build_session(calling(call("work")), "end", tools=[Worker()])
    recorder = Recorder.of(session.coordinator.hooks)

    async def say(event: str, data: dict[str, object]) -> None:
        await session.coordinator.hooks.emit("app:said", {"turn_id": "mine", "iteration": "my own"})

    session.coordinator.hooks.register(TOOL_PRE, say)
    async with session:
        await session.execute("go")

    pre, said = recorder.one(TOOL_PRE), recorder.one("app:said")
    assert {"session_id", "parent_id", "turn_id", "span_id", "parent_span_id", "iteration", "timestamp"} <= set(pre)
    assert (said["turn_id"], said["iteration"], said["span_id"]) == ("mine", "my own", pre["span_id"])


async def test_row_5_what_a_provider_tells_of_one_request_carries_one_id() -> None:
    hooks = HookRegistry()
    recorder = Recorder.of(hooks)
    for event in ("llm:request", "provider:retry", "provider:throttle", "llm:response", "provider:retry"):
        await hooks.emit(event, {})

    ids = [data.get("request_id") for _, data in recorder.events]
    assert isinstance(ids[0], str)
    assert ids == [ids[0]] * 4 + [None]


async def test_row_5_a_request_s_own_id_is_kept_and_ends_with_its_error() -> None:
    hooks = HookRegistry()
    recorder = Recorder.of(hooks)

    await hooks.emit("llm:request", {"request_id": "mine"})
    await hooks.emit("provider:error", {})
    await hooks.emit("llm:response", {"request_id": "late"})
    await hooks.emit("llm:response", {})

    assert [data.get("request_id") for _, data in recorder.events] == ["mine", "mine", "late", None]


async def test_row_5_requests_beside_each_other_keep_their_ids() -> None:
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


async def test_row_5_a_handler_that_decides_sees_the_id_too() -> None:
    hooks, sentry = HookRegistry(), Sentry()
    hooks.register("llm:request", sentry, decides=True)

    emission = await hooks.emit("llm:request", {})

    assert emission.data["request_id"] == sentry.seen[0]["request_id"]


async def test_row_31_at_one_priority_a_pattern_hears_behind_the_name_itself() -> None:
    hooks, order = HookRegistry(), []
    hooks.register("*", lambda event, data: order.append("any"))
    hooks.register("tool:*", lambda event, data: order.append("tools"))
    hooks.register("tool:post", lambda event, data: order.append("name"))
    hooks.register("*", lambda event, data: order.append("early"), priority=-1)
    hooks.register("tool:post", lambda event, data: order.append("late"), priority=1)

    await hooks.emit("tool:post", {})

    assert order == ["early", "name", "any", "tools", "late"]


async def test_row_2_without_the_request_s_view_the_whole_history_is_sent() -> None:
    class Older:
        """A context of the older contract."""

        async def get_messages(self) -> list[JSONObject]:
            return [{"role": "user", "content": "hello"}]

    provider = ScriptedProvider("hi")
    coordinator = ModuleCoordinator()

    await coordinator.host.complete(provider, ChatRequest, context=Older())  # type: ignore[arg-type]

    assert provider.last_messages == [("user", "hello")]


async def test_a_request_is_announced_with_the_messages_that_the_contract_shows() -> None:
    """The hook contract names `messages` among the data; a message that a handler adds then is sent as well."""
    session = build_session("end")
    recorder = Recorder.of(session.coordinator.hooks, "provider:request")

    async def remind(event: str, data: dict[str, object]) -> None:
        await session.coordinator.context.add_message({"role": "user", "content": "be brief"})

    session.coordinator.hooks.register("provider:request", remind)
    async with session:
        await session.execute("hello")
        provider = session.coordinator.providers["scripted"]

    messages = recorder.one("provider:request")["messages"]
    assert isinstance(messages, Sequence)
    assert list(messages) == [{"role": "user", "content": "hello"}]
    assert isinstance(provider, ScriptedProvider)
    assert provider.last_messages == [("user", "hello"), ("user", "be brief")]


async def test_row_9_a_result_is_under_both_keys_as_one_object() -> None:
    session = build_session(calling(call("work")), "end", tools=[Worker()])
    recorder = Recorder.of(session.coordinator.hooks, TOOL_POST)
    async with session:
        await session.execute("go")

    data = recorder.one(TOOL_POST)
    assert data["result"] is data["tool_result"]
    assert isinstance(data["result"], ToolResult)


@pytest.mark.parametrize(("first", "second"), list(product(["result", "tool_result"], repeat=2)))
async def test_row_9_either_key_changes_the_result_and_result_counts_first(first: str, second: str) -> None:
    session = build_session(calling(call("work")), "end", tools=[Worker()])
    changes = {first: ToolResult(output=f"by {first}"), second: ToolResult(output=f"by {second}")}
    session.coordinator.hooks.register(TOOL_POST, answering(HookResult.modify(changes)))
    async with session:
        await session.execute("go")

        assert only_result(mounted_context(session.coordinator).messages) == f"by {min(changes)}"


async def test_row_45_an_assistant_message_is_written_with_both_names_of_its_tools_and_no_null_content() -> None:
    session = build_session(calling(call("work", {"x": 1})), "end", tools=[Worker()])
    async with session:
        await session.execute("go")

        message = mounted_context(session.coordinator).messages[1]
        assert message["tool_calls"] == [{"id": "id-work", "tool": "work", "name": "work", "arguments": {"x": 1}}]
        assert message["content"] == [{"type": "tool_call", "id": "id-work", "name": "work", "input": {"x": 1}}]


async def test_row_48_a_context_that_keeps_its_own_file_may_ignore_what_it_is_given() -> None:
    """The kernel never replaces a context's messages by itself: what the context says is the authority."""

    class Stubborn(MemoryContext):
        async def set_messages(self, messages: object, /) -> None:
            raise AssertionError("never called")

    provider = ScriptedProvider("one", "two")
    async with build_session(provider=provider, context=Stubborn(), is_resumed=True) as session:
        await session.execute("first")
        await session.execute("second")

    assert [text for _, text in provider.last_messages] == ["first", "one", "second"]


async def test_row_53_any_other_name_is_an_event_as_well() -> None:
    hooks, recorder = HookRegistry(), Recorder()
    hooks.register("agent:*", recorder.hear)
    hooks.register("error:tool", recorder.hear)

    await hooks.emit("agent:start", {"name": "x"})
    await hooks.emit("error:tool", None)

    assert recorder.names == ["agent:start", "error:tool"]
    assert not {"agent:start", "error:tool"} & set(ALL_EVENTS)
    assert len(ALL_EVENTS) == len(set(ALL_EVENTS)) == 43


# -- cancellation


def test_row_39_a_state_reads_as_its_bare_word_and_is_the_enum_as_well() -> None:
    token = CancellationToken()
    assert (token.state, str(token.state)) == ("none", "none")

    token.request_graceful()
    assert token.state == "graceful"
    assert token.state == CancellationState.GRACEFUL
    assert f"{token.state}" == str(token.state) == "graceful"

    token.request_immediate()
    assert token.state is CancellationState("immediate")
