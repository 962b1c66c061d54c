"""What handlers decide together: nothing is lost, whoever decides fails closed, what was checked is what runs."""

from __future__ import annotations

from collections.abc import MutableMapping
from itertools import product

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier import HookRegistry, ModuleCoordinator
from amplifier.kernel.hooks.decisions import DecisionProcessor
from amplifier_sdk.errors import LLMError
from amplifier_sdk.events import (
    PROMPT_SUBMIT,
    PROVIDER_REQUEST,
    PROVIDER_RESPONSE,
    SESSION_START,
    TOOL_ERROR,
    TOOL_POST,
    TOOL_PRE,
    USER_NOTIFICATION,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import Emission, HookAction, HookResult, ToolResult
from amplifier_sdk.streaming import ToolFinished, ToolStarted
from tests.doubles import (
    Listener,
    MemoryContext,
    Person,
    Recorder,
    Screen,
    ScriptedProvider,
    Sentry,
    Worker,
    build_session,
    call,
    calling,
    mounted_context,
    only_result,
)
from tests.kernel.turns import a_session, the_result

Reports = list[MutableMapping[str, object]]

RESULTS: dict[HookAction, HookResult] = {
    "deny": HookResult.deny("no"),
    "ask_user": HookResult.ask("sure?"),
    "inject_context": HookResult.inject("note"),
    "modify": HookResult.modify({"changed": True}),
    "continue": HookResult(),
}
ORDER = list(RESULTS)


@pytest.mark.parametrize(("first", "second"), list(product(ORDER, ORDER)))
async def test_the_weightiest_action_counts_and_the_rest_is_kept(
    first: HookAction, second: HookAction
) -> None:
    hooks = HookRegistry()
    hooks.register("x", Sentry([RESULTS[first]]), name="first")
    hooks.register("x", Sentry([RESULTS[second]]), name="second")

    emission = await hooks.emit("x", {"a": 1})

    heard: list[HookAction] = [first] if first == "deny" else [first, second]
    assert emission.action == min(heard, key=ORDER.index)
    saved = [action for action in heard if action != "continue"]
    assert [decision.result.action for decision in emission.decisions] == saved
    assert emission.data.get("changed", False) is ("modify" in heard)
    assert len(emission.injections) == heard.count("inject_context")
    assert (emission.question is not None) is ("ask_user" in heard)


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), min_size=1),
        max_size=5,
    )
)
def test_changes_are_laid_over_each_other_in_order(
    changes: list[dict[str, int]],
) -> None:
    async def run() -> None:
        hooks = HookRegistry()
        for change in changes:
            hooks.register("x", Sentry([HookResult.modify(change)]))
        expected: dict[str, int] = {"a": -1}
        for change in changes:
            expected |= change

        emission = await hooks.emit("x", {"a": -1})

        assert {
            key: emission.data[key] for key in emission.data if key in "abc"
        } == expected

    anyio.run(run)


async def test_every_injection_keeps_its_role_and_its_source() -> None:
    hooks = HookRegistry()
    hooks.register(
        "x",
        Sentry([HookResult.inject("one", role="user", user_message="shown")]),
        name="a",
    )
    hooks.register("x", Sentry([HookResult.inject("")]), name="b")
    hooks.register("x", Sentry([HookResult.inject("two", ephemeral=True)]), name="c")

    emission = await hooks.emit("x", {})

    assert [
        (i.content, i.role, i.hook_name, i.ephemeral) for i in emission.injections
    ] == [
        ("one", "user", "a", False),
        ("two", "system", "c", True),
    ]
    assert emission.context_injection == "one\n\ntwo"
    assert [(m.text, m.source) for m in emission.user_messages] == [("shown", "a")]


async def test_a_message_of_a_handler_that_lets_go_on_is_kept() -> None:
    hooks = HookRegistry()
    hooks.register("x", Sentry([HookResult(user_message="by the way")]), name="a")

    emission = await hooks.emit("x", {})

    assert emission.action == "continue"
    assert [message.text for message in emission.user_messages] == ["by the way"]


