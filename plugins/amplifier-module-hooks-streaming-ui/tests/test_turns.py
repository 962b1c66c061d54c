"""What is shown of a turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from decimal import Decimal
from io import StringIO
from typing import Final, TypeAlias

import pytest

from amplifier import AmplifierSession
from amplifier.testing import (
    ScriptedAnswer,
    ScriptedProvider,
    TestCoordinator,
    answer,
    call,
    create_test_session,
)
from amplifier_module_hooks_streaming_ui import mount
from amplifier_sdk import (
    ChatResponse,
    Coordinator,
    HookResult,
    JSONValue,
    TextBlock,
    ToolContext,
    ToolResult,
    tool,
)
from amplifier_sdk.chat import ToolCall, Usage
from amplifier_sdk.content import ContentBlock, ThinkingBlock, ToolCallBlock
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.redaction import REDACTOR

Say: TypeAlias = Callable[[Coordinator, str], Awaitable[None]]
ShownOn = Callable[..., AbstractAsyncContextManager[TestCoordinator]]  # type: ignore[explicit-any]  # by name
TOKEN: Final = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
USAGE: Final = Usage(
    input_tokens=1200,
    output_tokens=34,
    total_tokens=1234,
    cache_read_tokens=1000,
    cost_usd=Decimal("0.0123"),
)

pytestmark = pytest.mark.anyio
ONE_BACKEND: Final = pytest.mark.parametrize(
    "anyio_backend", ["asyncio"], scope="session"
)


@tool
def count(upto: int) -> str:
    """Count."""
    return "\n".join(str(number) for number in range(upto))


@tool
def refuse() -> ToolResult:
    """Fail."""
    return ToolResult.failure("it is closed")


@tool
def build(context: ToolContext) -> str:
    """Report."""
    context.progress("compiling", done=3, total=10)
    context.output("one\ntwo\n")
    context.output("three\nfour\n")
    return "built"


def calling(*calls: ToolCall, text: str = "") -> ChatResponse:
    content: list[ContentBlock] = [TextBlock(text=text)] if text else []
    content += [
        ToolCallBlock(id=each.id, name=each.name, input=each.arguments)
        for each in calls
    ]
    return ChatResponse(content=content, tool_calls=calls, finish_reason="tool_calls")


def thinking(thought: str, text: str) -> ChatResponse:
    return ChatResponse(
        content=[ThinkingBlock(thinking=thought), TextBlock(text=text)],
        finish_reason="stop",
    )


def make_session(
    stream: StringIO,
    *steps: ChatResponse | ScriptedAnswer,
    config: JSONObject | None = None,
    provider: object = None,
) -> AmplifierSession:
    session = create_test_session(
        *steps,
        tools=[count, refuse, build],
        hooks=[mount],
        configs={"hook-0": config or {}},
        provider=provider,
    )
    session.coordinator.register_capability("ui.stream", stream)
    return session


async def lines_of(
    *steps: ChatResponse | ScriptedAnswer, config: JSONObject | None = None
) -> list[str]:
    """Run a turn and return the lines that were shown."""
    stream = StringIO()
    async with make_session(stream, *steps, config=config) as session:
        await session.execute("go")
    return stream.getvalue().splitlines()


async def test_a_turn_is_shown_from_its_first_word_to_what_it_cost() -> None:
    lines = await lines_of(
        calling(call("count", {"upto": 3}), text="I count."),
        ChatResponse(
            content=[TextBlock(text="Three,\n\nin all.")],
            finish_reason="stop",
            usage=USAGE,
        ),
    )

    took = lines[2].removeprefix("tool count done in ")
    spent = lines[-1].rpartition("; ")[0]
    assert lines[:2] == ["I count.", "tool count upto: 3"]
    assert took.endswith(" s")
    assert lines[3:-1] == ["  | 0", "  | 1", "  | 2", "Three,", "", "in all."]
    assert (
        spent
        == "tokens: 1,200 in (1,000 cached), 34 out; 2 requests; 1 tool call; $0.0123"
    )


async def test_thinking_stands_apart_from_the_answer() -> None:
    assert (await lines_of(thinking("Is it?\nIt is.", "Yes.")))[:-1] == [
        "thinking:",
        "  Is it?",
        "  It is.",
        "Yes.",
    ]


@ONE_BACKEND
async def test_of_much_thinking_the_first_lines_are_shown() -> None:
    lines = await lines_of(
        thinking("\n".join("abcdefg"), "Yes."), config={"max_lines": 2}
    )

    assert lines[:-1] == ["thinking:", "  a", "  b", "  ... 5 more lines", "Yes."]


@ONE_BACKEND
async def test_long_line_of_thinking_takes_as_many_lines_as_it_needs() -> None:
    lines = await lines_of(thinking("word " * 20, "Yes."), config={"width": 40})

    assert max(map(len, lines[1:-2])) < 40
    assert " ".join(lines[1:-2]).split() == ["word"] * 20


@ONE_BACKEND
@pytest.mark.parametrize(
    ("config", "gone"),
    [
        ({"show_text": False}, "I count."),
        ({"show_thinking": False}, "thinking:"),
        ({"show_tools": False}, "tool count upto: 9"),
        ({"show_tool_lines": 0}, "  | 0"),
        ({"show_usage": False}, "2 requests"),
    ],
    ids=["text", "thinking", "tools", "lines", "usage"],
)
async def test_each_part_can_be_left_out(config: JSONObject, gone: str) -> None:
    steps = (
        calling(call("count", {"upto": 9}), text="I count."),
        thinking("Nine.", "Done."),
    )

    assert gone in "\n".join(await lines_of(*steps))
    assert gone not in "\n".join(await lines_of(*steps, config=config))


@ONE_BACKEND
async def test_answer_without_text_or_thinking_is_not_streamed() -> None:
    async with make_session(
        StringIO(), config={"show_text": False, "show_thinking": False}
    ) as session:
        assert not session.coordinator.hooks.has_handlers("content_block:delta")


@ONE_BACKEND
async def test_of_a_long_result_the_first_lines_are_shown() -> None:
    lines = await lines_of(
        calling(call("count", {"upto": 9})), answer("x"), config={"show_tool_lines": 2}
    )

    assert lines[2:5] == ["  | 0", "  | 1", "  | ... 7 more lines"]


async def test_failures_and_refusals_are_told() -> None:
    lines = await lines_of(calling(call("refuse"), call("nothing")), answer("x"))

    assert any(line.startswith("tool refuse failed after ") for line in lines)
    assert "  | Error: it is closed" in lines
    assert (
        "tool nothing: There is no tool 'nothing'. Available: build, count, refuse"
        in lines
    )


async def test_what_a_running_tool_reports_is_shown_up_to_the_limit() -> None:
    lines = await lines_of(
        calling(call("build")), answer("x"), config={"show_tool_lines": 3}
    )

    assert "tool build: compiling (3 of 10)" in lines
    assert [line for line in lines if line.startswith("tool build | ")] == [
        "tool build | one",
        "tool build | two",
        "tool build | three",
    ]


async def test_an_answer_that_does_not_stream_is_shown_whole(shown_on: ShownOn) -> None:
    stream = StringIO()
    async with shown_on(stream) as coordinator:
        for index, block in enumerate(
            [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "reasoning", "text": "So."},
                {"type": "text", "text": "Yes."},
            ]
        ):
            await coordinator.hooks.emit(
                "content_block:end", {"block": block, "block_index": index}
            )

    assert stream.getvalue().splitlines() == [
        "thinking:",
        "  Hm.",
        "thinking:",
        "  So.",
        "Yes.",
    ]


async def test_a_cut_answer_and_a_turn_that_fails_are_told() -> None:
    cut = await lines_of(
        ChatResponse(content=[TextBlock(text="And th")], finish_reason="length")
    )
    stream = StringIO()
    async with make_session(
        stream, provider=ScriptedProvider(ValueError("no\nway"))
    ) as session:
        with pytest.raises(ValueError, match="no"):
            await session.execute("go")

    assert "the answer is incomplete: the model stopped because of 'length'" in cut
    assert stream.getvalue().splitlines()[:2] == [
        "scripted failed: ValueError: no way",
        "the turn ended: error",
    ]


@ONE_BACKEND
@pytest.mark.parametrize(
    ("event", "data", "line"),
    [
        (
            "provider:retry",
            {
                "provider": "p",
                "attempt": 1,
                "max_retries": 4,
                "delay": 2.0,
                "error_type": "E",
                "error_message": "busy",
            },
            "p is retried in 2.0 s (try 2 of 5): E: busy",
        ),
        (
            "provider:throttle",
            {"provider": "p", "delay": 1.5, "reason": "few left"},
            "p waits 1.5 s: few left",
        ),
        (
            "context:compaction",
            {"before_tokens": 120_000, "after_tokens": 6_000},
            "the context was shortened: 120,000 to 6,000 tokens",
        ),
        ("cancel:requested", {"state": "graceful"}, "cancelled (graceful)"),
        (
            "user:notification",
            {"message": "low disk", "level": "error", "source": "m"},
            "error: low disk (m)",
        ),
        ("user:notification", {"message": "hi"}, "info: hi (unknown)"),
    ],
    ids=["retry", "throttle", "compaction", "cancel", "error", "message"],
)
async def test_what_is_waited_for_and_what_happens_beside_is_said(
    event: str, data: JSONObject, line: str, shown_on: ShownOn
) -> None:
    stream = StringIO()
    async with shown_on(stream) as coordinator:
        await coordinator.hooks.emit(event, data)

    assert stream.getvalue().splitlines() == [line]


@ONE_BACKEND
async def test_a_cancelled_request_is_no_failure(shown_on: ShownOn) -> None:
    stream = StringIO()
    async with shown_on(stream) as coordinator:
        await coordinator.hooks.emit(
            "provider:error", {"provider": "p", "error": {"type": "cancelled"}}
        )

    assert stream.getvalue() == ""


@ONE_BACKEND
@pytest.mark.parametrize(
    ("todos", "lines"),
    [
        (
            [
                {"content": "a", "status": "completed"},
                {"content": "b", "status": "in_progress"},
                {"content": "c"},
                7,
            ],
            ["[x] a", "[>] b", "[ ] c"],
        ),
        (None, []),
    ],
    ids=["a plan", "nothing"],
)
async def test_the_plan_is_shown_when_it_changes(
    todos: JSONValue, lines: list[str], shown_on: ShownOn
) -> None:
    stream = StringIO()
    async with shown_on(stream) as coordinator:
        await coordinator.hooks.emit("todo:updated", {"todos": todos})

    assert stream.getvalue().splitlines() == lines


@ONE_BACKEND
@pytest.mark.parametrize(
    ("priority", "shown"), [(-1, "b"), (1, "a")], ids=["before", "after"]
)
async def test_what_is_shown_is_what_earlier_hooks_leave(
    shown_on: ShownOn, priority: int, shown: str
) -> None:
    stream = StringIO()
    async with shown_on(stream, {"priority": priority}) as coordinator:
        change = HookResult.modify({"tool_input": {"path": "a"}})
        coordinator.hooks.register("tool:pre", lambda _, __: change, 0)
        await coordinator.hooks.emit(
            "tool:pre", {"tool_name": "t", "tool_input": {"path": "b"}}
        )

    assert stream.getvalue() == f"tool t {shown}\n"


async def test_before_person_is_asked_all_is_shown_and_line_is_ended(
    shown_on: ShownOn, say: Say
) -> None:
    stream = StringIO()
    async with shown_on(stream) as coordinator:
        await say(coordinator, "I would like to")
        await coordinator.hooks.emit("approval:required", {"prompt": "May I?"})
        assert stream.getvalue() == "I would like to\n"


async def test_child_is_indented_and_its_turn_counts_for_its_parents() -> None:
    stream = StringIO()
    used = ChatResponse(
        content=[TextBlock(text="One\ntwo.")], finish_reason="stop", usage=USAGE
    )
    async with make_session(
        stream, answer("Hello."), used, config={"width": 100}
    ) as session:
        await session.execute("go")
        await session.spawn(agent_name="self", instruction="count\nto two")
        await session.coordinator.hooks.emit(
            "execution:end", {"response": "", "status": "completed"}
        )

    assert stream.getvalue().splitlines()[2:5] == [
        "agent self: count to two",
        "  One",
        "  two.",
    ]
    assert stream.getvalue().splitlines()[5].startswith("  tokens: 1,200 in")
    assert "2 requests" in stream.getvalue().splitlines()[6]


async def test_children_can_be_left_out() -> None:
    stream = StringIO()
    async with make_session(
        stream, answer("Hello."), answer("Hidden."), config={"show_children": False}
    ) as session:
        await session.execute("go")
        await session.spawn(agent_name="self", instruction="count")

    assert "Hello." in stream.getvalue().splitlines()
    assert "Hidden" not in stream.getvalue()


async def test_children_at_work_beside_each_other_keep_to_whole_lines(
    shown_on: ShownOn, say: Say
) -> None:
    stream = StringIO()
    async with (
        shown_on(stream, session_id="parent") as parent,
        shown_on(stream, session_id="parent-1_a", parent_id="parent") as one,
        shown_on(stream, session_id="parent-2_b", parent_id="parent") as other,
    ):
        await say(parent, "I hand it out: ")
        for first, second in (("a", "x"), ("b\n", "y\n"), ("c", "z")):
            await say(one, first)
            await say(other, second)

    assert sorted(stream.getvalue().splitlines()) == sorted(
        ["I hand it out: ", "  ab", "  xy", "  c", "  z"]
    )


async def test_child_of_session_that_is_not_shown_is_shown_by_itself(
    shown_on: ShownOn,
) -> None:
    stream = StringIO()
    async with shown_on(
        stream, session_id="x_helper", parent_id="elsewhere"
    ) as coordinator:
        await coordinator.hooks.emit("execution:start", {"prompt": "go"})

    assert stream.getvalue().splitlines() == ["agent helper: go"]


async def test_no_secret_is_shown_not_even_in_pieces(
    shown_on: ShownOn, say: Say
) -> None:
    stream = StringIO()
    async with shown_on(stream) as coordinator:
        for piece in ("It is ", TOKEN[:9], TOKEN[9:20], TOKEN[20:], " now."):
            await say(coordinator, piece)
        await coordinator.hooks.emit(
            "content_block:end", {"block": {"type": "text"}, "block_index": 0}
        )
        await coordinator.hooks.emit(
            "tool:pre",
            {"tool_name": "t", "tool_input": {"text": f"{'x ' * 900}{TOKEN}"}},
        )
        await coordinator.hooks.emit("user:notification", {"message": TOKEN})

    assert stream.getvalue().splitlines()[0] == "It is [REDACTED:github-token] now."
    assert TOKEN[:8] not in stream.getvalue()


async def test_no_secret_of_several_lines_shown_of_what_tool_puts_out(
    shown_on: ShownOn,
) -> None:
    stream = StringIO()
    body = [f"MIIEowIBAAKCAQEA{number}x7bq98Lk0v7mX2dW1zq8KdP4s" for number in range(3)]
    key = "\n".join(
        [
            "-----BEGIN RSA PRIVATE KEY-----",
            *body,
            "-----END RSA PRIVATE KEY-----",
            "made",
            "",
        ]
    )
    async with shown_on(stream, {"show_tool_lines": 9, "width": 120}) as coordinator:
        for start in range(0, len(key), 40):
            report = {
                "tool_name": "ssh-keygen",
                "tool_call_id": "1",
                "text": key[start : start + 40],
            }
            await coordinator.hooks.emit("tool:output", report)
        await coordinator.hooks.emit(
            "tool:output",
            {"tool_name": "t", "tool_call_id": "2", "text": f"a {TOKEN[:9]}"},
        )
        await coordinator.hooks.emit(
            "tool:output", {"tool_name": "t", "tool_call_id": "2", "text": TOKEN[9:]}
        )
        await coordinator.hooks.emit(
            "execution:end", {"status": "completed", "response": ""}
        )

    shown = stream.getvalue().splitlines()
    assert shown[:3] == [
        "tool ssh-keygen | [REDACTED:private-key]",
        "tool ssh-keygen | made",
        "tool t | a [REDACTED:github-token]",
    ]


@ONE_BACKEND
async def test_arguments_lose_what_stands_under_the_name_of_a_secret(
    shown_on: ShownOn,
) -> None:
    stream = StringIO()
    async with shown_on(stream) as coordinator:
        await coordinator.hooks.emit(
            "tool:pre", {"tool_name": "log in", "tool_input": {"password": "swordfish"}}
        )

    assert stream.getvalue() == "tool log in [REDACTED:password]\n"


class Shouting:
    """A redactor of another's making."""

    def redact_text(self, text: str) -> str:
        return text.replace("quiet", "LOUD")

    def redact(self, value: JSONValue) -> JSONValue:
        return value


