"""The spans of a session: which there are, below what they stand, and what they tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Protocol

import anyio
import pytest
from opentelemetry import baggage, trace
from opentelemetry.context import attach, detach
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.trace import SpanKind, StatusCode

from amplifier.testing import (
    EventRecorder,
    MockApprovalSystem,
    ScriptedProvider,
    TestCoordinator,
    answer,
    call,
    create_test_session,
    mounting,
)
from amplifier_module_hooks_otel import mount
from amplifier_sdk import (
    ChatRequest,
    ChatResponse,
    Coordinator,
    HookResult,
    JSONValue,
    LLMError,
    SessionSpawn,
    TextBlock,
    ToolCall,
    ToolError,
    ToolResult,
    TurnCancelled,
    Usage,
    tool,
)
from amplifier_sdk.jsontypes import JSONObject

pytestmark = pytest.mark.anyio


class Collected(Protocol):
    """What the SDK was given; see conftest.py."""

    provider: TracerProvider

    @property
    def spans(self) -> dict[str, ReadableSpan]: ...
    def tree(self) -> list[str]: ...


@tool
async def add(left: int, right: int) -> int:
    """Add."""
    return left + right


def facts(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def error_of(span: ReadableSpan) -> object:
    """Return what kind of error a span has; it has its status too, or neither."""
    assert (span.status.status_code is StatusCode.ERROR) == (
        "error.type" in facts(span)
    )
    return facts(span).get("error.type")


ADDING = answer(
    "I add.",
    call("add", {"left": 1, "right": 2}, id="c1"),
    call("add", {"left": 3, "right": 4}, id="c2"),
)


async def test_turn_holds_iterations_and_these_request_and_calls(
    collected: Collected,
) -> None:
    session = create_test_session(ADDING, "Done.", tools=[add], hooks=[mount])
    async with session:
        await session.execute("Add.")

    assert collected.tree() == [
        "invoke_agent",
        "invoke_agent > iteration 0",
        "invoke_agent > iteration 0 > chat",
        "invoke_agent > iteration 0 > execute_tool add",
        "invoke_agent > iteration 0 > execute_tool add",
        "invoke_agent > iteration 1",
        "invoke_agent > iteration 1 > chat",
    ]
    kinds = {name: span.kind for name, span in collected.spans.items()}
    assert kinds.pop("chat") is SpanKind.CLIENT
    assert set(kinds.values()) == {SpanKind.INTERNAL}


async def test_iterations_may_be_left_out(collected: Collected) -> None:
    session = create_test_session(
        ADDING,
        "Done.",
        tools=[add],
        hooks=[mount],
        configs={"hook-0": {"iteration_spans": False}},
    )
    async with session:
        await session.execute("Add.")

    assert sorted(set(collected.tree())) == [
        "invoke_agent",
        "invoke_agent > chat",
        "invoke_agent > execute_tool add",
    ]


async def test_spans_have_the_ids_of_the_events(collected: Collected) -> None:
    recorder = EventRecorder()
    session = create_test_session(ADDING, "Done.", tools=[add], hooks=[mount, recorder])
    async with session:
        await session.execute("Add.")

    called = facts(collected.spans["execute_tool add"])
    (reported,) = [
        data
        for data in recorder.data("tool:post")
        if data["span_id"] == called["amplifier.span_id"]
    ]
    assert called == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": reported["tool_call_id"],
        "gen_ai.tool.type": "function",
        "gen_ai.conversation.id": "test-session",
        "amplifier.span_id": reported["span_id"],
        "amplifier.iteration": 0,
        "amplifier.parallel_group_id": reported["parallel_group_id"],
    }
    turn = facts(collected.spans["invoke_agent"])
    assert turn["amplifier.turn_id"] == reported["turn_id"]
    assert turn["amplifier.status"] == "success"


async def test_a_request_tells_what_was_asked_and_what_was_used(
    collected: Collected,
) -> None:
    said = ChatResponse(
        content=[TextBlock(text="Hi.")],
        finish_reason="length",
        usage=Usage(
            input_tokens=3,
            output_tokens=2,
            total_tokens=5,
            cache_read_tokens=1,
            cost_usd=Decimal("0.5"),
        ),
        metadata={
            "vendor:model": "m-2026",
            "vendor:response_id": "r-1",
            "vendor:count": 3,
            "vendor:tier": "gold",
        },
    )
    session = create_test_session(
        said,
        said,
        hooks=[mount],
        configs={
            "hook-0": {"agent_name": "greeter", "provider_names": {"scripted": "groq"}}
        },
    )
    async with session:
        await session.execute("Hello.")
        await session.execute("Hello.")

    request = facts(collected.spans["chat"])
    assert request["gen_ai.provider.name"] == "groq"
    assert request["gen_ai.response.model"] == "m-2026"
    assert request["gen_ai.response.id"] == "r-1"
    assert request["gen_ai.response.finish_reasons"] == ("length",)
    assert request["gen_ai.usage.cache_read.input_tokens"] == 1
    assert request["amplifier.cost_usd"] == 0.5
    assert "gen_ai.usage.reasoning.output_tokens" not in request
    turn = facts(collected.spans["invoke_agent greeter"])
    assert (turn["gen_ai.usage.input_tokens"], turn["gen_ai.usage.output_tokens"]) == (
        3,
        2,
    )
    assert turn["gen_ai.agent.name"] == "greeter"


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
async def test_a_streamed_answer_has_a_first_chunk(
    collected: Collected, streams: bool
) -> None:
    class Whole:
        name = "whole"

        def __init__(self) -> None:
            self.script = ScriptedProvider("One.")
            self.get_info, self.list_models = (
                self.script.get_info,
                self.script.list_models,
            )
            self.complete, self.parse_tool_calls = (
                self.script.complete,
                self.script.parse_tool_calls,
            )

    provider = ScriptedProvider("One.") if streams else mounting(Whole())
    session = create_test_session(provider=provider, hooks=[mount])
    async with session:
        await session.execute("Hello.")

    request = facts(collected.spans["chat"])
    assert ("gen_ai.response.time_to_first_chunk" in request) is streams
    assert request.get("gen_ai.request.stream", False) is streams


async def test_a_turn_stands_below_what_the_application_does(
    collected: Collected,
) -> None:
    seen: list[object] = []

    @tool
    async def look() -> str:
        """Look."""
        seen.append(baggage.get_baggage("tenant"))
        return "seen"

    session = create_test_session(
        answer("", call("look")), "Done.", "Again.", tools=[look], hooks=[mount]
    )
    async with session:
        token = attach(baggage.set_baggage("tenant", "blue"))
        with collected.provider.get_tracer("app").start_as_current_span("app") as above:
            await session.execute("Hello.")
            assert trace.get_current_span() is above
            async with session.stream("Hello.") as events:
                async for _ in events:
                    pass
            assert trace.get_current_span() is above
        detach(token)

    assert seen == ["blue"]
    assert {path.partition(" > ")[0] for path in collected.tree()} == {"app"}
    assert collected.tree().count("app > invoke_agent") == 2


@pytest.mark.parametrize("blocks", [False, True], ids=["async", "thread"])
async def test_what_a_tool_does_stands_below_its_call(
    collected: Collected, blocks: bool
) -> None:
    tracer = collected.provider.get_tracer("library")

    def work(name: str) -> str:
        """Work."""
        with tracer.start_as_current_span(f"inside {name}"):
            return name

    async def work_async(name: str) -> str:
        """Work."""
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 0)
        return work(name)

    worker = tool(name="work")(work) if blocks else tool(name="work")(work_async)
    calls = [call("work", {"name": name}, id=name) for name in ("a", "b", "c")]
    session = create_test_session(
        answer("", *calls), "Done.", tools=[worker], hooks=[mount]
    )
    async with session:
        await session.execute("Work.")

    inside = {
        path.rpartition(" > ")[0] for path in collected.tree() if "inside" in path
    }
    assert inside == {"invoke_agent > iteration 0 > execute_tool work"}
    spans = collected.spans
    by_id = {span.context.span_id: span for span in collected_all(collected)}
    for name in "abc":
        parent = spans[f"inside {name}"].parent
        assert parent is not None
        assert facts(by_id[parent.span_id])["gen_ai.tool.call.id"] == name


def collected_all(collected: Collected) -> Sequence[ReadableSpan]:
    exporter = getattr(collected, "exporter")  # noqa: B009  # the protocol shows what most tests need
    spans: Sequence[ReadableSpan] = exporter.get_finished_spans()
    return spans


async def test_a_child_session_stands_below_the_call_that_made_it(
    collected: Collected,
) -> None:
    async def delegate(
        coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> object:
        class Delegate:
            name = "delegate"
            description = "Delegates."
            input_schema: Mapping[str, JSONValue] = {"type": "object"}

            async def execute(self, input: JSONObject, /) -> ToolResult:
                spawn: SessionSpawn = coordinator.get_capability("session.spawn")  # type: ignore[assignment]  # its own
                return ToolResult(
                    output=(await spawn(agent_name="self", instruction="Do it.")).output
                )

        return Delegate()

    session = create_test_session(
        answer("", call("delegate")), "Child.", "Done.", tools=[delegate], hooks=[mount]
    )
    async with session:
        assert await session.execute("Delegate.") == "Done."

    call_path = "invoke_agent > iteration 0 > execute_tool delegate"
    assert f"{call_path} > invoke_agent self > iteration 0 > chat" in collected.tree()
    assert (
        facts(collected.spans["invoke_agent self"])["amplifier.parent_session_id"]
        == "test-session"
    )


async def test_the_metadata_of_a_session_name_its_agent(collected: Collected) -> None:
    session = create_test_session(
        "Hi.", hooks=[mount], settings={"metadata": {"agent_name": "scout"}}
    )
    async with session:
        await session.execute("Hello.")

    assert "invoke_agent scout" in collected.spans


@tool
async def fail(how: str) -> object:
    """Fail."""
    if how == "raises":
        raise ValueError("secret of the tool")
    if how == "says so":
        raise ToolError("secret of the tool", type="no_such_row")
    return ToolResult(success=False, output="secret of the tool")


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        pytest.param(call("fail", {"how": "raises"}), "ValueError", id="raises"),
        pytest.param(call("fail", {"how": "says so"}), "no_such_row", id="tool-error"),
        pytest.param(call("fail", {"how": "returns"}), "tool_error", id="returns"),
        pytest.param(call("fail", {}), "invalid_arguments", id="arguments"),
        pytest.param(call("other"), "unknown_tool", id="unknown"),
        pytest.param(call("denied"), "denied", id="denied"),
    ],
)
async def test_a_call_that_fails_says_how_and_not_what(
    collected: Collected, asked: ToolCall, error: str
) -> None:
    async def guard(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        def evaluate(event: str, data: Mapping[str, object]) -> HookResult | None:
            return (
                HookResult.deny("secret of the guard")
                if data["tool_name"] == "denied"
                else None
            )

        coordinator.hooks.register("tool:pre", evaluate, name="guard")

    @tool
    async def denied() -> None:
        """Never run."""

    session = create_test_session(
        answer("", asked), "Done.", tools=[fail, denied], hooks=[guard, mount]
    )
    async with session:
        assert await session.execute("Fail.") == "Done."

    called = collected.spans[f"execute_tool {asked.name}"]
    assert error_of(called) == error
    assert error_of(collected.spans["invoke_agent"]) is None
    assert all("secret" not in span.to_json() for span in collected_all(collected))


async def test_a_request_that_fails_says_how(collected: Collected) -> None:
    session = create_test_session(
        LLMError("secret of the vendor", provider="p", status_code=503), hooks=[mount]
    )
    async with session:
        with pytest.raises(LLMError):
            await session.execute("Hello.")

    assert error_of(collected.spans["chat"]) == "LLMError"
    assert facts(collected.spans["chat"])["http.response.status_code"] == 503
    assert error_of(collected.spans["invoke_agent"]) == "LLMError"
    assert "secret" not in collected.spans["chat"].to_json()


@pytest.mark.parametrize("place", ["request", "tool"])
async def test_a_cancelled_turn_leaves_no_span_open(
    collected: Collected, place: str
) -> None:
    started = anyio.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        started.set()
        await anyio.sleep_forever()

    async def stall(request: ChatRequest) -> ChatResponse:
        started.set()
        await anyio.sleep_forever()
        raise AssertionError

    steps = [answer("", call("wait"), call("wait"))] if place == "tool" else [stall]
    session = create_test_session(*steps, tools=[wait], hooks=[mount])
    async with session, anyio.create_task_group() as group:

        async def cancel() -> None:
            await started.wait()
            await session.cancel(immediate=True)

        group.start_soon(cancel)
        before = trace.get_current_span()
        with anyio.fail_after(5), pytest.raises(TurnCancelled):
            await session.execute("Hello.")
        assert trace.get_current_span() is before

    last = "execute_tool wait" if place == "tool" else "chat"
    for name in (last, "iteration 0", "invoke_agent"):
        assert error_of(collected.spans[name]) == "cancelled"
    assert len(collected.tree()) == (5 if place == "tool" else 3)


async def test_what_happens_on_the_way_is_noted(collected: Collected) -> None:
    async def ask(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        coordinator.hooks.register(
            "tool:pre", lambda *_: HookResult.ask("secret question"), name="asker"
        )

    session = create_test_session(
        answer("", call("add", {"left": 1, "right": 2})),
        "Done.",
        tools=[add],
        hooks=[mount, ask],
        approval_system=MockApprovalSystem(),
    )
    async with session:
        await session.execute("Add.")

    events = [event.name for event in collected.spans["execute_tool add"].events]
    assert events == ["approval:required", "approval:granted"]
    assert "secret" not in collected.spans["execute_tool add"].to_json()


class Described:
    """A session whose events a test tells itself, as a loop written by hand does."""

    def __init__(self, coordinator: TestCoordinator) -> None:
        self.coordinator = coordinator

    async def __call__(
        self, event: str, span: str = "t", turn: str = "1", **data: object
    ) -> None:
        await self.coordinator.hooks.emit(
            event, {"turn_id": turn, "span_id": span, **data}
        )


async def test_providers_name_models_and_tell_of_further_tries(
    collected: Collected,
) -> None:
    async with TestCoordinator() as coordinator:
        await mount(coordinator, {})
        tell = Described(coordinator)
        await tell("execution:start", prompt="Hi.")
        await tell("provider:request", "r", provider="azure-openai", iteration=0)
        await tell("llm:request", "r", provider="azure-openai", model="m")
        await tell("llm:request", "r", provider="azure-openai", model="other")
        await tell(
            "provider:retry",
            "r",
            attempt=1,
            delay=0.5,
            error_type="RateLimitError",
            error_message="secret",
        )
        await tell("provider:response", "r", response=None)
        await tell("execution:end", status="success")

    span = collected.spans["chat m"]
    assert facts(span)["gen_ai.request.model"] == "m"
    assert facts(span)["gen_ai.provider.name"] == "azure.ai.openai"
    (event,) = span.events
    assert dict(event.attributes or {}) == {
        "attempt": 1,
        "delay": 0.5,
        "error_type": "RateLimitError",
    }


async def test_a_loop_by_hand_ends_its_turn_or_the_session_does(
    collected: Collected,
) -> None:
    async with TestCoordinator() as coordinator:
        await mount(coordinator, {})
        tell = Described(coordinator)
        before = trace.get_current_span()
        await tell("prompt:submit", prompt="Hi.")
        assert trace.get_current_span() is before  # nobody would set it back
        await tell("provider:request", provider="p", model="m")
        await tell("provider:request", provider="p", model="m")
        await tell("provider:response", response=None)
        await tell("tool:pre", tool_name="add", tool_call_id="c")
        await tell("tool:pre", tool_name="add", tool_call_id="c")
        await tell(
            "tool:post",
            "other",
            tool_name="add",
            tool_call_id="c",
            result=ToolResult(output=1),
        )
        await tell("orchestrator:complete", status="success")
        await tell("tool:pre", "late", tool_name="late")
        await tell("prompt:submit", turn="2", prompt="Hi.")
        assert trace.get_current_span() is before

    assert collected.tree() == [
        "invoke_agent",
        "invoke_agent > chat m",
        "invoke_agent > chat m",
        "invoke_agent > execute_tool add",
        "invoke_agent",
    ]
    assert [error_of(span) for span in collected_all(collected)] == [
        "unfinished",
        None,
        None,
        None,
        None,
    ]


async def test_a_turn_of_which_no_end_was_told_is_ended_by_the_next(
    collected: Collected,
) -> None:
    async with TestCoordinator() as coordinator:
        await mount(coordinator, {})
        tell = Described(coordinator)
        before = trace.get_current_span()
        await tell("execution:start")
        await tell("provider:request", "r", provider="p", iteration=0)
        await tell("tool:pre", "c", tool_name="add", iteration=0)
        await tell("execution:start", turn="2")
        await tell("execution:end", turn="1", status="success")
        await tell("execution:end", turn="2", status="success")
        assert trace.get_current_span() is before

    names = ["execute_tool add", "chat", "iteration 0", "invoke_agent", "invoke_agent"]
    assert [span.name for span in collected_all(collected)] == names
    assert [error_of(span) for span in collected_all(collected)] == [
        "unfinished"
    ] * 4 + [None]


async def test_events_that_tell_nothing_are_passed_over(collected: Collected) -> None:
    async with TestCoordinator(session_id="own") as coordinator:
        await mount(coordinator, {"capture_content": True})
        tell = Described(coordinator)
        for event in (
            "provider:response",
            "provider:error",
            "tool:post",
            "content_block:start",
            "llm:request",
        ):
            await tell(event)
        await tell("execution:end")
        await coordinator.hooks.emit("execution:start", {"prompt": "no turn"})
        await coordinator.hooks.emit("tool:error", {"tool_name": "no turn"})
        await tell("execution:start", session_id="another")
        await tell("provider:retry")
        await coordinator.hooks.emit(
            "provider:request", {"turn_id": "1", "provider": "no step"}
        )
        for event in ("provider:response", "provider:error", "tool:post"):
            await tell(event, "unknown")

    assert list(collected.spans) == ["invoke_agent"]


async def test_sessions_beside_each_other_keep_their_traces_apart(
    collected: Collected,
) -> None:
    tracer = collected.provider.get_tracer("app")

    async def serve(number: int) -> None:
        session = create_test_session(
            ADDING, "Done.", tools=[add], hooks=[mount], session_id=f"s{number}"
        )
        with tracer.start_as_current_span(f"request {number}"):
            async with session:
                await session.execute("Add.")

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(serve, number)

    spans = [
        span
        for span in collected_all(collected)
        if "gen_ai.conversation.id" in facts(span)
    ]
    roots = {
        span.context.trace_id: span.name
        for span in collected_all(collected)
        if span.parent is None
    }
    assert len(spans) == 8 * 7
    for span in spans:
        assert (
            roots[span.context.trace_id]
            == f"request {str(facts(span)['gen_ai.conversation.id'])[1:]}"
        )


async def test_a_turn_whose_caller_is_cancelled_leaves_no_span_open(
    collected: Collected,
) -> None:
    started = anyio.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        started.set()
        await anyio.sleep_forever()

    session = create_test_session(answer("", call("wait")), tools=[wait], hooks=[mount])
    async with session:
        before = trace.get_current_span()
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def stop() -> None:
                    await started.wait()
                    scope.cancel()

                group.start_soon(stop)
                await session.execute("Hello.")
        assert trace.get_current_span() is before

    names = ("execute_tool wait", "iteration 0", "invoke_agent")
    assert [error_of(collected.spans[name]) for name in names] == ["cancelled"] * 3