async def test_a_mapping_of_fields_is_an_answer() -> None:
    hooks = HookRegistry()

    def answer(event: str, data: dict[str, object]) -> HookResult:
        return {"action": "deny", "reason": "as a mapping"}  # type: ignore[return-value]

    hooks.register("x", lambda event, data: {})  # type: ignore[arg-type, return-value]
    hooks.register("x", answer)

    emission = await hooks.emit("x", {})

    assert (emission.action, emission.reason, emission.decided_by) == (
        "deny",
        "as a mapping",
        "answer",
    )


async def test_a_decision_tells_how_long_it_took() -> None:
    hooks = HookRegistry()
    hooks.register("x", Sentry([HookResult.deny("no")]))

    (decision,) = (await hooks.emit("x", {})).decisions

    assert 0 <= decision.duration < 5


# -- deciding handlers fail closed


async def failing(event: str, data: dict[str, object]) -> None:
    raise ValueError("out of order")


async def leaving(event: str, data: dict[str, object]) -> None:
    raise SystemExit(2)


async def late_itself(event: str, data: dict[str, object]) -> None:
    raise TimeoutError("the policy server is away")


def nonsense(event: str, data: dict[str, object]) -> object:
    return "yes"


def unknown_action(event: str, data: dict[str, object]) -> object:
    return {"action": "alow"}


def unknown_field(event: str, data: dict[str, object]) -> object:
    return {"verdict": "deny"}


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        (failing, "ValueError: out of order"),
        (leaving, "SystemExit: 2"),
        (late_itself, "TimeoutError: the policy server is away"),
        (nonsense, "TypeError: a handler returns a HookResult or None; got 'yes'"),
        (unknown_action, "ValueError: "),
        (unknown_field, "TypeError: "),
        (Listener(), "no answer within 0.02 s"),
    ],
    ids=[
        "raises",
        "exits",
        "times out itself",
        "nonsense",
        "unknown action",
        "unknown field",
        "hangs",
    ],
)
async def test_a_decider_that_fails_denies_and_is_named(
    handler: object, problem: str, reports: Reports
) -> None:
    handler = Listener() if isinstance(handler, Listener) else handler
    session, worker = a_session(handler, limits={"hook_timeout": 0.02})
    recorder = Recorder.of(session.coordinator.hooks, "tool:*")

    text = await the_result(session)

    assert text.startswith("Error: Denied by h0: handler 'h0' failed: " + problem)
    assert worker.inputs == []
    assert recorder.names == [TOOL_PRE, TOOL_ERROR]
    assert [report["handler"] for report in reports] == ["h0"]


async def test_a_decider_may_have_a_deadline_of_its_own() -> None:
    session, worker = a_session()
    session.coordinator.hooks.register(TOOL_PRE, Listener(), timeout=0.01, name="slow")

    assert "no answer within 0.01 s" in await the_result(session)
    assert worker.inputs == []


async def test_a_handler_may_say_that_it_only_observes() -> None:
    session, worker = a_session()
    session.coordinator.hooks.register(TOOL_PRE, failing, decides=False)

    assert await the_result(session) == "done"
    assert worker.inputs == [{"x": 1}]


async def test_a_handler_may_say_that_it_decides() -> None:
    session, worker = a_session()
    session.coordinator.hooks.register(
        TOOL_POST, failing, decides=True, name="redaction"
    )

    assert (await the_result(session)).startswith(
        "Error: Withheld by redaction: handler 'redaction' failed"
    )
    assert worker.inputs == [{"x": 1}]


async def test_a_denial_stops_the_handlers_after_it() -> None:
    never = Sentry()
    session, worker = a_session(Sentry([HookResult.deny("policy")]), never)

    assert await the_result(session) == "Error: Denied by h0: policy"
    assert (never.seen, worker.inputs) == ([], [])


async def test_denying_prompt_ends_turn_before_anything_is_stored() -> None:
    session = build_session("never")
    session.coordinator.hooks.register(
        PROMPT_SUBMIT, Sentry([HookResult.deny("out of hours")])
    )
    async with session:
        assert await session.execute("hi") == "Operation denied: out of hours"

        assert mounted_context(session.coordinator).messages == []


