"""Whole sessions with vendors' providers and a server that nobody here wrote: llama.cpp on the loopback interface."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import Final

import anyio
import attrs
import pytest

from amplifier import Agent, AmplifierSession, Image
from amplifier.testing import EventRecorder, TestCoordinator, create_test_session
from amplifier_kit.vendors import VendorProvider
from amplifier_module_context_simple import SimpleContext
from amplifier_module_loop_basic import BasicLoop
from amplifier_module_provider_anthropic import AnthropicProvider
from amplifier_module_provider_chat_completions import ChatCompletionsProvider
from amplifier_module_provider_openai import OpenAIProvider
from amplifier_sdk import tool
from amplifier_sdk.chat import ChatRequest, Usage
from amplifier_sdk.errors import (
    AuthenticationError,
    ContextLengthError,
    InvalidRequestError,
    LLMError,
    NetworkError,
    NotFoundError,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message
from amplifier_sdk.modules import definition_of
from amplifier_sdk.streaming import TextDelta, ToolCallDelta, ToolFinished, TurnFinished
from tests.integration.servers import Server, run_server

pytestmark = [pytest.mark.model, pytest.mark.process, pytest.mark.timeout(120)]

ENDLESS: Final[JSONObject] = {"ignore_eos": True}
"""Lets the server write until the limit of tokens."""

QUESTION: Final = "When is the meeting? Read the file notes.txt"
NOTES: Final = "The meeting is on Friday at 10 in room 4."


@attrs.frozen
class Vendor:
    """A vendor's provider, where the server speaks its protocol, and what the server leaves out of it."""

    module: type[VendorProvider]
    path: str
    knows_limits: bool = True
    knows_formats: bool = True

    def config(self, server: Server, **more: JSONValue) -> JSONObject:
        return {
            "base_url": f"{server.address}{self.path}",
            "api_key": server.key,
            "default_model": "smollm2",
            "temperature": 0,
            "max_tokens": 24,
            "min_retry_delay": 0.0,
            **more,
        }


