"""The loop in a session: what a reader sees while it happens, what is typed meanwhile, how often the model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import anyio
import pytest

from amplifier import AmplifierSession
from amplifier.testing import (
    EventRecorder,
    MockContextManager,
    MockTool,
    ScriptedProvider,
    VirtualClock,
)
from amplifier.testing.sessions import create_test_session
from amplifier_kit.scripted import answer, call
from amplifier_module_loop_streaming import StreamingLoop
from amplifier_sdk import (
    ConfigError,
    SteeringInjected,
    StreamEvent,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolCallDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    Usage,
    UsageReported,
)
from amplifier_sdk.errors import RateLimitError

USAGE = Usage(input_tokens=7, output_tokens=3, total_tokens=10, reasoning_tokens=2)


def session(
    provider: ScriptedProvider, *tools: object, loop: Mapping[str, object] | None = None
) -> AmplifierSession:
    return create_test_session(
        provider=provider,
        orchestrator=StreamingLoop,
        tools=tools,
        configs={"orchestrator": loop or {}},
    )


async def test_first_delta_is_read_before_provider_has_finished() -> None:
    """The provider goes on only after the reader had its first words."""
    was_read = anyio.Event()
    with anyio.fail_after(5):
        async with session(
            ScriptedProvider(answer("First, ", was_read, "then the rest."))
        ) as opened:
            seen: list[StreamEvent] = []
            async with opened.stream("Hello") as events:
                async for event in events:
                    seen.append(event)
                    was_read.set()

    assert [event.text for event in seen if isinstance(event, TextDelta)] == [
        "First, ",
        "then the rest.",
    ]


async def test_text_thinking_arguments_and_usage_stream() -> None:
    thought = ThinkingBlock(thinking="Let me look.")
    steps = (
        answer(thought, "I look. ", call("look", {"at": "it"}), usage=USAGE),
        answer("Seen.", usage=USAGE),
    )
    async with (
        session(ScriptedProvider(*steps), MockTool("look")) as opened,
        opened.stream("Hello") as events,
    ):
        seen = [event async for event in events]

    assert list(map(type, seen)) == [
        *(ThinkingDelta, TextDelta, ToolCallDelta, UsageReported),
        *(ToolStarted, ToolFinished),
        *(TextDelta, UsageReported),
        TurnFinished,
    ]
    arguments, usage = (
        seen[2],
        [event for event in seen if isinstance(event, UsageReported)],
    )
    assert isinstance(arguments, ToolCallDelta)
    assert (arguments.name, arguments.arguments) == ("look", '{"at": "it"}')
    assert usage == [
        UsageReported(provider="scripted", usage=USAGE, total=USAGE),
        UsageReported(provider="scripted", usage=USAGE, total=USAGE + USAGE),
    ]


async def test_slow_reader_loses_nothing_and_holds_nobody_up_for_ever() -> None:
    pieces = [f"{number}," for number in range(2_000)]
    with anyio.fail_after(5):
        async with (
            session(ScriptedProvider(answer(*pieces))) as opened,
            opened.stream("Hello") as events,
        ):
            await anyio.wait_all_tasks_blocked()
            seen = []
            async for event in events:
                seen.append(event)
                await anyio.wait_all_tasks_blocked()

    texts = [event.text for event in seen if isinstance(event, TextDelta)]
    assert "".join(texts) == "".join(pieces)
    assert len(texts) < len(pieces)
    assert isinstance(seen[-1], TurnFinished)


async def test_what_typed_while_tool_works_read_before_next_request() -> None:
    tool = MockTool("work", lambda input: opened.steer("Shorter, please."))
    provider = ScriptedProvider(answer(call("work")), "Short.")
    async with session(provider, tool) as opened, opened.stream("Hello") as events:
        seen = [event async for event in events]

    assert tool.call_count == 1
    assert provider.last_messages[-1] == ("user", "Shorter, please.")
    assert [event for event in seen if isinstance(event, SteeringInjected)] == [
        SteeringInjected(text="Shorter, please.")
    ]
    memory = opened.coordinator.context
    assert isinstance(memory, MockContextManager)
    assert [message["role"] for message in memory.messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]


async def test_what_typed_while_last_answer_forms_waits_for_next_turn() -> None:
    heard = anyio.Event()
    provider = ScriptedProvider(answer("It is ", heard, "done."), "Shorter.")
    with anyio.fail_after(5):
        async with session(provider) as opened:
            async with opened.stream("Hello") as events:
                seen = []
                async for event in events:
                    seen.append(event)
                    if not heard.is_set():
                        assert opened.steer("Shorter, please.") is True
                        heard.set()
            end = seen[-1]
            assert isinstance(end, TurnFinished)
            assert (end.text, end.unread) == ("It is done.", ("Shorter, please.",))
            assert await opened.execute("Again") == "Shorter."
    assert provider.last_messages[-2:] == [
        ("user", "Again"),
        ("user", "Shorter, please."),
    ]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    ("milliseconds", "gaps", "delays"),
    [(1500, [1.5, 1.5], [1.5, 1.5]), (0, [0, 0], [])],
)
def test_so_much_time_lies_between_two_requests(
    milliseconds: int, gaps: list[float], delays: list[float], backend: str
) -> None:
    asked: list[float] = []

    async def reply(request: object) -> str | object:
        asked.append(anyio.current_time())
        return answer(call("work")) if len(asked) == 1 else "Done."

    async def main() -> list[object]:
        settings = {"min_delay_between_calls_ms": milliseconds}
        opened = session(
            ScriptedProvider(reply, reply, reply),  # type: ignore[arg-type]  # it answers with steps
            MockTool("work"),
            loop=settings,
        )
        recorder = EventRecorder.of(
            opened.coordinator.hooks, "orchestrator:rate_limit_delay"
        )
        async with opened:
            await opened.execute("Hello")
            await opened.execute("Again")
        return [data["delay"] for data in recorder.data("*")]

    assert VirtualClock().run(main, backend=backend) == pytest.approx(delays, abs=0.01)
    assert [later - earlier for earlier, later in pairwise(asked)] == pytest.approx(
        gaps, abs=0.01
    )


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_time_that_has_passed_anyway_is_not_waited_again(backend: str) -> None:
    async def main() -> list[float]:
        provider = ScriptedProvider("One.", "Two.", "Three.")
        async with session(
            provider, loop={"min_delay_between_calls_ms": 1000}
        ) as opened:
            await opened.execute("Hello")
            await anyio.sleep(2)
            times = [anyio.current_time()]
            for _ in range(2):
                await opened.execute("Again")
                times.append(anyio.current_time())
            return [later - earlier for earlier, later in pairwise(times)]

    assert VirtualClock().run(main, backend=backend) == pytest.approx([0, 1], abs=0.01)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_request_that_failed_is_one_to_keep_a_distance_from(backend: str) -> None:
    """A vendor that refuses a request for its rate counts it all the same."""

    async def main() -> float:
        provider = ScriptedProvider(
            RateLimitError("slow down", provider="scripted"), "Two."
        )
        async with session(
            provider, loop={"min_delay_between_calls_ms": 1000}
        ) as opened:
            with pytest.raises(RateLimitError):
                await opened.execute("Hello")
            failed_at = anyio.current_time()
            await opened.execute("Again")
            return anyio.current_time() - failed_at

    assert VirtualClock().run(main, backend=backend) == pytest.approx(1, abs=0.01)


async def test_the_settings_of_every_loop_hold_here_too() -> None:
    settings = {"model": "m", "temperature": 0, "first_tool": "work"}
    provider = ScriptedProvider(answer(call("work")), "Done.")
    async with session(provider, MockTool("work"), loop=settings) as opened:
        await opened.execute("Hello")
    assert [(r.model, r.temperature, r.forced_tool) for r in provider.requests] == [
        ("m", 0, "work"),
        ("m", 0, None),
    ]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"min_delay_between_calls_ms": -1}, "milliseconds from 0"),
        ({"stream_delay": 1}, "stream_delay: unknown"),
    ],
    ids=["negative", "unknown"],
)
async def test_a_setting_that_cannot_be_is_named(
    settings: Mapping[str, object], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        async with session(ScriptedProvider(), loop=settings):
            pass


async def test_it_says_which_events_it_sends() -> None:
    async with session(ScriptedProvider()) as opened:
        sent = await opened.coordinator.collect_contributions("observability.events")
    assert sent == [["orchestrator:steering_injected", "orchestrator:rate_limit_delay"]]