async def test_changing_the_prompt_changes_what_is_stored_and_sent() -> None:
    provider = ScriptedProvider("ok")
    session = build_session(provider=provider)
    session.coordinator.hooks.register(
        PROMPT_SUBMIT, Sentry([HookResult.modify({"prompt": "HI"})])
    )
    async with session:
        await session.execute("hi")

    assert provider.last_messages == [("user", "HI")]


async def test_denying_a_request_fails_the_turn_and_names_who_did() -> None:
    session, worker = a_session(
        Sentry([HookResult.deny("no budget")]), event=PROVIDER_REQUEST
    )
    async with session:
        with pytest.raises(LLMError, match="denied by h0: no budget"):
            await session.execute("hi")

    assert worker.inputs == []


# -- modify


async def test_a_change_of_the_arguments_is_what_runs() -> None:
    session, worker = a_session(Sentry([HookResult.modify({"tool_input": {"x": 2}})]))
    recorder = Recorder.of(session.coordinator.hooks, "tool:post")

    assert await the_result(session) == "done"
    assert worker.inputs == [{"x": 2}]
    assert recorder.one("tool:post")["tool_input"] == {"x": 2}


async def test_a_change_that_does_not_fit_the_schema_runs_nothing() -> None:
    session, worker = a_session(
        Sentry([HookResult.modify({"tool_input": {"x": "two"}})])
    )

    text = await the_result(session)

    assert text.startswith("Error: Denied: a handler's change does not fit.")
    assert "x: expected an integer" in text
    assert worker.inputs == []


async def test_a_change_to_something_that_is_no_object_runs_nothing() -> None:
    session, worker = a_session(Sentry([HookResult.modify({"tool_input": None})]))

    problem = "DecisionError: modify of tool:pre, tool_input: expected an object, got NoneType"
    assert (
        await the_result(session)
        == f"Error: Denied by h0: handler 'h0' failed: {problem}"
    )
    assert worker.inputs == []


async def test_arguments_changed_in_place_run_nothing() -> None:
    """Deciders that ran before saw other arguments, so the change is no decision of theirs."""

    def meddle(event: str, data: dict[str, object]) -> None:
        tool_input = data["tool_input"]
        assert isinstance(tool_input, dict)
        tool_input["x"] = 9

    session, worker = a_session(meddle)

    problem = "TypeError: What a handler receives cannot be changed in place; a change is made with HookResult.modify"
    assert (
        await the_result(session)
        == f"Error: Denied by h0: handler 'h0' failed: {problem}"
    )
    assert worker.inputs == []


async def test_argument_mutations_never_reach_history() -> None:
    async def consume(input: JSONObject) -> object:
        nested = input.pop("nested")
        assert isinstance(nested, dict)
        nested["list"].append(3)
        return "done"

    arguments: JSONObject = {"nested": {"list": [1, 2]}}
    session = build_session(
        calling(call("work", arguments)), "end", tools=[Worker(function=consume)]
    )
    session.coordinator.hooks.register(TOOL_POST, Sentry())
    async with session:
        await session.execute("go")

        assert "{'list': [1, 2]}" in str(
            mounted_context(session.coordinator).messages[1]["tool_calls"]
        )
    assert arguments == {"nested": {"list": [1, 2]}}


async def test_deciders_that_ran_before_a_change_are_asked_again() -> None:
    first = Sentry([None, HookResult.deny("not with 2")])
    session, worker = a_session(
        first, Sentry([HookResult.modify({"tool_input": {"x": 2}})])
    )

    assert await the_result(session) == "Error: Denied by h0: not with 2"
    assert [data["tool_input"] for data in first.seen] == [{"x": 1}, {"x": 2}]
    assert worker.inputs == []


async def test_a_change_that_changes_nothing_asks_nobody_again() -> None:
    first = Sentry()
    session, worker = a_session(
        first,
        Sentry([HookResult.modify({"tool_input": {"x": 1}})]),
        Sentry([HookResult.modify({})]),
    )

    assert await the_result(session) == "done"
    assert len(first.seen) == 1
    assert worker.inputs == [{"x": 1}]


