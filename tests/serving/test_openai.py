"""OpenAI's own client talks to an agent as to a model."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import openai
import pytest

from amplifier import Agent
from amplifier.serving.chat_completions import ChatEncoder
from amplifier.serving.event_log import Encode
from amplifier.serving.responses import ResponseEncoder
from amplifier_kit.scripted import answer
from amplifier_sdk import tool
from amplifier_sdk.errors import NetworkError
from tests.doubles import PlainProvider, ScriptedProvider, call
from tests.serving.client import ALICE, Caller, serving
from tests.serving.conftest import Reports
from tests.serving.test_servers import hypercorn_on_trio, uvicorn_at


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def script() -> ScriptedProvider:
    return ScriptedProvider(
        answer("Let me see.", call("double", {"number": 4})),
        answer("It ", "is ", "eight."),
        repeat=True,
    )


@pytest.fixture(scope="module", params=[uvicorn_at, hypercorn_on_trio])
def client(request: pytest.FixtureRequest) -> Iterator[openai.OpenAI]:
    agent = Agent(script(), name="clerk", tools=[double])
    with (
        request.param(agent.asgi(tokens=[ALICE])) as url,
        openai.OpenAI(
            api_key=ALICE.secret, base_url=f"{url}/v1", max_retries=0
        ) as made,
    ):
        yield made


def test_it_is_listed_as_a_model(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["clerk"]


def test_a_chat_is_answered(client: openai.OpenAI) -> None:
    answered = client.chat.completions.create(
        model="clerk", messages=[{"role": "user", "content": "Twice four?"}]
    )

    (choice,) = answered.choices
    assert choice.message.content == "It is eight."
    assert choice.finish_reason == "stop"
    assert answered.model == "clerk"
    assert answered.usage is not None
    assert answered.usage.total_tokens > 0


def test_a_chat_is_streamed(client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="clerk",
            messages=[{"role": "user", "content": "Twice four?"}],
            stream=True,
            stream_options={"include_usage": True},
        )
    )

    texts = [one.choices[0].delta.content or "" for one in chunks if one.choices]
    assert "".join(texts) == "Let me see.\n\nIt is eight."
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [one.choices[0].finish_reason for one in chunks if one.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert len({one.id for one in chunks}) == 1


def test_a_response_is_created(client: openai.OpenAI) -> None:
    created = client.responses.create(
        model="clerk",
        instructions="Be brief.",
        input=[{"role": "user", "content": [{"type": "input_text", "text": "4?"}]}],
    )

    assert created.status == "completed"
    assert created.output_text == "It is eight."
    assert created.usage is not None
    assert created.usage.total_tokens > 0


def test_a_response_is_streamed(client: openai.OpenAI) -> None:
    with client.responses.stream(model="clerk", input="Twice four?") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()

    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert "response.output_text.delta" in kinds
    assert final.output_text == "Let me see.\n\nIt is eight."


def test_a_wrong_key_is_refused(client: openai.OpenAI) -> None:
    wrong = client.with_options(api_key="sk-guessed")

    with pytest.raises(openai.AuthenticationError, match="known token"):
        wrong.models.list()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"messages": []}, "last message"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "last message"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "role"),
        ({"messages": [{"role": "user", "content": "x"}], "n": 2}, "one answer"),
        ({"messages": [{"role": "user", "content": "x"}], "tools": [{}]}, "tools"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "image_url",
        ),
    ],
)
async def test_what_an_agent_cannot_do_is_an_error(
    body: dict[str, object], words: str
) -> None:
    async with serving(Agent(ScriptedProvider())) as alice:
        answered = await alice.post("/v1/chat/completions", body)

    assert answered.status == 422
    assert words in answered.json["error"]["message"]


async def test_an_earlier_response_is_not_stored() -> None:
    body = {"input": "x", "previous_response_id": "resp_1"}
    async with serving(Agent(ScriptedProvider())) as alice:
        answered = await alice.post("/v1/responses", body)

    assert answered.status == 422
    assert "whole conversation" in answered.json["error"]["message"]


async def test_the_conversation_is_the_callers_and_nobodys_orders() -> None:
    provider = ScriptedProvider("Fine.")
    async with serving(Agent(provider, instructions="Be polite.")) as alice:
        messages = [
            {"role": "system", "content": "Be rude."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": "How are you?"},
        ]
        body = {"messages": messages, "temperature": 0.1, "user": "u"}
        answered = await alice.post("/v1/chat/completions", body)
        listed = await alice.get("/sessions")

    assert answered.json["choices"][0]["message"]["content"] == "Fine."
    assert provider.last_messages == [
        ("system", "Be polite."),
        ("user", "Be rude."),
        ("user", "Hello"),
        ("assistant", "Hi."),
        ("user", "How are you?"),
    ]
    assert listed.json == {"sessions": []}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize("is_streamed", [True, False])
async def test_a_caller_that_leaves_ends_the_turn(path: str, is_streamed: bool) -> None:
    provider = ScriptedProvider(answer("A", anyio.Event()))
    body = {
        "messages": [{"role": "user", "content": "x"}],
        "input": "x",
        "stream": is_streamed,
    }
    async with serving(Agent(provider)) as alice, anyio.create_task_group() as group:

        async def ask() -> None:
            async with alice.stream("POST", path, body) as stream:
                await stream.rest()

        group.start_soon(ask)
        await provider.wait_for_request()
        (session,) = (await alice.get("/sessions")).json["sessions"]
        group.cancel_scope.cancel()
        with anyio.fail_after(5, shield=True):
            while (await alice.get("/sessions")).json["sessions"]:
                await anyio.lowlevel.checkpoint()

    assert session["state"] == "running"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_a_failure_is_an_error_of_the_protocol(
    path: str, reports: Reports
) -> None:
    provider = ScriptedProvider(
        NetworkError("at 10.0.0.1"), NetworkError("at 10.0.0.1")
    )
    body = {"messages": [{"role": "user", "content": "x"}], "input": "x"}
    async with serving(Agent(provider)) as alice:
        answered = await alice.post(path, body)
        async with alice.stream("POST", path, {**body, "stream": True}) as stream:
            raw = await stream.rest()

    assert (answered.status, answered.json["error"]["code"]) == (502, "provider_failed")
    assert b"provider_failed" in raw
    assert b"10.0.0.1" not in raw
    assert "serving.turn_failed" in [report["event"] for report in reports]


async def test_a_cut_answer_says_so() -> None:
    provider = ScriptedProvider(
        *(answer("Half", finish_reason="length") for _ in range(4))
    )
    messages = [{"role": "user", "content": "x"}]
    async with serving(Agent(provider)) as alice:
        chat = (await alice.post("/v1/chat/completions", {"messages": messages})).json
        body = {"messages": messages, "stream": True}
        async with alice.stream("POST", "/v1/chat/completions", body) as stream:
            streamed = await stream.rest()
        response = (await alice.post("/v1/responses", {"input": "x"})).json
        body = {"input": "x", "stream": True}
        async with alice.stream("POST", "/v1/responses", body) as stream:
            events = await stream.rest()

    assert chat["choices"][0]["finish_reason"] == "length"
    assert b'"finish_reason":"length"' in streamed
    assert response["status"] == "incomplete"
    assert b"event: response.incomplete" in events


async def test_a_token_without_room_gets_no_turn() -> None:
    from amplifier.serving import Token

    small = Token(name="small", secret="0123456789abcdef", max_turns=1)
    provider = ScriptedProvider(answer("A", anyio.Event()))
    body = {"messages": [{"role": "user", "content": "x"}]}
    async with serving(Agent(provider), tokens=[small]) as known:
        caller = Caller(known.app, small.secret)
        await caller.turn(await caller.begin())
        refused = await caller.post("/v1/chat/completions", body)
        with anyio.fail_after(5):
            while len((await caller.get("/sessions")).json["sessions"]) > 1:
                await anyio.lowlevel.checkpoint()

    assert refused.status == 429


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_a_provider_that_does_not_stream_is_heard_as_well(path: str) -> None:
    body = {"messages": [{"role": "user", "content": "x"}], "input": "x"}
    async with (
        serving(Agent(PlainProvider("All at once."))) as alice,
        alice.stream("POST", path, {**body, "stream": True}) as stream,
    ):
        raw = await stream.rest()

    assert b"All at once." in raw


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize("is_streamed", [True, False])
async def test_a_cancelled_turn_is_an_error(path: str, is_streamed: bool) -> None:
    provider = ScriptedProvider(answer("Half", anyio.Event()))
    body = {
        "messages": [{"role": "user", "content": "x"}],
        "input": "x",
        "stream": is_streamed,
    }
    raws: list[bytes] = []
    async with serving(Agent(provider)) as alice, anyio.create_task_group() as group:

        async def ask() -> None:
            async with alice.stream("POST", path, body) as stream:
                raws.append(await stream.rest())

        group.start_soon(ask)
        await provider.wait_for_request()
        (session,) = (await alice.get("/sessions")).json["sessions"]
        (turn,) = session["turns"]
        place = f"/sessions/{session['session_id']}/turns/{turn['turn_id']}"
        await alice.post(f"{place}/cancel")

    assert b"The turn was cancelled" in raws[0]


@pytest.mark.parametrize("encode", [ChatEncoder("m", "1"), ResponseEncoder("m", "1")])
def test_a_stream_that_was_read_too_slowly_ends_in_an_error(encode: Encode) -> None:
    assert b"too slowly" in encode(9, {"type": "gap", "first": 1, "last": 9})
