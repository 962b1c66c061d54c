"""Sessions of modules in the original's shape: each kind alone among ours, and all of them together."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from amplifier.testing import EventRecorder, MemoryJournal, create_test_session
from tests.compat.modules import context, hook, loop, needs_asyncio, provider, tool
from tests.doubles import answer, call, calling

CALL = {"id": "c1", "name": "count_words", "input": {"text": "two words"}}


async def test_a_session_of_original_modules_alone_runs_a_turn() -> None:
    recorder, journal = EventRecorder(), MemoryJournal()
    async with create_test_session(
        provider=provider,
        tools=[tool],
        hooks=[hook, recorder],
        orchestrator=loop,
        context=context,
        configs={"provider": {"steps": [CALL, "two"]}},
        journal=journal,
    ) as session:
        assert await session.execute("how many?") == "two"
        messages = await session.coordinator.context.get_messages()

    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert messages[2]["content"] == '{"words": 2}'
    assert recorder.one("tool:pre")["tool_name"] == "count_words"
    assert recorder.one("words:counted")["words"] == "two words"
    assert not session.failures


async def test_an_original_tool_runs_under_our_loop() -> None:
    script = [calling(call("count_words", {"text": "a b c"})), answer("three")]
    async with create_test_session(*script, tools=[tool]) as session:
        assert await session.execute("count") == "three"
        messages = await session.coordinator.context.get_messages()

    assert messages[2]["content"] == '{"words": 3}'
    assert session.coordinator.counted == 3  # type: ignore[attr-defined]  # the module's own


async def test_the_models_arguments_are_validated_before_an_original_tool() -> None:
    script = [calling(call("count_words", {"text": 3})), answer("no")]
    async with create_test_session(*script, tools=[tool]) as session:
        await session.execute("count")
        mounted = session.coordinator.tools["count_words"]

    assert mounted.original.inputs == []  # type: ignore[attr-defined]  # the module's own


async def test_an_original_provider_answers_our_loop() -> None:
    async with create_test_session(
        provider=provider,
        tools=[tool],
        configs={"provider": {"steps": [CALL, "two"]}},
    ) as session:
        assert await session.execute("how many?") == "two"
        assert session.spending.usage is not None
        assert session.spending.usage.total_tokens == 24
        info = session.coordinator.providers["scripted-original"].get_info()

    last = provider.ScriptedProvider.last
    assert last is not None
    assert last.closed
    assert [message.role for message in last.requests[1].messages] == [
        "user",
        "assistant",
        "tool",
    ]
    assert last.requests[0].tools[0].name == "count_words"
    assert info.config_fields[0].field_type == "secret"


async def test_an_original_hook_hears_copies_and_denies() -> None:
    script = [calling(call("count_words", {"text": "a"})), answer("done")]
    async with create_test_session(
        *script,
        tools=[tool],
        hooks=[hook],
        configs={"hook-0": {"deny": "count_words"}},
    ) as session:
        await session.execute("count")
        messages = await session.coordinator.context.get_messages()

    assert "not here" in str(messages[2]["content"])


async def test_an_original_hook_injects_into_the_request() -> None:
    async with create_test_session(
        answer("done"), hooks=[hook], configs={"hook-0": {"inject": "be brief"}}
    ) as session:
        await session.execute("hello")
        asked = session.coordinator.providers["scripted"].requests[0]  # type: ignore[attr-defined]

    assert asked.messages[-1].text == "be brief"
    assert asked.messages[-1].role == "user"


async def test_what_an_original_handler_does_to_its_data_stays_with_it() -> None:
    script = [calling(call("count_words", {"text": "a"})), answer("done")]
    async with create_test_session(*script, tools=[tool], hooks=[hook]) as session:
        await session.execute("count")
        inputs = session.coordinator.tools["count_words"].original.inputs  # type: ignore[attr-defined]

    assert inputs == [{"text": "a"}]


async def test_an_original_context_serves_our_loop() -> None:
    async with create_test_session(answer("hi"), context=context) as session:
        assert await session.execute("hello") == "hi"
        messages = await session.coordinator.context.get_messages()

    assert [message["timestamp"] for message in messages] == ["now", "now"]


async def test_an_original_context_gets_what_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[dict[str, object]] = []

    async def view(self: context.ListContext, **arguments: object) -> list[object]:
        given.append(arguments)
        return list(self.messages)

    monkeypatch.setattr(context.ListContext, "get_messages_for_request", view)
    async with create_test_session(answer("hi"), context=context) as session:
        await session.execute("hello")

    assert given[0].keys() == {"token_budget", "provider"}


async def test_an_original_loop_calls_our_provider_and_tools() -> None:
    script = [calling(call("count_words", {"text": "x y"})), answer("two")]
    async with create_test_session(*script, tools=[tool], orchestrator=loop) as session:
        assert await session.execute("count") == "two"


@pytest.mark.parametrize("name", ["loop-basic", "loop-events", "loop-streaming"])
async def test_our_loops_run_a_session_of_originals(name: str) -> None:
    (entry,) = entry_points(group="amplifier.modules", name=name)
    native = entry.load()
    async with create_test_session(
        provider=provider,
        tools=[tool],
        hooks=[hook],
        orchestrator=native,
        context=context,
        configs={
            "provider": {"steps": [CALL, "two"]},
            "hook-0": {"inject": "be brief"},
        },
    ) as session:
        assert await session.execute("how many?") == "two"
        messages = await session.coordinator.context.get_messages()

    assert [message["role"] for message in messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert messages[2]["content"] == '{"words": 2}'


@pytest.mark.parametrize("name", ["context-persistent", "context-simple"])
async def test_our_contexts_serve_an_original_loop(name: str, tmp_path: Path) -> None:
    (entry,) = entry_points(group="amplifier.modules", name=name)
    native = entry.load()
    file = {"transcript_path": str(tmp_path / "history.jsonl")}
    async with create_test_session(
        provider=provider,
        tools=[tool],
        orchestrator=loop,
        context=native,
        configs={
            "provider": {"steps": [CALL, "two"]},
            "context": file if name == "context-persistent" else {},
        },
    ) as session:
        assert await session.execute("how many?") == "two"
        messages = await session.coordinator.context.get_messages()

    assert [message["role"] for message in messages][-2:] == ["tool", "assistant"]


@pytest.mark.parametrize("module", [tool, provider, hook, context, loop])
async def test_each_module_has_the_original_shape(module: object) -> None:
    import amplifier_core

    assert module.__amplifier_module_type__  # type: ignore[attr-defined]
    assert amplifier_core.ToolResult is amplifier_core.models.ToolResult


async def test_what_needs_asyncio_is_refused_elsewhere_by_name(
    anyio_backend_name: str,
) -> None:
    script = [calling(call("sleeper")), answer("done")]
    async with create_test_session(*script, tools=[needs_asyncio]) as session:
        await session.execute("go")
        messages = await session.coordinator.context.get_messages()

    if anyio_backend_name == "asyncio":
        assert messages[2]["content"] == "awake"
    else:
        (failure,) = session.failures
        assert "it imports 'asyncio' (needs_asyncio.py:3)" in str(failure)
        assert "anyio.run(main, backend='asyncio')" in str(failure)