async def test_stream_sees_run_arguments_and_history_requested_ones() -> None:
    session, worker = a_session(Sentry([HookResult.modify({"tool_input": {"x": 2}})]))
    async with session:
        async with session.stream("go") as events:
            seen = [
                event.call
                async for event in events
                if isinstance(event, (ToolStarted, ToolFinished))
            ]
        messages = mounted_context(session.coordinator).messages

    assert [(ran.id, ran.arguments) for ran in seen] == [("id-work", {"x": 2})] * 2
    assert worker.inputs == [{"x": 2}]
    assert [block["input"] for block in messages[1]["content"]] == [{"x": 1}]  # type: ignore[union-attr,index,call-overload]


async def test_a_second_change_is_a_denial() -> None:
    first = Sentry([None, HookResult.modify({"tool_input": {"x": 3}})])
    session, worker = a_session(
        first, Sentry([HookResult.modify({"tool_input": {"x": 2}})])
    )

    assert (
        await the_result(session)
        == "Error: Denied by h0: h0 changed the data again after a later handler had"
    )
    assert worker.inputs == []


async def test_a_decider_that_repeats_its_own_change_agrees() -> None:
    again = HookResult.modify({"tool_input": {"x": 2}})
    session, worker = a_session(
        Sentry([again, again]), Sentry([HookResult.modify({"note": "more"})])
    )

    assert await the_result(session) == "done"
    assert worker.inputs == [{"x": 2}]


async def test_new_answer_replaces_old_one_of_same_handler_only() -> None:
    """Two handlers of one name: what one takes back, the other still wants."""
    hooks = HookRegistry()
    hooks.register(TOOL_PRE, Sentry([HookResult.ask("first?"), None]), name="guard")
    hooks.register(
        TOOL_PRE, Sentry([HookResult.modify({"tool_input": {}})]), name="change"
    )
    hooks.register(TOOL_PRE, Sentry([HookResult.ask("second?")]), name="guard")

    emission = await hooks.emit("tool:pre", {"tool_input": {"x": 1}})

    assert [(d.handler, d.result.action) for d in emission.decisions] == [
        ("change", "modify"),
        ("guard", "ask_user"),
    ]


async def test_a_new_answer_may_ask_where_the_old_one_did_not() -> None:
    hooks = HookRegistry()
    hooks.register(TOOL_PRE, Sentry([None, HookResult.ask("really?")]), name="guard")
    hooks.register(
        TOOL_PRE, Sentry([HookResult.modify({"tool_input": {}})]), name="change"
    )

    emission = await hooks.emit("tool:pre", {"tool_input": {"x": 1}})

    assert (emission.action, emission.decided_by) == ("ask_user", "guard")


@pytest.mark.parametrize("key", ["result", "tool_result"])
async def test_a_changed_result_is_what_the_model_gets(key: str) -> None:
    session, _ = a_session(
        Sentry([HookResult.modify({key: ToolResult(output="redacted")})]),
        event=TOOL_POST,
    )

    assert await the_result(session) == "redacted"


async def test_a_result_changed_to_something_else_is_not_taken() -> None:
    session, _ = a_session(
        Sentry([HookResult.modify({"result": "text", "note": 1})]), event=TOOL_POST
    )

    assert await the_result(session) == "done"


async def test_a_withheld_result_does_not_reach_the_model() -> None:
    session, worker = a_session(Sentry([HookResult.deny("secret")]), event=TOOL_POST)

    assert await the_result(session) == "Error: Withheld by h0: secret"
    assert worker.inputs == [{"x": 1}]


# -- injections and messages


async def test_a_lasting_injection_is_stored_with_its_source() -> None:
    session, _ = a_session(
        Sentry([HookResult.inject("Mind\x00 the gap\ud800.", role="user")]),
        event=TOOL_POST,
    )

    await the_result(session)

    (message,) = [
        m
        for m in mounted_context(session.coordinator).messages
        if m["content"] == "Mind the gap."
    ]
    metadata = message["metadata"]
    assert isinstance(metadata, dict)
    assert message["role"] == "user"
    assert (metadata["source"], metadata["hook_name"], metadata["event"]) == (
        "hook",
        "h0",
        "tool:post",
    )
    assert metadata["timestamp"]


