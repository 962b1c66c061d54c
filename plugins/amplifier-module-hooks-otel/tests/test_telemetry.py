"""Metrics, content, and what a telemetry that fails does to a session: nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics.export import HistogramDataPoint
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import (
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from amplifier.testing import (
    MockDisplaySystem,
    TestCoordinator,
    answer,
    call,
    create_test_session,
)
from amplifier_kit.redaction import REDACTION_FAILED
from amplifier_module_hooks_otel import mount
from amplifier_sdk import Coordinator, HookResult, JSONValue, ToolResult, tool
from amplifier_sdk.content import (
    ContentBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    block_to_dict,
)
from amplifier_sdk.redaction import REDACTOR

TOKEN = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"

pytestmark = pytest.mark.anyio


class Collected(Protocol):
    """What the SDK was given; see conftest.py."""

    provider: TracerProvider

    @property
    def spans(self) -> dict[str, ReadableSpan]: ...
    def points(self, metric: str) -> list[HistogramDataPoint]: ...


@tool
async def look(place: str) -> str:
    """Look."""
    if place == "nowhere":
        raise ValueError(place)
    return f"{place} holds {TOKEN}"


async def turn(
    config: Mapping[str, object], *hooks: object, place: str = "private"
) -> str:
    """Run a turn with one call of a tool."""
    session = create_test_session(
        answer("I look.", call("look", {"place": place})),
        "It is there.",
        tools=[look],
        hooks=[mount, *hooks],
        configs={"hook-0": config},
    )
    async with session:
        return await session.execute(f"Find {TOKEN}.")


def facts(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def labels_of(point: HistogramDataPoint) -> dict[str, object]:
    return dict(point.attributes or {})


# -- metrics


async def test_requests_calls_and_turns_are_measured(collected: Collected) -> None:
    await turn({"agent_name": "finder"})
    await turn({"agent_name": "finder"}, place="nowhere")

    labels = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "scripted"}
    tokens = {
        labels_of(point)["gen_ai.token.type"]: point
        for point in collected.points("gen_ai.client.token.usage")
    }
    assert set(tokens) == {"input", "output"}
    assert (tokens["input"].count, tokens["input"].explicit_bounds[:3]) == (
        4,
        (1.0, 4.0, 16.0),
    )
    assert tokens["output"].attributes == {**labels, "gen_ai.token.type": "output"}
    (requests,) = collected.points("gen_ai.client.operation.duration")
    assert (requests.count, requests.attributes, requests.explicit_bounds[0]) == (
        4,
        labels,
        0.01,
    )
    (first,) = collected.points("gen_ai.client.operation.time_to_first_chunk")
    assert (first.count, first.explicit_bounds[0]) == (4, 0.001)
    (turns,) = collected.points("gen_ai.invoke_agent.duration")
    assert (turns.count, labels_of(turns)["gen_ai.agent.name"]) == (2, "finder")
    points = collected.points("gen_ai.execute_tool.duration")
    calls = {labels_of(point).get("error.type"): point.count for point in points}
    assert calls == {None: 1, "ValueError": 1}


async def test_metrics_may_be_left_out(collected: Collected) -> None:
    await turn({"metrics": False})
    await turn({"metrics": False}, place="nowhere")

    assert collected.points("gen_ai.client.operation.duration") == []
    assert collected.points("gen_ai.invoke_agent.duration") == []
    assert "chat" in collected.spans


# -- content


async def test_nothing_that_is_said_is_told_unless_it_is_asked_for(
    collected: Collected,
) -> None:
    await turn({})
    await turn({}, place="nowhere")

    shown = "".join(span.to_json() for span in collected.spans.values())
    assert not any(
        text in shown for text in ("Find", "I look", "private", "nowhere", TOKEN)
    )


async def test_what_is_told_is_redacted(collected: Collected) -> None:
    await turn({"capture_content": True})

    spans = collected.spans
    assert (
        facts(spans["execute_tool look"])["gen_ai.tool.call.arguments"]
        == '{"place": "private"}'
    )
    assert (
        facts(spans["execute_tool look"])["gen_ai.tool.call.result"]
        == "private holds [REDACTED:github-token]"
    )
    asked = json.loads(str(facts(spans["chat"])["gen_ai.input.messages"]))
    assert asked == [
        {
            "role": "user",
            "parts": [{"type": "text", "content": "Find [REDACTED:github-token]."}],
        },
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "I look."},
                {
                    "type": "tool_call",
                    "id": "call_0_0",
                    "name": "look",
                    "arguments": {"place": "private"},
                },
            ],
        },
        {
            "role": "tool",
            "parts": [
                {
                    "type": "tool_call_response",
                    "id": "call_0_0",
                    "response": "private holds [REDACTED:github-token]",
                }
            ],
        },
    ]
    said = [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "It is there."}],
            "finish_reason": "stop",
        }
    ]
    assert json.loads(str(facts(spans["chat"])["gen_ai.output.messages"])) == said
    assert (
        json.loads(str(facts(spans["invoke_agent"])["gen_ai.output.messages"])) == said
    )
    prompt = json.loads(str(facts(spans["invoke_agent"])["gen_ai.input.messages"]))
    assert prompt == asked[:1]
    assert TOKEN not in "".join(span.to_json() for span in spans.values())


async def test_the_arguments_of_a_failed_call_are_told(collected: Collected) -> None:
    await turn({"capture_content": True}, place="nowhere")

    assert (
        facts(collected.spans["execute_tool look"])["gen_ai.tool.call.arguments"]
        == '{"place": "nowhere"}'
    )


@pytest.mark.parametrize("how", ["changed", "withheld"])
async def test_what_handlers_keep_back_is_not_told(
    collected: Collected, how: str
) -> None:
    async def guard(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        def evaluate(event: str, data: Mapping[str, object]) -> HookResult:
            changed = {"result": ToolResult(output="nothing")}
            return (
                HookResult.modify(changed)
                if how == "changed"
                else HookResult.deny("private")
            )

        coordinator.hooks.register("tool:post", evaluate, name="guard")

    await turn({"capture_content": True}, guard)

    called = facts(collected.spans["execute_tool look"])
    assert called.get("gen_ai.tool.call.result") == (
        "nothing" if how == "changed" else None
    )
    assert "error.type" not in called
    assert "holds" not in collected.spans["execute_tool look"].to_json()


async def test_a_redactor_that_fails_leaves_nothing_of_the_content(
    collected: Collected,
) -> None:
    class Broken:
        def redact_text(self, text: str) -> str:
            raise ValueError(text)

        redact = redact_text

    async def offer(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> None:
        coordinator.register_capability(REDACTOR, Broken())

    await turn({"capture_content": True}, offer)

    assert (
        facts(collected.spans["execute_tool look"])["gen_ai.tool.call.result"]
        == REDACTION_FAILED
    )
    assert "private" not in "".join(span.to_json() for span in collected.spans.values())


async def reported(
    collected: Collected, messages: Sequence[Mapping[str, object]], **config: JSONValue
) -> str:
    """Return what a request's span tells of some messages."""
    async with TestCoordinator() as coordinator:
        await mount(coordinator, {"capture_content": True, **config})
        ids = {"turn_id": "1", "span_id": "r"}
        await coordinator.hooks.emit(
            "provider:request", {**ids, "provider": "p", "messages": messages}
        )
        await coordinator.hooks.emit("provider:response", {**ids, "response": None})
    return str(facts(collected.spans["chat"])["gen_ai.input.messages"])