VENDORS: Final = {
    "anthropic": Vendor(AnthropicProvider, "", knows_formats=False),
    "chat-completions": Vendor(ChatCompletionsProvider, "/v1"),
    "openai": Vendor(OpenAIProvider, "/v1", knows_limits=False, knows_formats=False),
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with run_server() as running:
        yield running


@pytest.fixture(params=sorted(VENDORS))
def vendor(request: pytest.FixtureRequest) -> Vendor:
    return VENDORS[request.param]


def talk(
    provider: Vendor,
    config: JSONObject,
    *,
    tools: Sequence[object] = (),
    first_tool: str | None = None,
) -> tuple[AmplifierSession, EventRecorder]:
    """Make a session of real parts, and hear its events."""
    events = EventRecorder()
    session = create_test_session(
        provider=provider.module,
        orchestrator=BasicLoop,
        context=SimpleContext,
        tools=tools,
        hooks=[events],
        configs={
            "provider": config,
            "orchestrator": {} if first_tool is None else {"first_tool": first_tool},
        },
    )
    return session, events


def used(session: AmplifierSession) -> Usage:
    """Return what the last turn used."""
    assert session.last_turn is not None
    assert session.last_turn.usage is not None
    return session.last_turn.usage


async def test_a_question_is_answered(vendor: Vendor, server: Server) -> None:
    session, _ = talk(vendor, vendor.config(server))

    async with session:
        text = await session.execute(
            "What is the capital of France? Answer in one sentence."
        )

    assert "Paris" in text
    assert session.last_turn is not None
    assert session.last_turn.finish_reason == "stop"
    assert 10 < used(session).input_tokens < 100
    assert 0 < used(session).output_tokens <= 24


async def test_the_next_question_takes_the_history_along(
    vendor: Vendor, server: Server
) -> None:
    session, _ = talk(vendor, vendor.config(server, max_tokens=12))

    async with session:
        await session.execute("Say hello.")
        first = used(session)
        await session.execute("Say it again.")
        second = used(session)

    assert second.input_tokens > first.input_tokens + first.output_tokens


async def test_an_answer_that_reaches_its_limit_is_cut(
    vendor: Vendor, server: Server
) -> None:
    if not vendor.knows_limits:
        pytest.skip("the server calls such an answer `completed` there")
    session, _ = talk(vendor, vendor.config(server, max_tokens=3))

    async with session:
        await session.execute("Tell me a story.")

    assert session.last_turn is not None
    assert (session.last_turn.finish_reason, used(session).output_tokens) == (
        "length",
        3,
    )


async def test_an_answer_has_the_form_that_a_schema_asks_for(
    vendor: Vendor, server: Server
) -> None:
    if not vendor.knows_formats:
        pytest.skip("the server passes over the schema there")
    provider = provider_of(vendor, vendor.config(server))
    request = ChatRequest(
        messages=[Message(role="user", content="Is water wet?")],
        response_format={"type": "json_schema", "schema": {"enum": [{"wet": True}]}},
    )

    response = await provider.complete(request)
    await provider.aclose()

    assert json.loads(response.text) == {"wet": True}


@attrs.frozen
class Person:
    name: str
    age: int


def provider_of(vendor: Vendor, config: JSONObject) -> VendorProvider:
    """Make a vendor's provider outside a session."""
    definition = definition_of(vendor.module)
    assert definition is not None
    provider = definition.build(TestCoordinator(), config)
    assert isinstance(provider, VendorProvider)
    return provider


async def test_an_agent_answers_with_a_value_by_the_schema(
    vendor: Vendor, server: Server
) -> None:
    if not vendor.knows_formats:
        pytest.skip("the server passes over the schema there")
    provider = provider_of(vendor, vendor.config(server, max_tokens=60))
    agent = Agent(provider, output=Person, output_mode="schema", output_retries=0)

    async with aclosing(provider):
        result = await agent.run("Ada is 36 years old.")

    assert result.output == Person("Ada", 36)
    assert result.degradations == ()


async def test_an_agent_answers_with_a_value_by_the_tool(
    vendor: Vendor, server: Server
) -> None:
    provider = provider_of(vendor, vendor.config(server, max_tokens=60))
    agent = Agent(provider, output=Person, output_mode="tool", output_retries=0)

    async with aclosing(provider):
        result = await agent.run("Call final_answer with the name Ada and the age 36")

    assert result.output == Person("Ada", 36)
    assert result.degradations == ()
    assert [message["role"] for message in result.messages] == ["user", "assistant"]


async def test_the_first_delta_comes_early_and_leaving_ends_the_work(
    vendor: Vendor, server: Server
) -> None:
    session, _ = talk(
        vendor, vendor.config(server, max_tokens=2000, extra_request_params=ENDLESS)
    )

    await server.wait_until_idle()
    async with session:
        async with session.stream("Tell me a story.") as events:
            async for event in events:
                if isinstance(event, TextDelta) and event.text:
                    break
            busy = await server.busy()
        await server.wait_until_idle()

    assert busy == 1


async def test_a_tool_is_called_and_its_result_answers_the_question(
    vendor: Vendor, server: Server
) -> None:
    paths: list[str] = []

    @tool
    async def read_file(path: str) -> str:
        """Read a text file."""
        paths.append(path)
        return NOTES

    session, _ = talk(
        vendor,
        vendor.config(server, max_tokens=48),
        tools=[read_file],
        first_tool="read_file",
    )

    async with session, session.stream(QUESTION) as events:
        heard = [event async for event in events]

    end = heard.pop()
    assert isinstance(end, TurnFinished)
    assert paths == ["notes.txt"]
    assert "10" in end.text
    assert (end.tool_calls, end.iterations) == (1, 2)
    [finished] = [event for event in heard if isinstance(event, ToolFinished)]
    assert finished.result.success
    pieces = [event.arguments for event in heard if isinstance(event, ToolCallDelta)]
    assert finished.call.raw_arguments in (None, "".join(pieces))
    assert "notes.txt" in "".join(pieces)


async def test_two_requests_are_answered_at_once(
    vendor: Vendor, server: Server
) -> None:
    began = [anyio.Event(), anyio.Event()]
    texts: list[str] = []

    async def one(index: int, question: str) -> None:
        session, _ = talk(vendor, vendor.config(server, extra_request_params=ENDLESS))
        async with session, session.stream(question) as events:
            async for event in events:
                if isinstance(event, TextDelta) and event.text:
                    began[index].set()
                    await began[1 - index].wait()
                elif isinstance(event, TurnFinished):
                    texts.append(event.text)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, 0, "Count to three.")
            tasks.start_soon(one, 1, "Tell me a story.")

    assert len(texts) == 2
    assert all(texts)