@pytest.mark.parametrize(
    "event", [PROMPT_SUBMIT, PROVIDER_REQUEST, PROVIDER_RESPONSE, TOOL_PRE, TOOL_POST]
)
async def test_an_ephemeral_injection_is_in_the_next_request_only(event: str) -> None:
    provider = ScriptedProvider(
        calling(call("work", {"x": 1})), calling(call("work", {"x": 1})), "end"
    )
    session = build_session(provider=provider, tools=[Worker()])
    session.coordinator.hooks.register(
        event, Sentry([HookResult.inject("psst", ephemeral=True)])
    )
    async with session:
        await session.execute("go")

        assert "psst" not in str(mounted_context(session.coordinator).messages)
    seen = [
        "psst" in [message.text for message in request.messages]
        for request in provider.requests
    ]
    assert seen == (
        [True, False, False]
        if event in (PROMPT_SUBMIT, PROVIDER_REQUEST)
        else [False, True, False]
    )


async def test_ephemeral_injection_of_failed_tool_is_in_next_request() -> None:
    provider = ScriptedProvider(calling(call("nothing")), "end")
    session = build_session(provider=provider)
    session.coordinator.hooks.register(
        TOOL_ERROR, Sentry([HookResult.inject("try another", ephemeral=True)])
    )
    async with session:
        await session.execute("go")

    assert provider.last_messages[-1] == ("system", "try another")


async def test_an_injection_may_stand_in_the_last_tool_result() -> None:
    provider = ScriptedProvider(calling(call("work")), "end")
    hint = HookResult.inject(
        "be brief", ephemeral=True, append_to_last_tool_result=True
    )
    session = build_session(provider=provider, tools=[Worker()])
    session.coordinator.hooks.register(TOOL_POST, Sentry([hint]))
    async with session:
        await session.execute("go")

        assert only_result(mounted_context(session.coordinator).messages) == "done"
    assert provider.last_messages[-1] == ("tool", "done\n\nbe brief")


async def test_without_a_tool_result_such_an_injection_is_a_message() -> None:
    provider = ScriptedProvider("end")
    hint = HookResult.inject(
        "be brief", ephemeral=True, append_to_last_tool_result=True
    )
    session = build_session(provider=provider)
    session.coordinator.hooks.register(PROVIDER_REQUEST, Sentry([hint]))
    async with session:
        await session.execute("go")

    assert provider.last_messages == [("user", "go"), ("system", "be brief")]


async def test_nothing_is_injected_for_a_denied_operation() -> None:
    provider = ScriptedProvider(calling(call("work")), "end")
    session = build_session(provider=provider, tools=[Worker()])
    session.coordinator.hooks.register(TOOL_PRE, Sentry([HookResult.inject("first")]))
    session.coordinator.hooks.register(TOOL_PRE, Sentry([HookResult.deny("no")]))
    async with session:
        await session.execute("go")

        assert "first" not in str(mounted_context(session.coordinator).messages)
    assert [text for _, text in provider.last_messages if "first" in text] == []


async def fail(input: JSONObject) -> object:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    "event",
    [
        SESSION_START,
        PROMPT_SUBMIT,
        PROVIDER_REQUEST,
        PROVIDER_RESPONSE,
        TOOL_PRE,
        TOOL_POST,
        TOOL_ERROR,
    ],
)
async def test_injection_beyond_limit_is_truncated_and_reported(
    event: str, reports: Reports
) -> None:
    worker = Worker(function=fail) if event == TOOL_ERROR else Worker()
    session = build_session(
        calling(call("work")),
        "end",
        tools=[worker],
        settings={"injection_size_limit": 100},
    )
    sentry = Sentry([HookResult.inject("x" * 101)])
    async with session:
        session.coordinator.hooks.register(event, sentry, name="flood")
        assert await session.execute("go") == "end"

        stored = [
            message["content"]
            for message in mounted_context(session.coordinator).messages
        ]
    (text,) = [text for text in stored if "xxx" in str(text)]
    assert text == "x" * 46 + "\n[truncated: 101 characters, at most 100 are injected]"
    (reported,) = [
        entry for entry in reports if entry["event"] == "injection.truncated"
    ]
    assert (
        reported["hook"],
        reported["hook_event"],
        reported["characters"],
        reported["limit"],
    ) == (
        "flood",
        event,
        101,
        100,
    )