async def test_the_newest_messages_are_told_that_there_is_room_for(
    collected: Collected,
) -> None:
    messages = [
        {"role": "user", "content": f"{number} " + "word " * 20} for number in range(50)
    ]

    found = json.loads(await reported(collected, messages, max_content=1_000))

    assert [message["parts"][0]["content"].split()[0] for message in found] == [
        str(n) for n in range(44, 50)
    ]


async def test_a_long_text_is_cut_behind_its_redaction(collected: Collected) -> None:
    text = "word " * 1_000 + TOKEN + " word" * 20_000

    (message,) = json.loads(
        await reported(
            collected, [{"role": "user", "content": text}], max_content=5_020
        )
    )

    content = message["parts"][0]["content"]
    assert "ghp_" not in content
    assert content.endswith(f"… ({len(text)} characters)")
    assert len(content) < 5_100


async def test_of_what_is_no_text_the_kind_is_told(collected: Collected) -> None:
    blocks: list[ContentBlock] = [
        TextBlock(text="See."),
        ImageBlock(source={"data": "private"}),
        ThinkingBlock(thinking="Hm."),
        ReasoningBlock(summary=({"type": "summary_text", "text": "So."},)),
        ToolResultBlock(
            tool_call_id="c", output={"a": [1, 2.5, float("inf"), None, True]}
        ),
    ]

    (message,) = json.loads(
        await reported(
            collected, [{"role": "user", "content": [*map(block_to_dict, blocks)]}]
        )
    )

    assert message["parts"] == [
        {"type": "text", "content": "See."},
        {"type": "image"},
        {"type": "reasoning", "content": "Hm."},
        {"type": "reasoning", "content": "So."},
        {
            "type": "tool_call_response",
            "id": "c",
            "response": {"a": [1, 2.5, "inf", None, True]},
        },
    ]