@pytest.mark.parametrize(
    ("prompt", "change", "error", "said"),
    [
        pytest.param(
            "word " * 3000,
            {},
            ContextLengthError,
            r"\b30\d\d\b.*\b2048\b",
            id="too-long",
        ),
        pytest.param(
            "Hello",
            {"api_key": "wrong"},
            AuthenticationError,
            "Invalid API Key",
            id="wrong-key",
        ),
        pytest.param(
            "Hello",
            {"base_url": "{}/nowhere"},
            NotFoundError,
            "File Not Found",
            id="wrong-path",
        ),
        pytest.param(
            "Hello",
            {"base_url": "http://127.0.0.1:9"},
            NetworkError,
            "127.0.0.1:9",
            id="nobody-there",
        ),
    ],
)
async def test_a_request_that_cannot_be_answered_is_a_precise_error(
    prompt: str,
    change: JSONObject,
    error: type[LLMError],
    said: str,
    vendor: Vendor,
    server: Server,
) -> None:
    change = {key: str(value).format(server.address) for key, value in change.items()}
    session, events = talk(
        vendor, vendor.config(server, **{"max_retries": 1, **change})
    )

    async with session:
        with pytest.raises(error, match=said) as caught:
            await session.execute(prompt)

    assert type(caught.value) is error
    assert (caught.value.provider, caught.value.model) == (
        vendor.module.name,
        "smollm2",
    )
    assert server.key not in f"{caught.value!r} {events.events!r}"
    retries = [name for name, _ in events.events if name == "provider:retry"]
    assert len(retries) == (1 if error is NetworkError else 0)


PICTURE: Final = Image.data(
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0", name="dot.png"
)


async def test_an_image_for_a_blind_model_is_refused_in_one_line(
    server: Server, vendor: Vendor
) -> None:
    session, events = talk(vendor, vendor.config(server, media=["image/png"]))
    with anyio.fail_after(60):
        async with session:
            with pytest.raises(LLMError) as raised:
                await session.execute(["What is it?", PICTURE])

    output = str(raised.value)
    assert "image input is not supported" in output
    assert output.endswith("`media: []` for text alone")
    assert "\n" not in output
    assert len(events.data("llm:request")) == 1, "it is not sent again"


async def test_an_image_is_refused_unsent_where_the_model_is_known(
    server: Server, vendor: Vendor
) -> None:
    is_listed = vendor.module is ChatCompletionsProvider
    more: JSONObject = {} if is_listed else {"media": []}
    session, events = talk(vendor, vendor.config(server, **more))
    with anyio.fail_after(60):
        async with session:
            with pytest.raises(
                InvalidRequestError, match=r"'dot.png' of the prompt is not sent: this"
            ):
                await session.execute(["What is it?", PICTURE])

    assert events.data("llm:request") == []


async def test_an_image_becomes_a_text_where_that_is_permitted(
    server: Server, vendor: Vendor
) -> None:
    config = vendor.config(server, media=[], degrade=True)
    session, _ = talk(vendor, config)
    with anyio.fail_after(60):
        async with session:
            await session.execute(["Say hello.", PICTURE])
            assert session.last_turn is not None
            (loss,) = session.last_turn.degradations

    assert loss.reason == "this model cannot see"