async def test_ephemeral_injection_beyond_limit_is_truncated_too() -> None:
    provider = ScriptedProvider(calling(call("work")), "end")
    session = build_session(
        provider=provider, tools=[Worker()], settings={"injection_size_limit": 10}
    )
    async with session:
        session.coordinator.hooks.register(
            TOOL_POST, Sentry([HookResult.inject("y" * 11, ephemeral=True)])
        )
        await session.execute("go")

    assert provider.last_messages[-1] == ("system", "y" * 10)


async def test_injection_without_limit_may_be_as_long_as_it_likes() -> None:
    session, _ = a_session(
        Sentry([HookResult.inject("x" * 99)]), settings={"injection_size_limit": None}
    )

    assert await the_result(session) == "done"


async def test_stray_message_fields_reach_neither_limit_nor_model() -> None:
    provider = ScriptedProvider(calling(call("work")), "end")
    session = build_session(
        provider=provider, tools=[Worker()], settings={"injection_size_limit": 4}
    )
    session.coordinator.hooks.register(
        TOOL_POST, Sentry([HookResult.inject("m\x1bi\x00n\x7fd", ephemeral=True)])
    )
    session.coordinator.hooks.register(TOOL_POST, Sentry([HookResult.inject("\x00")]))
    async with session:
        await session.execute("go")

        assert mounted_context(session.coordinator).roles == [
            "user",
            "assistant",
            "tool",
            "assistant",
        ]
    assert provider.last_messages[-1] == ("system", "mind")


async def test_injection_with_unknown_role_is_refused_before_storage() -> None:
    coordinator, context = ModuleCoordinator(), MemoryContext()
    await coordinator.mount("context", context)
    odd = HookResult.inject("note", role="tool")  # type: ignore[arg-type]

    problem = "Hook 'me' injects with the role 'tool' on app:tick; known: system, user, assistant"
    with pytest.raises(ValueError, match=problem):
        await coordinator.process_hook_result(odd, "app:tick", "me")

    assert context.messages == []


async def test_injections_beyond_the_turn_s_budget_are_reported(
    reports: Reports,
) -> None:
    settings = {"injection_budget_per_turn": 5}
    session, _ = a_session(
        Sentry([HookResult.inject("x" * 20), HookResult.inject("x" * 4)]),
        settings=settings,
    )
    async with session:
        await session.execute("go")
        await session.coordinator.process_hook_result(
            HookResult.inject("x" * 4), "mine", "me"
        )

    (report,) = reports
    assert (report["event"], report["hook"], report["tokens"], report["budget"]) == (
        "injection.over_budget",
        "me",
        6,
        5,
    )


async def test_a_turns_injections_may_be_counted_anew(reports: Reports) -> None:
    session, _ = a_session(settings={"injection_budget_per_turn": 5})
    async with session:
        await session.execute("go")
        for _ in range(2):
            session.coordinator.reset_turn()
            await session.coordinator.process_hook_result(
                HookResult.inject("x" * 20), "mine", "me"
            )

    assert reports == []


async def test_messages_for_the_person_are_shown_with_their_source() -> None:
    screen = Screen()
    session, _ = a_session(
        Sentry(
            [
                HookResult(
                    user_message="hello",
                    user_message_level="warning",
                    user_message_source="mine",
                )
            ]
        ),
        Sentry([HookResult(action="deny", reason="no", user_message="stop")]),
        display=screen,
    )

    await the_result(session)

    assert screen.shown == [
        ("hello", "warning", "hook:mine"),
        ("stop", "info", "hook:h1"),
    ]