class Broken(Shouting):
    def redact_text(self, text: str) -> str:
        raise ValueError(text)


@ONE_BACKEND
async def test_another_redactor_reads_whole_lines(shown_on: ShownOn, say: Say) -> None:
    stream = StringIO()
    async with shown_on(stream) as coordinator:
        coordinator.register_capability(REDACTOR, Shouting())
        for piece in ("be qu", "iet\nand qui", "et"):
            await say(coordinator, piece)
        await coordinator.hooks.emit(
            "content_block:end", {"block": {"type": "text"}, "block_index": 0}
        )

    assert stream.getvalue().splitlines() == ["be LOUD", "and LOUD"]


@ONE_BACKEND
async def test_a_redactor_that_fails_leaves_nothing_to_be_seen(
    shown_on: ShownOn, say: Say
) -> None:
    stream = StringIO()
    async with shown_on(stream) as coordinator:
        coordinator.register_capability(REDACTOR, Broken())
        await say(coordinator, "private\n")
        await coordinator.hooks.emit("user:notification", {"message": "private"})

    assert "private" not in stream.getvalue()
    assert "withheld" in stream.getvalue()


async def test_what_the_application_shows_is_left_to_it() -> None:
    stream = StringIO()
    steps = [
        calling(ToolCall(id="1", name="count", arguments={"upto": 2})),
        thinking("Hm.", "Two."),
    ]
    session = make_session(stream, *steps)
    session.coordinator.register_capability(
        "ui.shown", frozenset({"answers", "thinking", "tools"})
    )

    async with session:
        await session.execute("Count.")

    (line,) = stream.getvalue().splitlines()
    assert line.startswith("2 requests; 1 tool call")


async def test_children_that_the_application_shows_are_left_to_it(
    shown_on: ShownOn, say: Say
) -> None:
    stream = StringIO()
    async with (
        shown_on(stream, session_id="root", shown=frozenset({"children"})),
        shown_on(stream, session_id="root-1_scout", parent_id="root") as child,
    ):
        await say(child, "Found it.")

    assert stream.getvalue() == ""
