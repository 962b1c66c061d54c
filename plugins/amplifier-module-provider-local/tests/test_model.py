"""The embedded model itself: it answers, calls tools, is cancelled, and goes away."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import AsyncIterator, Callable
from subprocess import PIPE
from typing import Final

import anyio
import jsonschema_rs
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from amplifier_module_provider_local import LocalConfig, LocalProvider
from amplifier_sdk.chat import ChatRequest, ChatResponse, ToolChoice, ToolSpec
from amplifier_sdk.errors import ContextLengthError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import Message
from amplifier_sdk.streaming import TextDelta, ToolCallDelta

pytestmark = [pytest.mark.model, pytest.mark.process, pytest.mark.timeout(300)]
ONE_BACKEND: Final = pytest.mark.parametrize(
    "anyio_backend", ["asyncio"], scope="session"
)
"""For what the model does, whichever the event loop."""

QUESTION: Final = "When is the meeting? Read the file notes.txt"
NOTES: Final = "The meeting is on Friday at 10 in room 4. Bring the blue folder."
READ: Final = ToolSpec(
    name="read_file",
    description="Read lines of a text file, each with its number and a tab before it.",
    parameters={
        "type": "object",
        "properties": {
            "file_path": {"type": "string"},
            "offset": {"type": "integer", "default": 1},
        },
        "required": ["file_path"],
        "additionalProperties": False,
    },
)
ADD: Final = ToolSpec(
    name="add",
    description="Add two numbers.",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
LONG: Final[JSONObject] = {
    "type": "json_schema",
    "schema": {"type": "array", "items": {"type": "integer"}, "minItems": 1000},
}
"""A grammar that keeps the model writing for half a minute."""


@pytest.fixture(scope="module")
async def local() -> AsyncIterator[LocalProvider]:
    """One provider for the tests of a backend."""
    provider = LocalProvider(LocalConfig())
    yield provider
    await provider.aclose()


def ask(
    *messages: Message | str,
    tools: list[ToolSpec] | None = None,
    choice: ToolChoice | None = None,
    most: int = 40,
) -> ChatRequest:
    said = [
        Message(role="user", content=m) if isinstance(m, str) else m for m in messages
    ]
    return ChatRequest(
        messages=said, tools=tools, tool_choice=choice, max_output_tokens=most
    )


async def test_it_answers_without_key_and_configuration(local: LocalProvider) -> None:
    async with local.stream(
        ask("What is the capital of France? Answer in one sentence.")
    ) as stream:
        deltas = [item async for item in stream]

    response = deltas.pop()
    assert isinstance(response, ChatResponse)
    assert response.text
    assert (
        "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
        == response.text
    )
    assert response.usage is not None
    assert response.usage.input_tokens > 10
    assert 0 < response.usage.output_tokens <= 40


@ONE_BACKEND
async def test_forced_tool_is_called_and_its_result_answers_question(
    local: LocalProvider,
) -> None:
    async with local.stream(
        ask(QUESTION, tools=[READ], choice={"type": "tool", "name": "read_file"})
    ) as stream:
        deltas = [item async for item in stream]
    response = deltas.pop()
    assert isinstance(response, ChatResponse)
    [call] = response.tool_calls or ()
    result = Message(role="tool", tool_call_id=call.id, content=NOTES)
    said = Message.from_dict(response.to_message())
    answer = await local.complete(ask(QUESTION, said, result, tools=[READ]))

    assert call.arguments == {"file_path": "notes.txt"}
    assert (
        "".join(d.arguments for d in deltas if isinstance(d, ToolCallDelta))
        == call.raw_arguments
    )
    assert "room 4" in answer.text
    assert answer.tool_calls is None


@ONE_BACKEND
async def test_a_required_tool_is_chosen_by_its_name(local: LocalProvider) -> None:
    response = await local.complete(
        ask("Add 2 and 3", tools=[READ, ADD], choice="required")
    )

    [call] = response.tool_calls or ()
    assert call.name == "add"
    jsonschema_rs.validate(dict(ADD.parameters), call.arguments)


@ONE_BACKEND
async def test_an_open_choice_may_be_a_tool_or_text(local: LocalProvider) -> None:
    call = await local.complete(ask(QUESTION, tools=[READ, ADD]))
    text = await local.complete(ask("Say hello.", tools=[READ, ADD], most=8))

    assert [c.name for c in call.tool_calls or ()] == ["read_file"]
    assert (text.tool_calls, bool(text.text)) == (None, True)


async def test_two_requests_are_answered_at_once(local: LocalProvider) -> None:
    texts: list[str] = []

    async def one(question: str) -> None:
        texts.append((await local.complete(ask(question, most=12))).text)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one, "Say hello.")
        tasks.start_soon(one, "Count to three.")

    assert len(texts) == 2
    assert all(texts)


@ONE_BACKEND
async def test_an_answer_that_reaches_its_limit_says_so(local: LocalProvider) -> None:
    response = await local.complete(ask("Tell me a long story.", most=4))

    assert (response.finish_reason, response.is_complete) == ("length", False)


async def test_a_request_that_is_too_long_is_refused_with_the_figures(
    local: LocalProvider,
) -> None:
    with pytest.raises(
        ContextLengthError, match=r"has [56]\d{3} tokens and the model takes 4096"
    ):
        await local.complete(ask("word " * 5500))


@ONE_BACKEND
async def test_a_long_history_is_cut_to_half_the_window() -> None:
    local = LocalProvider(LocalConfig(n_ctx=1024, n_parallel=1))
    turns = [
        Message(role="user" if n % 2 == 0 else "assistant", content="blue " * 100)
        for n in range(10)
    ]

    response = await local.complete(ask(*turns, "Say hello.", most=4))
    await local.aclose()

    assert response.metadata is not None
    assert response.metadata["messages_left_out"] == 6
    assert response.usage is not None
    # the template's own system text is not counted
    assert 400 < response.usage.input_tokens < 512 + 32


async def test_cancelling_frees_the_slot() -> None:
    local = LocalProvider(LocalConfig(n_parallel=1, n_ctx=4096))
    endless = ChatRequest(
        messages=[Message(role="user", content="Count.")],
        response_format=LONG,
        max_output_tokens=3500,
    )

    async with local.stream(endless) as stream:
        async for _ in stream:
            break
    with anyio.fail_after(30):
        response = await local.complete(ask("Say hello.", most=2))
    await local.aclose()

    assert response.usage is not None


async def test_closing_ends_the_process_in_the_middle_of_an_answer(
    children: Callable[[int | None], list[int]],
) -> None:
    before = set(children(None))
    local = LocalProvider(LocalConfig())
    endless = ChatRequest(
        messages=[Message(role="user", content="Count.")],
        response_format=LONG,
        max_output_tokens=3500,
    )

    async with local.stream(endless) as stream:
        async for _ in stream:
            break
        running = set(children(None)) - before
        with anyio.fail_after(10):
            await local.aclose()
        after = set(children(None)) - before

    assert (len(running), after) == (1, set())


async def test_event_loop_goes_on_while_model_starts_and_answers() -> None:
    pauses = [await longest_pause(), await longest_pause()]

    # seconds; a model in the process would hold the loop longer already when it starts
    assert min(pauses) < 0.35


async def longest_pause() -> float:
    """Return for how long the event loop stood still at most while a model started and answered."""
    local = LocalProvider(LocalConfig())
    longest, done = 0.0, False

    async def watch() -> None:
        nonlocal longest
        last = anyio.current_time()
        while not done:
            await anyio.sleep(0.005)  # the beat whose regularity is measured
            now = anyio.current_time()
            longest, last = max(longest, now - last), now

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await local.complete(ask("Say hello.", most=8))
        done = True
    await local.aclose()
    return longest


@ONE_BACKEND
async def test_it_works_without_a_network_once_the_weights_are_there(
    local: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    await local.complete(ask("Say hello.", most=2))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    offline = LocalProvider(LocalConfig())

    response = await offline.complete(ask("Say hello.", most=2))
    await offline.aclose()

    assert response.usage is not None


PROGRAM: Final = """
import anyio
from amplifier_module_provider_local import LocalConfig, LocalProvider
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.messages import Message

async def main():
    provider = LocalProvider(LocalConfig())
    await provider.complete(ChatRequest(messages=[Message(role="user", content="Hi")], max_output_tokens=1))
    print("ready", flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.skipif(
    not hasattr(os, "pidfd_open"),
    reason="waits for a process that is not its own: needs Linux",
)
async def test_the_model_ends_with_a_program_that_was_killed(
    children: Callable[[int | None], list[int]],
) -> None:
    async with await anyio.open_process(
        [sys.executable, "-c", PROGRAM], stdout=PIPE, stderr=None
    ) as program:
        assert program.stdout is not None
        await BufferedByteReceiveStream(program.stdout).receive_until(b"ready\n", 1000)
        [server] = children(program.pid)
        handle = os.pidfd_open(server)
        program.send_signal(signal.SIGKILL)
        ended, _, _ = await anyio.to_thread.run_sync(
            select.select, [handle], [], [], 20
        )
        os.close(handle)

    assert ended == [handle]
