"""A whole turn: the model thinks, calls a tool, reads its result and answers."""

from __future__ import annotations

from collections.abc import Callable

from amplifier.testing import EventRecorder, MockTool, create_test_session
from amplifier.testing.transport import HttpAnswer, ScriptedTransport
from amplifier_module_provider_anthropic import AnthropicProvider
from amplifier_sdk.jsontypes import JSONObject, JSONValue

Stream = Callable[[str], bytes]


def _module(*streams: bytes) -> tuple[type[AnthropicProvider], ScriptedTransport]:
    script = ScriptedTransport(*(HttpAnswer(parts=(data,)) for data in streams))
    return type("Played", (AnthropicProvider,), {"transport": script}), script


def _messages(body: JSONValue) -> list[JSONObject]:
    assert isinstance(body, dict)
    messages = body["messages"]
    assert isinstance(messages, list)
    return messages


async def test_what_model_thought_goes_back_with_result_of_its_call(
    stream: Stream,
) -> None:
    module, script = _module(stream("redacted-thinking"), stream("text"))
    tool = MockTool("get_time", return_value="12:00")
    session = create_test_session(
        provider=module,
        tools=[tool],
        configs={"provider": {"api_key": "sk-test", "enable_prompt_caching": False}},
    )

    async with session:
        answer = await session.execute("What time is it?")

    assert answer == "Hello! Größe: 🙂"
    assert tool.last_input == {"zone": "UTC"}
    _, said, result = _messages(script.bodies[1])
    assert said == {
        "role": "assistant",
        "content": [
            {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4a"},
            {
                "type": "thinking",
                "thinking": "Right.",
                "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds",
            },
            {
                "type": "tool_use",
                "id": "toolu_01E",
                "name": "get_time",
                "input": {"zone": "UTC"},
            },
        ],
    }
    assert result == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_01E", "content": "12:00"}
        ],
    }


async def test_a_turn_begins_as_the_one_before_it_did(stream: Stream) -> None:
    module, script = _module(stream("tool"), stream("text"), stream("text"))
    session = create_test_session(
        provider=module,
        tools=[MockTool("get_weather", return_value="sunny")],
        configs={"provider": {"api_key": "sk-test", "enable_prompt_caching": False}},
    )

    async with session:
        await session.execute("How is the weather?")
        await session.execute("And tomorrow?")

    first, second, third = (_messages(body) for body in script.bodies)
    assert second[: len(first)] == first
    assert third[: len(second)] == second


async def test_an_exchange_is_told_without_the_key(stream: Stream) -> None:
    module, _ = _module(stream("text"))
    session = create_test_session(
        provider=module,
        configs={"provider": {"api_key": "sk-test-0123456789", "raw": True}},
    )

    async with session:
        recorder = EventRecorder.of(session.coordinator.hooks, "llm:*")
        await session.execute("Hello.")

    (asked, request), (answered, response) = recorder.get_events()
    assert (asked, answered) == ("llm:request", "llm:response")
    assert (request["model"], response["status"]) == ("claude-sonnet-5-5", "ok")
    assert "sk-test-0123456789" not in repr(recorder.get_events())