async def test_a_display_that_fails_changes_nothing(reports: Reports) -> None:
    session, _ = a_session(
        Sentry([HookResult(user_message="hello")]),
        display=Screen(error=OSError("closed")),
    )

    assert await the_result(session) == "done"
    assert [report["event"] for report in reports] == ["display.failed"]


async def test_without_a_display_messages_are_logged(reports: Reports) -> None:
    session, _ = a_session(
        Sentry([HookResult(user_message="hello", user_message_level="error")])
    )

    assert await the_result(session) == "done"
    (report,) = reports
    assert (report["event"], report["source"], report["level"], report["message"]) == (
        "hook.message",
        "h0",
        "error",
        "hello",
    )


@pytest.mark.parametrize("is_heard", [False, True], ids=["alone", "behind a handler"])
@pytest.mark.parametrize(
    ("level", "shown"), [("warning", "warning"), ("shout", "info"), (None, "info")]
)
async def test_what_a_module_notifies_the_person_of_is_shown(
    is_heard: bool, level: str | None, shown: str
) -> None:
    screen = Screen()
    coordinator = ModuleCoordinator(display_system=screen)
    said = "watered"
    if is_heard:
        said = "watered twice"
        coordinator.hooks.register(
            USER_NOTIFICATION, Sentry([HookResult.modify({"message": said})])
        )
    data = {"message": "watered", "source": "garden"}
    if level is not None:
        data["level"] = level

    await coordinator.hooks.emit(str(USER_NOTIFICATION), data)

    assert screen.shown == [(said, shown, "hook:garden")]
    assert coordinator.hooks.has_handlers(USER_NOTIFICATION)
    assert "display" not in repr(coordinator.hooks.list_handlers())


async def test_an_asynchronous_display_is_awaited() -> None:
    shown: list[tuple[str, str, str]] = []

    class Remote:
        async def show_message(
            self, message: str, level: str, source: str = "hook", /
        ) -> None:
            await anyio.lowlevel.checkpoint()
            shown.append((message, level, source))

    session, _ = a_session(Sentry([HookResult(user_message="hello")]), display=Remote())

    assert await the_result(session) == "done"
    assert shown == [("hello", "info", "hook:h0")]


async def test_hanging_display_delays_turn_no_longer_than_allowed(
    reports: Reports,
) -> None:
    class Stuck:
        async def show_message(
            self, message: str, level: str, source: str = "hook", /
        ) -> None:
            await anyio.sleep_forever()

    limits: JSONObject = {"hook_timeout": 0.01}
    session, _ = a_session(
        Sentry([HookResult(user_message="hello")]), display=Stuck(), limits=limits
    )

    assert await the_result(session) == "done"
    assert [(report["event"], report["seconds"]) for report in reports] == [
        ("display.timed_out", 0.01)
    ]


async def test_an_application_s_own_event_can_be_processed() -> None:
    coordinator = ModuleCoordinator()
    context = MemoryContext()
    await coordinator.mount("context", context)

    emission = await coordinator.process_hook_result(
        HookResult.inject("note"), "app:tick", "ticker"
    )

    assert emission.action == "continue"
    assert [message["content"] for message in context.messages] == ["note"]


async def test_without_context_injection_is_charged_and_not_stored() -> None:
    processor = DecisionProcessor(HookRegistry())

    assert (await processor.process(HookResult.inject("note"), "x")).decisions == []
    assert (await processor.process(Emission({}), "x")).decisions == ()


async def test_the_approver_and_the_display_may_be_set_later() -> None:
    coordinator = ModuleCoordinator()
    person, screen = Person(), Screen()
    assert (coordinator.approval_system, coordinator.display_system) == (None, None)

    coordinator.approval_system, coordinator.display_system = person, screen
    await coordinator.process_hook_result(
        HookResult(action="ask_user", user_message="hi"), "x"
    )

    assert coordinator.approval_system is person
    assert coordinator.display_system is screen
    assert len(person.questions) == len(screen.shown) == 1
