"""What handlers are told is theirs to read: nothing that they do to it reaches the history, the model or a tool."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from amplifier_sdk.events import (
    PROVIDER_REQUEST,
    PROVIDER_RESPONSE,
    TOOL_POST,
    TOOL_PRE,
)
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import HookResult, ToolResult
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

Meddle = Callable[[dict[str, object]], object]


def _spoil_messages(data: dict[str, object]) -> None:
    data["messages"][0]["content"] = "spoilt"  # type: ignore[index]  # as a handler without types does


def _spoil_result(data: dict[str, object]) -> None:
    data["result"].output["v"] = "spoilt"  # type: ignore[attr-defined]  # likewise


def _spoil_copy(data: dict[str, object]) -> None:
    dict(data["result"].output)["deep"].append("spoilt")  # type: ignore[attr-defined]  # likewise


def _spoil_response(data: dict[str, object]) -> None:
    data["response"].tool_calls[0].arguments["x"] = "spoilt"  # type: ignore[attr-defined]  # likewise


def _spoil_input(data: dict[str, object]) -> None:
    data["tool_input"]["nested"]["y"] = "spoilt"  # type: ignore[index]  # likewise


@pytest.mark.parametrize(
    ("event", "meddle"),
    [
        (PROVIDER_REQUEST, _spoil_messages),
        (PROVIDER_RESPONSE, _spoil_response),
        (TOOL_PRE, _spoil_input),
        (TOOL_POST, _spoil_result),
        (TOOL_POST, _spoil_copy),
    ],
)
async def test_an_observer_changes_nothing_in_place(event: str, meddle: Meddle) -> None:
    async def work(input: JSONObject) -> object:
        return ToolResult(output={"v": 1, "deep": [1]})

    provider = ScriptedProvider(
        calling(call("work", {"x": 1, "nested": {"y": 2}})), "end"
    )
    worker = Worker(function=work)
    session = build_session(provider=provider, tools=[worker])

    def observe(_: str, data: dict[str, object]) -> None:
        meddle(data)

    async with session:
        session.coordinator.hooks.register(event, observe, decides=False)
        assert await session.execute("go") == "end"

        stored = json.dumps(list(mounted_context(session.coordinator).messages))
    assert worker.inputs == [{"x": 1, "nested": {"y": 2}}]
    assert "spoilt" not in stored + str(provider.requests)
    assert '{\\"v\\": 1, \\"deep\\": [1]}' in stored


async def test_views_returned_by_handler_are_mutable_for_tool() -> None:
    async def work(input: JSONObject) -> object:
        input["nested"]["list"].append(3)  # type: ignore[index, union-attr, call-overload]
        return ToolResult(output=input["nested"])

    session = build_session(
        calling(call("work", {"nested": {"list": [1, 2]}})),
        "end",
        tools=[Worker(function=work)],
    )

    def pass_on(_: str, data: dict[str, object]) -> HookResult:
        given = data["tool_input"]
        assert isinstance(given, dict)
        return HookResult.modify({"tool_input": {**given, "more": [given["nested"]]}})

    async with session:
        session.coordinator.hooks.register(TOOL_PRE, pass_on)
        await session.execute("go")

        stored = json.dumps(list(mounted_context(session.coordinator).messages))
    assert '{\\"list\\": [1, 2, 3]}' in stored


async def test_a_change_that_holds_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    session = build_session(calling(call("work")), "end", tools=[Worker()])
    async with session:
        guard = Sentry([HookResult.modify({"tool_input": {"x": endless}})])
        session.coordinator.hooks.register(TOOL_PRE, guard, name="endless")
        await session.execute("go")

        result = only_result(mounted_context(session.coordinator).messages)
    assert result.startswith(
        "Error: Denied by endless: handler 'endless' failed: RecursionError"
    )