async def test_arguments_without_end_are_told_by_their_length(
    collected: Collected,
) -> None:
    endless: list[object] = []
    endless.append(endless)
    for given, expected in (
        ({"rows": list(range(5_000))}, "left_out"),
        ({"loop": endless, "odd": object()}, "(nested too deep)"),
    ):
        async with TestCoordinator() as coordinator:
            await mount(coordinator, {"capture_content": True, "max_content": 1_000})
            ids = {
                "turn_id": "1",
                "span_id": "c",
                "tool_name": "look",
                "tool_input": given,
            }
            await coordinator.hooks.emit("tool:pre", ids)
            await coordinator.hooks.emit(
                "tool:post", {**ids, "result": "no result of ours"}
            )
        assert expected in str(
            facts(collected.spans["execute_tool look"])["gen_ai.tool.call.arguments"]
        )


# -- failures


class Raising(SpanProcessor):
    """Fails at one end of a span."""

    def __init__(self, place: str) -> None:
        self.place = place

    def on_start(self, span: object, parent_context: object = None) -> None:
        if self.place == "start":
            raise OSError("no")

    def on_end(self, span: object) -> None:
        if self.place == "end":
            raise OSError("no")


@pytest.mark.parametrize("place", ["start", "end"])
async def test_a_processor_that_raises_does_not_disturb_a_turn(
    collected: Collected, place: str
) -> None:
    collected.provider.add_span_processor(Raising(place))
    screen = MockDisplaySystem()
    session = create_test_session("Hi.", hooks=[mount], display_system=screen)
    async with session:
        assert await session.execute("Hello.") == "Hi."


class Stuck(SpanExporter):
    """Waits until it is let go."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.go = threading.Event()

    def export(self, spans: object) -> SpanExportResult:
        self.reached.set()
        self.go.wait(20)
        return SpanExportResult.SUCCESS


async def test_an_exporter_that_hangs_is_not_waited_for(collected: Collected) -> None:
    stuck = Stuck()
    collected.provider.add_span_processor(SimpleSpanProcessor(stuck))
    notes: list[str] = []
    config = {"queue_size": 3, "flush_timeout": 0.05}
    session = create_test_session("A.", "B.", hooks=[mount], configs={"hook-0": config})
    try:
        with anyio.fail_after(10):
            async with session:
                session.coordinator.hooks.register(
                    "user:notification",
                    lambda _, data: notes.append(str(data["message"])),
                    name="screen",
                )
                assert await session.execute("Hello.") == "A."
                # with one span; two wait
                assert await anyio.to_thread.run_sync(stuck.reached.wait, 5)
                assert await session.execute("Hello.") == "B."
    finally:
        stuck.go.set()

    assert notes == ["Spans missing in the session's telemetry: 2"]


async def test_what_fails_while_spans_end_is_told_once(collected: Collected) -> None:
    collected.provider.add_span_processor(Raising("end"))
    notes: list[str] = []
    async with TestCoordinator() as coordinator:
        await mount(coordinator, {})
        coordinator.hooks.register(
            "user:notification",
            lambda _, data: notes.append(str(data["message"])),
            name="s",
        )
        await coordinator.hooks.emit(
            "execution:start", {"turn_id": "1", "span_id": "t"}
        )
        await coordinator.hooks.emit(
            "execution:end", {"turn_id": "1", "span_id": "t", "status": "success"}
        )
        for _ in range(2):
            await coordinator.hooks.emit("session:end", {})

    assert notes == ["Spans missing in the session's telemetry: 1 (OSError)"]


async def test_odd_names_and_texts_can_be_exported(collected: Collected) -> None:
    odd = "\ud83d" + "n" * 10_000
    session = create_test_session(
        answer(odd, call(odd, {"place": odd}), call("look", {"place": odd})),
        "Done.",
        tools=[look],
        hooks=[mount],
        configs={"hook-0": {"capture_content": True}},
    )
    async with session:
        await session.execute(f"Find {odd}.")

    for span in collected.spans.values():
        assert len(span.name.encode()) <= 200
        assert span.to_json().encode()
        for name, value in facts(span).items():
            assert not isinstance(value, str) or value.encode()
            assert (
                not isinstance(value, str)
                or len(value) <= 200
                or name.endswith(("messages", "arguments", "result"))
            )
    assert any(name.startswith("execute_tool ?nnn") for name in collected.spans)


async def test_without_an_sdk_a_session_runs_as_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", None)
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)

    assert await turn({"capture_content": True}) == "It is there."


async def test_spans_that_are_not_sampled_cost_no_content(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        trace,
        "_TRACER_PROVIDER",
        TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False),
    )
    threads = set(threading.enumerate())
    seen: list[bool] = []

    @tool
    async def look() -> None:
        """Look."""
        seen.append(trace.get_current_span().get_span_context().is_valid)

    session = create_test_session(
        answer("", call("look")), "Done.", tools=[look], hooks=[mount]
    )
    async with session:
        await session.execute("Look.")
        assert "telemetry" not in {
            thread.name for thread in set(threading.enumerate()) - threads
        }

    assert seen == [True]  # what the tool asks elsewhere carries the trace on
