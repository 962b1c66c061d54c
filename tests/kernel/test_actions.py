"""What an event takes of its handlers: what cannot be carried out is a denial or an error, and never told as done."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import pytest

from amplifier import HookRegistry
from amplifier.kernel.hooks.actions import (
    EVENT_ACTIONS,
    DecisionError,
    actions_of,
    checked_result,
)
from amplifier_sdk.decisions import HOOK_DECIDED
from amplifier_sdk.errors import LLMError
from amplifier_sdk.events import (
    ALL_EVENTS,
    APPROVAL_GRANTED,
    CONTENT_BLOCK_END,
    PROMPT_SUBMIT,
    PROVIDER_ERROR,
    PROVIDER_REQUEST,
    PROVIDER_RESOLVE,
    SESSION_END,
    SESSION_START,
    TOOL_ERROR,
    TOOL_POST,
    TOOL_PRE,
    USER_NOTIFICATION,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import HookAction, HookResult, ToolResult
from tests.doubles import (
    ScriptedProvider,
    Sentry,
    Worker,
    build_session,
    call,
    calling,
    mounted_context,
    only_result,
)

Reports = list[MutableMapping[str, object]]

ANSWERS: Mapping[HookAction, HookResult] = {
    "deny": HookResult.deny("no"),
    "ask_user": HookResult.ask("sure?"),
    "inject_context": HookResult.inject("note"),
    "modify": HookResult.modify({"other": 1}),
}


def test_every_canonical_event_says_what_it_takes() -> None:
    assert EVENT_ACTIONS.keys() >= {str(event) for event in ALL_EVENTS}
    assert all(
        {"continue", "modify"} <= taken.actions for taken in EVENT_ACTIONS.values()
    )
    assert actions_of("mine:event").actions >= {*ANSWERS}


@pytest.mark.parametrize("event", sorted(EVENT_ACTIONS))
@pytest.mark.parametrize("action", ANSWERS)
async def test_unsupported_action_is_error_and_no_decision(
    event: str, action: HookAction, reports: Reports
) -> None:
    hooks, heard = HookRegistry(), Sentry()
    hooks.register(event, Sentry([ANSWERS[action]]), name="wrong", decides=False)
    hooks.register(event, heard, name="next", decides=False)

    emission = await hooks.emit(event, {"a": 1})

    if action in actions_of(event).actions:
        assert [decision.result for decision in emission.decisions] == [ANSWERS[action]]
        assert reports == []
        return
    assert ([*emission.decisions], emission.action, emission.data["a"]) == (
        [],
        "continue",
        1,
    )
    assert len(heard.seen) == 1
    (reported,) = reports
    assert (reported["event"], reported["handler"], reported["hook_event"]) == (
        "hook.failed",
        "wrong",
        event,
    )


@pytest.mark.parametrize(
    "event", [TOOL_PRE, PROMPT_SUBMIT, TOOL_POST, APPROVAL_GRANTED]
)
async def test_what_a_blocking_hook_decides_in_vain_denies(event: str) -> None:
    hooks = HookRegistry()
    hooks.register(
        event, Sentry([HookResult(action="modify")]), name="empty", decides=True
    )

    emission = await hooks.emit(event, {})

    problem = "modify needs data, an object of what changes; got NoneType"
    assert emission.reason == f"handler 'empty' failed: DecisionError: {problem}"


@pytest.mark.parametrize("event", [SESSION_END, USER_NOTIFICATION, SESSION_START])
async def test_failing_blocking_hook_denies_only_where_possible(
    event: str,
) -> None:
    hooks, heard = HookRegistry(), Sentry()
    hooks.register(event, Sentry([HookResult.deny("no")]), name="guard", decides=True)
    hooks.register(event, heard, name="next")

    emission = await hooks.emit(event, {})

    assert (emission.action, len(heard.seen)) == ("continue", 1)


MISFITS: list[tuple[str, JSONObject, str]] = [
    (
        PROMPT_SUBMIT,
        {"prompt": 7},
        "modify of prompt:submit, prompt: expected a text, got int",
    ),
    (
        PROMPT_SUBMIT,
        {"metadata": []},
        "modify of prompt:submit, metadata: expected an object, got list",
    ),
    (
        PROMPT_SUBMIT,
        {"media": "x"},
        "modify of prompt:submit, media: expected the descriptions of the prompt's media",
    ),
    (
        PROVIDER_REQUEST,
        {"messages": "x"},
        "modify of provider:request, messages: expected a list of messages, got str",
    ),
    (
        PROVIDER_REQUEST,
        {"messages": [1]},
        "modify of provider:request, messages: expected an object, got int",
    ),
    (
        PROVIDER_REQUEST,
        {"model": "x"},
        "modify cannot change 'model' of provider:request; it can change messages",
    ),
    (
        PROVIDER_RESOLVE,
        {"provider": None},
        "modify of provider:resolve, provider: expected a text, got NoneType",
    ),
    (
        PROVIDER_RESOLVE,
        {"model": 1},
        "modify of provider:resolve, model: expected a text, got int",
    ),
    (
        TOOL_PRE,
        {"tool_name": "rm"},
        "modify cannot change 'tool_name' of tool:pre; it can change tool_input",
    ),
    (
        TOOL_POST,
        {"result": "text"},
        "modify of tool:post, result: expected an object, got str",
    ),
    (
        TOOL_POST,
        {"tool_result": {}},
        "modify of tool:post, tool_result: expected a ToolResult or its fields, got an",
    ),
    (
        TOOL_POST,
        {"result": {"v": 1}},
        "modify of tool:post, result: This is no ToolResult: v: unknown",
    ),
]


@pytest.mark.parametrize(("event", "data", "problem"), MISFITS)
def test_a_change_that_does_not_fit_is_refused(
    event: str, data: JSONObject, problem: str
) -> None:
    with pytest.raises(DecisionError) as caught:
        checked_result(event, HookResult.modify(data), {"provider": "p", "model": None})

    assert str(caught.value).startswith(problem)


def test_a_role_that_no_message_has_is_refused() -> None:
    with pytest.raises(
        DecisionError, match="role 'tool'; known: system, user, assistant"
    ):
        checked_result(TOOL_POST, HookResult.inject("x", role="tool"), {})  # type: ignore[arg-type]


def test_a_model_that_was_chosen_may_be_left_to_the_provider() -> None:
    chosen = {"provider": "p", "model": "m"}

    changed = checked_result(
        PROVIDER_RESOLVE, HookResult.modify({"model": None}), chosen
    )

    assert changed == HookResult.modify({"model": None})


@pytest.mark.parametrize("event", [PROVIDER_REQUEST, PROVIDER_RESOLVE])
def test_what_a_handler_sends_back_as_it_was_is_no_change(event: str) -> None:
    shown = {"provider": "p", "model": None, "messages": [{"role": "user"}], "other": 1}

    result = HookResult.modify({**shown, "messages": [{"role": "user"}]})
    assert checked_result(event, result, shown).data == shown


DATA_FORMS: list[tuple[JSONObject, JSONValue]] = [
    ({"result": {"success": True, "output": "redacted"}}, "redacted"),
    ({"tool_result": {"output": {"a": 1}}}, '{"a": 1}'),
    (
        {"result": {"success": False, "error": {"message": "withheld"}}},
        "Error: withheld",
    ),
    ({"result": {"is_error": True, "output": "withheld"}}, "Error: withheld"),
    (
        {"result": {"content": [{"type": "text", "text": "redacted"}]}},
        [{"type": "text", "text": "redacted"}],
    ),
    (
        {
            "result": {"success": True, "output": "done"},
            "tool_result": {"output": "redacted"},
        },
        "redacted",
    ),
]


@pytest.mark.parametrize(("data", "text"), DATA_FORMS)
@pytest.mark.parametrize("decides", [True, False])
async def test_a_result_may_be_changed_by_data(
    data: JSONObject, text: JSONValue, decides: bool
) -> None:
    session = build_session(calling(call("work")), "end", tools=[Worker()])
    reported, later = Sentry(), Sentry()
    async with session:
        hooks = session.coordinator.hooks
        hooks.register(
            TOOL_POST,
            Sentry([HookResult.modify(data)]),
            name="external",
            decides=decides,
        )
        hooks.register(TOOL_POST, later, 50)
        hooks.register(HOOK_DECIDED, reported)
        await session.execute("go")

        (result,) = [
            each
            for each in mounted_context(session.coordinator).messages
            if each["role"] == "tool"
        ]
    assert result["content"] == text
    seen, decided = later.seen[0], reported.seen[0]
    changed = decided["changed"]
    assert isinstance(changed, dict)
    assert {key: seen[key] for key in changed} == changed
    assert all(isinstance(value, ToolResult) for value in changed.values())


@pytest.mark.parametrize("decides", [True, False])
async def test_unreadable_result_change_withholds_or_reports(
    decides: bool, reports: Reports
) -> None:
    session = build_session(calling(call("work")), "end", tools=[Worker()])
    sentry = Sentry()
    async with session:
        hooks = session.coordinator.hooks
        hooks.register(
            TOOL_POST,
            Sentry([HookResult.modify({"result": 3})]),
            name="odd",
            decides=decides,
        )
        hooks.register(HOOK_DECIDED, sentry)
        await session.execute("go")

        result = only_result(mounted_context(session.coordinator).messages)
    assert [entry["event"] for entry in reports] == ["hook.failed"]
    actions = [data["action"] for data in sentry.seen]
    assert (result.startswith("Error: Withheld by odd: "), actions) == (
        (True, ["deny"]) if decides else (False, [])
    )


async def test_a_changed_request_is_what_the_model_reads() -> None:
    provider = ScriptedProvider("end")
    session = build_session(provider=provider)
    later = Sentry()

    def shorten(event: str, data: dict[str, object]) -> HookResult:
        return HookResult.modify({"messages": [{"role": "user", "content": "less"}]})

    async with session:
        session.coordinator.hooks.register(PROVIDER_REQUEST, shorten)
        session.coordinator.hooks.register(PROVIDER_REQUEST, later, 50)
        session.coordinator.hooks.register(
            PROVIDER_REQUEST, Sentry([HookResult.inject("more", ephemeral=True)]), 60
        )
        await session.execute("go")

        assert mounted_context(session.coordinator).messages[0]["content"] == "go"
    assert provider.last_messages == [("user", "less"), ("system", "more")]
    assert later.seen[0]["messages"] == [{"role": "user", "content": "less"}]


async def test_a_request_that_cannot_be_changed_so_is_denied() -> None:
    session = build_session("end")
    async with session:
        guard = Sentry([HookResult.modify({"model": "other"})])
        session.coordinator.hooks.register(
            PROVIDER_REQUEST, guard, name="guard", decides=True
        )
        with pytest.raises(
            LLMError,
            match=r"denied by guard: .* cannot change 'model' of provider:request",
        ):
            await session.execute("go")


async def test_a_prompt_that_is_no_text_is_denied() -> None:
    session = build_session("end")
    async with session:
        session.coordinator.hooks.register(
            PROMPT_SUBMIT, Sentry([HookResult.modify({"prompt": 7})]), name="odd"
        )

        answer = await session.execute("go")
    assert answer.startswith(
        "Operation denied: handler 'odd' failed: DecisionError: modify of prompt:submit, prompt:"
    )


def test_events_that_only_tell_take_no_question() -> None:
    for event in (CONTENT_BLOCK_END, PROVIDER_ERROR, TOOL_ERROR):
        assert "ask_user" not in actions_of(event).actions
