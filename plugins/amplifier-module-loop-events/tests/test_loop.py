"""The loop in a session: handlers choose tools and providers, refuse, and hear of a plan and of failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio
import pytest

from amplifier import AmplifierSession, ModuleLoader
from amplifier.testing import (
    EventRecorder,
    MockContextManager,
    MockTool,
    ScriptedProvider,
    mounting,
)
from amplifier_kit.scripted import answer, call
from amplifier_module_loop_events import EventsLoop
from amplifier_sdk import ConfigError, HookResult, JSONValue, LLMError
from amplifier_sdk.errors import RateLimitError

Handler = Callable[[str, dict[str, object]], HookResult]


def echoing(name: str) -> MockTool:
    return MockTool(name, lambda input: f"{name}: {input.get('x')}")


def session(
    *providers: ScriptedProvider,
    loop: Mapping[str, JSONValue] | None = None,
    limits: Mapping[str, int] | None = None,
) -> AmplifierSession:
    """Make a session with the tools `fast` and `slow`, which answer with their names and inputs."""
    tools = {name: echoing(name) for name in ("fast", "slow")}
    modules: dict[str, object] = {
        "loop-events": EventsLoop,
        "context": mounting(MockContextManager()),
        **{
            f"provider-{number}": mounting(made)
            for number, made in enumerate(providers)
        },
        **{f"tool-{name}": mounting(made) for name, made in tools.items()},
    }
    plan: dict[str, object] = {
        "session": {
            "orchestrator": "loop-events",
            "context": "context",
            "limits": limits or {},
        },
        "orchestrator": {"config": dict(loop or {})},
        "providers": [name for name in modules if name.startswith("provider-")],
        "tools": [name for name in modules if name.startswith("tool-")],
    }
    return AmplifierSession(plan, ModuleLoader(modules=modules))


def results(opened: AmplifierSession) -> Mapping[JSONValue, JSONValue]:
    memory = opened.coordinator.context
    assert isinstance(memory, MockContextManager)
    return memory.results


def two_calls() -> ScriptedProvider:
    return ScriptedProvider(
        answer(call("slow", {"x": 1}, id="one"), call("fast", {"x": 2}, id="two")),
        "Done.",
    )


def for_tool(name: str, result: HookResult) -> Handler:
    """Make a handler that answers when one tool is asked for."""
    return lambda event, data: result if data["tool"] == name else HookResult()


async def test_without_handlers_the_tools_run_that_the_model_called() -> None:
    async with session(two_calls()) as opened:
        assert await opened.execute("Hello") == "Done."
        assert results(opened) == {"one": "slow: 1", "two": "fast: 2"}


async def test_tool_with_most_votes_runs_and_answers_call() -> None:
    provider = two_calls()
    opened = session(provider)
    hooks = opened.coordinator.hooks
    vote = HookResult(data={"choice": "fast", "score": 2, "reason": "it is cheaper"})
    hooks.register("decision:tool_resolution", for_tool("slow", vote))
    recorder = EventRecorder.of(hooks, "tool:*")
    async with opened:
        await opened.execute("Hello")

        assert results(opened) == {"one": "fast: 1", "two": "fast: 2"}
        memory = opened.coordinator.context
        assert isinstance(memory, MockContextManager)
        assert [m["name"] for m in memory.messages if m["role"] == "tool"] == [
            "slow",
            "fast",
        ]
    keys = ("tool", "requested", "tool_call_id", "reason", "score")
    assert [
        tuple(data.get(key) for key in keys) for data in recorder.data("tool:selected")
    ] == [
        ("fast", "slow", "one", "it is cheaper", 2.0),
        ("fast", "fast", "two", None, None),
    ]
    assert [data["tool_name"] for data in recorder.data("tool:pre")] == ["fast", "fast"]


async def test_handlers_asked_about_call_with_all_they_need_to_know() -> None:
    opened = session(
        ScriptedProvider(answer(call("slow", {"x": 1}, id="one")), "Done.")
    )
    recorder = EventRecorder.of(opened.coordinator.hooks)
    async with opened:
        await opened.execute("Hello")

    for event in ("decision:tool_resolution", "tool:selecting"):
        data = recorder.one(event)
        assert {
            key: data[key]
            for key in ("tool", "tool_input", "tool_call_id", "candidates")
        } == {
            "tool": "slow",
            "tool_input": {"x": 1},
            "tool_call_id": "one",
            "candidates": ["fast", "slow"],
        }
    order = [
        name for name in recorder.names if name.split(":")[0] in ("decision", "tool")
    ]
    assert order[1:-1] == [
        "decision:tool_resolution",
        "tool:selecting",
        "tool:selected",
        "tool:pre",
        "tool:post",
    ]


async def test_a_handler_of_the_selection_has_the_last_word() -> None:
    opened = session(two_calls())
    hooks = opened.coordinator.hooks
    vote = HookResult(data={"choice": "fast", "score": 2})
    hooks.register("decision:tool_resolution", for_tool("slow", vote))
    hooks.register(
        "tool:selecting", for_tool("fast", HookResult.modify({"tool": "slow"}))
    )
    recorder = EventRecorder.of(hooks, "tool:selected")
    async with opened:
        await opened.execute("Hello")

        assert results(opened) == {"one": "slow: 1", "two": "slow: 2"}
    assert [
        (d["tool"], d["requested"], d.get("score")) for d in recorder.data("*")
    ] == [
        ("slow", "slow", None),
        ("slow", "fast", None),
    ]


async def test_a_denied_call_is_answered_without_being_run() -> None:
    opened = session(two_calls())
    opened.coordinator.hooks.register(
        "tool:selecting", for_tool("slow", HookResult.deny("too slow")), name="judge"
    )
    recorder = EventRecorder.of(opened.coordinator.hooks)
    async with opened:
        await opened.execute("Hello")

        assert results(opened) == {
            "one": "Error: Denied by judge: too slow",
            "two": "fast: 2",
        }
    assert [data["tool_name"] for data in recorder.data("tool:pre")] == ["fast"]
    assert [data["tool"] for data in recorder.data("tool:selected")] == ["fast"]


@pytest.mark.parametrize(
    ("tool", "result"), [("none", "Error: There is no tool 'none'"), (7, "slow: 1")]
)
async def test_a_selection_that_is_no_tool_is_an_error_result(
    tool: object, result: str
) -> None:
    opened = session(two_calls())
    opened.coordinator.hooks.register(
        "tool:selecting", for_tool("slow", HookResult.modify({"tool": tool}))
    )
    async with opened:
        await opened.execute("Hello")

        assert str(results(opened)["one"]).startswith(result)


async def test_failed_calls_are_told_whatever_kept_them_from_result() -> None:
    provider = ScriptedProvider(
        answer(
            call("none", id="one"), call("slow", id="two"), call("fast", id="three")
        ),
        "Done.",
    )
    opened = session(provider)
    opened.coordinator.hooks.register(
        "tool:selecting", for_tool("slow", HookResult.deny("no"))
    )
    recorder = EventRecorder.of(opened.coordinator.hooks, "error:tool")
    async with opened:
        await opened.execute("Hello")

    reported = [(data["tool"], data["tool_call_id"]) for data in recorder.data("*")]
    assert reported == [("none", "one"), ("slow", "two")]
    assert all(
        isinstance(error := data["error"], dict) and error["message"]
        for data in recorder.data("*")
    )


async def test_the_provider_with_the_most_votes_is_asked() -> None:
    first, second = (
        ScriptedProvider("First.", name="first"),
        ScriptedProvider("Second.", name="second"),
    )
    opened = session(first, second)
    candidates: list[object] = []

    def vote(event: str, data: dict[str, object]) -> HookResult:
        candidates.append(data["candidates"])
        return HookResult(data={"choice": "second", "score": 1})

    opened.coordinator.hooks.register("decision:provider_resolution", vote)
    async with opened:
        assert await opened.execute("Hello") == "Second."
    assert candidates == [["first", "second"]]


async def test_a_provider_s_failure_is_told_and_fails_the_turn() -> None:
    opened = session(ScriptedProvider(RateLimitError("too many requests")))
    recorder = EventRecorder.of(opened.coordinator.hooks, "error:provider")
    async with opened:
        with pytest.raises(RateLimitError):
            await opened.execute("Hello")

    data = recorder.one("*")
    assert (data["provider"], data["retryable"]) == ("scripted", True)
    assert data["error"] == {"type": "RateLimitError", "message": "too many requests"}


async def test_unheard_provider_failure_still_fails_turn() -> None:
    async with session(ScriptedProvider(LLMError("down"))) as opened:
        with pytest.raises(LLMError, match="down"):
            await opened.execute("Hello")


async def test_a_plan_comes_first_where_one_is_wanted() -> None:
    provider = ScriptedProvider(
        "1. Look. 2. Answer.", answer(call("fast", {"x": 1})), "Done."
    )
    opened = session(provider, loop={"planning": True})
    recorder = EventRecorder.of(opened.coordinator.hooks, "p*:*")
    async with opened:
        assert await opened.execute("Hello") == "Done."

    assert recorder.names == [
        *(
            "prompt:submit",
            "plan:start",
            "provider:request",
            "provider:response",
            "plan:end",
        ),
        *("provider:request", "provider:response") * 2,
        "prompt:complete",
    ]
    assert recorder.one("plan:start")["prompt"] == "Hello"
    assert recorder.one("plan:end")["plan"] == "1. Look. 2. Answer."
    plan, work, _ = provider.requests
    assert (plan.tool_choice, work.tool_choice) == ("none", None)
    assert [(m.role, m.text) for m in plan.messages][-1][1].startswith(
        "Before you begin: write a short plan"
    )
    assert [(m.role, m.text) for m in work.messages] == [
        ("user", "Hello"),
        ("assistant", "1. Look. 2. Answer."),
        ("user", "Now carry out the plan."),
    ]


async def test_without_planning_there_is_no_plan() -> None:
    opened = session(ScriptedProvider("Done."))
    recorder = EventRecorder.of(opened.coordinator.hooks, "plan:*")
    async with opened:
        await opened.execute("Hello")
    assert recorder.names == []


async def test_model_that_calls_tools_in_plan_told_to_call_them_later() -> None:
    provider = ScriptedProvider(answer("Plan.", call("fast", id="early")), "Done.")
    async with session(provider, loop={"planning": True}) as opened:
        assert await opened.execute("Hello") == "Done."
        assert str(results(opened)["early"]).startswith(
            "Error: Not run: this was the plan"
        )


async def test_a_limit_that_the_plan_reaches_makes_it_the_answer() -> None:
    opened = session(
        ScriptedProvider("Only a plan."),
        loop={"planning": True},
        limits={"iterations": 1},
    )
    async with opened:
        assert (await opened.execute("Hello")).startswith(
            "Only a plan.\n\n[The turn ended early: its limit 'iterations'"
        )


@pytest.mark.parametrize("how", ["fails", "is cancelled"])
async def test_a_plan_that_does_not_come_about_ends_all_the_same(how: str) -> None:
    never = anyio.Event()
    provider = ScriptedProvider(LLMError("down") if how == "fails" else answer(never))
    opened = session(provider, loop={"planning": True})
    recorder = EventRecorder.of(opened.coordinator.hooks, "p*:*")
    with anyio.fail_after(5):
        async with opened:
            if how == "fails":
                with pytest.raises(LLMError):
                    await opened.execute("Hello")
            else:
                async with anyio.create_task_group() as group:
                    group.start_soon(opened.execute, "Hello")
                    await provider.wait_for_request()
                    group.cancel_scope.cancel()
    assert recorder.names == [
        "prompt:submit",
        "plan:start",
        "provider:request",
        "provider:error",
        "plan:end",
    ]
    assert "plan" not in recorder.one("plan:end")


async def test_what_is_typed_meanwhile_is_read() -> None:
    provider = ScriptedProvider("Done.")
    async with session(provider) as opened:
        opened.steer("Be kind.")
        await opened.execute("Hello")
    assert provider.last_messages[-1] == ("user", "Be kind.")


async def test_the_time_to_decide_is_a_setting() -> None:
    providers = [
        ScriptedProvider("One.", name="first"),
        ScriptedProvider("Two.", name="second"),
    ]
    opened = session(*providers, loop={"decision_timeout": 0.001})

    async def late(event: str, data: dict[str, object]) -> HookResult:
        await anyio.sleep(60)
        return HookResult(data={"choice": "second", "score": 1})

    opened.coordinator.hooks.register("decision:provider_resolution", late)
    with anyio.fail_after(5):
        async with opened:
            assert await opened.execute("Hello") == "One."


@pytest.mark.parametrize(
    "settings", [{"decision_timeout": 0}, {"plannig": True}], ids=["timeout", "unknown"]
)
async def test_a_setting_that_cannot_be_is_named(
    settings: Mapping[str, JSONValue],
) -> None:
    with pytest.raises(
        ConfigError,
        match=r"decision_timeout: is a number of seconds|did you mean 'planning'",
    ):
        async with session(ScriptedProvider(), loop=settings):
            pass


async def test_it_says_which_events_it_sends() -> None:
    async with session(ScriptedProvider()) as opened:
        (sent,) = await opened.coordinator.collect_contributions("observability.events")
    assert isinstance(sent, list)
    assert {"tool:selecting", "decision:tool_resolution", "error:provider"} < set(sent)
