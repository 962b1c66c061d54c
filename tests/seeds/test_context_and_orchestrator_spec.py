"""The samples of the context and orchestrator specification, with the modules that ship.

The specification is the older one: its `execute` returns a `Response` and takes a list of hooks, and its context has
no `get_messages_for_request`; there the contracts win. Its role `function` for tool results is read and kept.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from amplifier import AmplifierSession, ModuleLoader
from amplifier.testing import EventRecorder, MockTool, ScriptedProvider, answer, call
from amplifier.testing.sessions import mounting
from amplifier_sdk import MessageDict, ThinkingBlock, ToolCallBlock
from amplifier_sdk.chat import COMPLETE_FINISH_REASONS
from amplifier_sdk.jsontypes import JSONObject

THINKING: JSONObject = {"type": "thinking", "thinking": "...", "signature": "sig_abc"}
CALL: JSONObject = {
    "type": "tool_call",
    "id": "call_1",
    "name": "search",
    "input": {"query": "x"},
}
MESSAGES: list[MessageDict] = [
    {"role": "user", "content": "Search for x."},
    {
        "role": "assistant",
        "content": [
            THINKING,
            {"type": "text", "text": "Let me search for that."},
            CALL,
        ],
    },
    {
        "role": "function",
        "tool_call_id": "call_1",
        "content": [
            {"type": "tool_result", "tool_call_id": "call_1", "output": "found"}
        ],
    },
    {
        "role": "assistant",
        "content": [THINKING, {"type": "text", "text": "Based on search results..."}],
    },
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "...", "visibility": "internal"},
            {"type": "text", "text": "x"},
        ],
    },
]


def a_session(provider: ScriptedProvider, *hooks: object) -> AmplifierSession:
    """A session of the shipped loop and context, a scripted provider, and the tool `search`."""
    modules = {
        "provider": mounting(provider),
        "search": mounting(MockTool("search", "found " * 40)),
        **{f"hook-{index}": hook for index, hook in enumerate(hooks)},
    }
    plan: Mapping[str, object] = {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": ["provider"],
        "tools": ["search"],
        "hooks": [name for name in modules if name.startswith("hook-")],
    }
    return AmplifierSession(plan, ModuleLoader(modules=modules))


async def test_content_blocks_and_thinking_round_trip_exactly() -> None:
    async with a_session(ScriptedProvider()) as session:
        context = session.coordinator.context
        for message in MESSAGES:
            await context.add_message(message)

        assert list(await context.get_messages()) == MESSAGES


async def test_thinking_with_its_signature_is_sent_again() -> None:
    provider = ScriptedProvider("Done.")
    async with a_session(provider) as session:
        await session.coordinator.context.set_messages(MESSAGES)
        await session.execute("Go on.")

    sent = provider.requests[0].messages
    signatures = [
        block.signature
        for message in sent
        for block in message.blocks
        if isinstance(block, ThinkingBlock)
    ]
    assert signatures == ["sig_abc", "sig_abc", None]
    assert [message.role for message in sent] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "assistant",
        "user",
    ]


async def test_call_and_result_leave_view_together() -> None:
    recorder = EventRecorder()
    steps = [
        step
        for _ in range(20)
        for step in (answer(call("search", {"query": "x"})), "Found.")
    ]
    provider = ScriptedProvider(*steps, context_window=2_100, max_output_tokens=500)
    async with a_session(provider, recorder) as session:
        for number in range(20):
            await session.execute(f"Search {number}.")
        stored = await session.coordinator.context.get_messages()

    calls: set[str | None] = set()
    results: set[str | None] = set()
    for message in provider.requests[-1].messages:
        calls |= {
            block.id for block in message.blocks if isinstance(block, ToolCallBlock)
        }
        results |= {message.tool_call_id} if message.role == "tool" else set()
    assert calls == results
    assert len(stored) == 20 * 4
    before, after = (
        recorder.data("context:pre_compact")[-1],
        recorder.data("context:post_compact")[-1],
    )
    assert {"before_tokens", "before_messages", "strategy"} <= before.keys()
    assert {
        "after_tokens",
        "after_messages",
        "removed_tokens",
        "removed_messages",
    } <= after.keys()


async def test_every_event_of_a_turn_tells_where_it_belongs() -> None:
    recorder = EventRecorder()
    provider = ScriptedProvider(answer(call("search", {"query": "x"})), "Found.")
    async with a_session(provider, recorder) as session:
        await session.execute("Search.")
        session_id = session.session_id

    turn = [
        name
        for name in recorder.names
        if name.split(":")[0] in ("prompt", "provider", "tool")
    ]
    assert turn == [
        "prompt:submit",
        *("provider:request", "provider:response"),
        *("tool:pre", "tool:post"),
        *("provider:request", "provider:response"),
        "prompt:complete",
    ]
    events = {name: recorder.data(name) for name in turn}
    assert {data["session_id"] for entries in events.values() for data in entries} == {
        session_id
    }
    assert (
        len({data["turn_id"] for entries in events.values() for data in entries}) == 1
    )
    assert [data["iteration"] for data in events["provider:request"]] == [0, 1]
    first, second = (data["span_id"] for data in events["provider:request"])
    assert first != second
    assert events["tool:pre"][0]["span_id"] not in (first, second)
    assert "parent_span_id" in events["tool:pre"][0]


@pytest.mark.parametrize("member", ["get_token_count", "compact"])
async def test_shipped_context_has_specifications_further_members(
    member: str,
) -> None:
    async with a_session(ScriptedProvider("Hi.")) as session:
        await session.execute("Hello")
        answered = await getattr(session.coordinator.context, member)()

    assert answered is not None


def test_an_answer_is_whole_only_when_it_says_so() -> None:
    assert sorted(COMPLETE_FINISH_REASONS) == ["stop", "tool_calls"]
