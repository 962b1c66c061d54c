"""The provider with a server whose answers the tests write."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import anyio
import httpx2
import pytest

from amplifier.testing import TestCoordinator, VirtualClock, create_test_session
from amplifier.testing.transport import (
    HttpAnswer,
    HttpPart,
    HttpStep,
    ScriptedTransport,
    json_answer,
    json_lines,
)
from amplifier_module_provider_ollama import OllamaConfig, OllamaProvider
from amplifier_sdk import tool
from amplifier_sdk.chat import ChatRequest, ChatResponse, ModelInfo, ToolSpec
from amplifier_sdk.configuration import read_config
from amplifier_sdk.content import ImageBlock
from amplifier_sdk.errors import (
    AuthenticationError,
    ConfigError,
    ContextLengthError,
    InvalidRequestError,
    LLMError,
    LLMTimeoutError,
    NetworkError,
    NotFoundError,
    ProviderUnavailableError,
    StreamError,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import image_block
from amplifier_sdk.messages import Message
from amplifier_sdk.streaming import Delta, TextDelta

END: Final[JSONObject] = {
    "message": {"content": ""},
    "done": True,
    "done_reason": "stop",
    "eval_count": 1,
}
HELLO: Final = HttpAnswer(
    parts=(json_lines({"message": {"content": "Hello"}, "done": False}, END),)
)
MISSING: Final = json_answer({"error": "model 'llama3.2:3b' not found"}, status=404)
LOOK_UP: Final = ToolSpec(name="look_up", parameters={"type": "object"})


def make(
    *steps: HttpStep, **config: object
) -> tuple[OllamaProvider, ScriptedTransport]:
    provider = OllamaProvider(
        OllamaConfig(**{"max_retries": 0, **config}),  # type: ignore[arg-type]
        TestCoordinator(),
    )
    provider.transport = transport = ScriptedTransport(*steps)
    return provider, transport


def ask(**more: object) -> ChatRequest:
    return ChatRequest(messages=[Message(role="user", content="Hi")], **more)  # type: ignore[arg-type]  # by their names


def paths(transport: ScriptedTransport) -> list[str]:
    return [request.url.path for request in transport.requests]


def messages_of(body: JSONValue) -> list[JSONObject]:
    messages = body.get("messages") if isinstance(body, dict) else None
    return (
        [dict(message) for message in messages if isinstance(message, Mapping)]
        if isinstance(messages, list)
        else []
    )


def pulling(*lines: JSONObject, parts: Sequence[HttpPart] = ()) -> HttpAnswer:
    return HttpAnswer(parts=(json_lines(*lines), *parts))


async def test_an_answer_comes_from_this_machine_without_a_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OLLAMA_HOST", "OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    provider, transport = make(HELLO)

    response = await provider.complete(ask())

    assert response.text == "Hello"
    [request] = transport.requests
    assert str(request.url) == "http://127.0.0.1:11434/api/chat"
    assert "authorization" not in request.headers
    assert transport.bodies[0] == {
        "model": "llama3.2:3b",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "truncate": False,
        "options": {"num_ctx": 8192, "num_predict": 4096},
    }


async def test_the_environment_names_the_server_and_a_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "box.example/behind")
    monkeypatch.setenv("OLLAMA_API_KEY", "key-of-a-cloud")
    provider, transport = make(HELLO)

    await provider.complete(ask())

    [request] = transport.requests
    assert str(request.url) == "http://box.example:11434/behind/api/chat"
    assert request.headers["authorization"] == "Bearer key-of-a-cloud"


@pytest.mark.parametrize("host", ["ftp://box", "http://box:port"])
def test_a_host_that_is_none_is_an_error_of_the_configuration(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)

    with pytest.raises(ConfigError, match="base_url"):
        make()


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(ConfigError, match="num_ctx"):
        read_config(OllamaConfig, {"num_ctxt": 1}, subject="provider-ollama")


def test_a_password_in_the_address_is_not_shown() -> None:
    config = OllamaConfig(host="https://me:s3cr3t@box.example")

    assert "s3cr3t" not in repr(config)
    with pytest.raises(ValueError, match="another name") as caught:
        OllamaConfig(host="https://me:s3cr3t@box.example", base_url="box")
    assert "s3cr3t" not in str(caught.value)


def test_it_says_what_it_is_without_a_network() -> None:
    info = make(default_model="qwen3", num_ctx=32768)[0].get_info()

    assert (info.id, info.display_name) == ("ollama", "Ollama")
    assert info.credential_env_vars == ()
    assert info.defaults == {
        "model": "qwen3",
        "context_window": 32768,
        "max_output_tokens": 4096,
    }
    assert [
        (field.id, field.env_var, field.required) for field in info.config_fields
    ] == [
        ("api_key", "OLLAMA_API_KEY", False),
        ("base_url", "OLLAMA_HOST", False),
        ("default_model", None, False),
    ]


SHOWN: Final[Mapping[str, JSONObject]] = {
    "qwen3:8b": {
        "capabilities": ["completion", "tools", "thinking"],
        "details": {"family": "qwen3", "parameter_size": "8.2B"},
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
    },
    "tiny:latest": {
        "model_info": {"general.architecture": "t", "t.context_length": 512}
    },
    "nomic-embed-text:latest": {"capabilities": ["embedding"]},
    "odd:latest": {
        "capabilities": "all",
        "details": [],
        "model_info": 5,
        "thinking": {"values": "x"},
    },
}


def shown(request: httpx2.Request) -> HttpAnswer:
    if request.url.path == "/api/tags":
        return json_answer(
            {"models": [*({"model": name} for name in SHOWN), {"name": ""}, 5]}
        )
    return json_answer(SHOWN[json.loads(request.content)["model"]])


async def test_the_models_of_the_server_are_listed_with_what_they_can() -> None:
    provider, transport = make(shown)

    models = await provider.list_models()

    assert models == [
        ModelInfo(
            id="qwen3:8b",
            display_name="qwen3:8b (8.2B)",
            context_window=8192,
            max_output_tokens=4096,
            capabilities=("streaming", "json_mode", "thinking", "tools"),
        ),
        ModelInfo(
            id="tiny:latest",
            display_name="tiny:latest",
            context_window=512,
            max_output_tokens=512,
            capabilities=("streaming", "json_mode"),
        ),
        ModelInfo(
            id="odd:latest",
            display_name="odd:latest",
            context_window=8192,
            max_output_tokens=4096,
            capabilities=("streaming", "json_mode"),
        ),
    ]
    assert paths(transport) == ["/api/tags", *["/api/show"] * 4]


@pytest.mark.parametrize(
    "listing", [{}, [], {"models": None}], ids=["empty", "list", "null"]
)
async def test_a_server_that_lists_nothing_has_no_models(listing: JSONValue) -> None:
    assert await make(json_answer(listing))[0].list_models() == []


async def test_thinking_support_is_queried_once_when_needed() -> None:
    levels: JSONObject = {
        "thinking": {"values": ["low", "medium", "high"], "default": "medium"}
    }
    provider, transport = make(HELLO, json_answer(levels), HELLO, HELLO)

    await provider.complete(ask())
    await provider.complete(ask(reasoning_effort="high"))
    await provider.complete(ask(reasoning_effort="low"))

    assert paths(transport) == ["/api/chat", "/api/show", "/api/chat", "/api/chat"]
    assert [
        body.get("think") for body in transport.bodies if isinstance(body, dict)
    ] == [None, None, "high", "low"]


async def test_vision_support_is_queried_once_when_needed() -> None:
    provider, transport = make(
        HELLO, json_answer({"capabilities": ["completion"]}), HELLO, HELLO
    )
    picture = Message(role="user", content=[image_block("image/png", "AAAA")])
    asked = ChatRequest(messages=[picture, *ask().messages])

    await provider.complete(ask())
    response = await provider.complete(asked)
    await provider.complete(asked)

    assert paths(transport) == ["/api/chat", "/api/show", "/api/chat", "/api/chat"]
    assert response.degradation is not None
    assert response.degradation.reason == "this model cannot see"


@pytest.mark.parametrize(
    ("capabilities", "sees"),
    [(["completion", "vision"], True), (["completion"], False), ([], True)],
    ids=["vision", "blind", "unrecorded"],
)
async def test_image_of_prompt_is_sent_only_to_models_that_see(
    capabilities: list[JSONValue], sees: bool
) -> None:
    provider, transport = make(json_answer({"capabilities": capabilities}), HELLO)
    picture = Message(role="user", content=[image_block("image/png", "AAAA")])

    if sees:
        await provider.complete(ChatRequest(messages=[picture]))
        assert "AAAA" in str(transport.bodies[-1])
    else:
        with pytest.raises(InvalidRequestError, match="this model cannot see; leave"):
            await provider.complete(ChatRequest(messages=[picture]))
    assert paths(transport) == ["/api/show", *(["/api/chat"] if sees else [])]


async def test_image_by_its_address_is_refused_before_the_request() -> None:
    provider, transport = make(json_answer({"capabilities": ["vision"]}))
    source: JSONObject = {"type": "url", "url": "https://example.com/a.png"}
    picture = Message(role="user", content=[ImageBlock(source=source)])

    with pytest.raises(InvalidRequestError, match="fetches none by its address"):
        await provider.complete(ChatRequest(messages=[picture]))

    assert paths(transport) == ["/api/show"]


async def test_effort_that_model_does_not_know_is_told_in_answer() -> None:
    provider, _ = make(json_answer({"capabilities": ["completion"]}), HELLO)

    response = await provider.complete(ask(reasoning_effort="high"))

    assert response.degradation is not None
    assert response.degradation.actual == "no thinking"


async def test_a_missing_model_is_an_error_that_says_how_to_get_it() -> None:
    provider, transport = make(MISSING)

    with pytest.raises(
        NotFoundError, match=r"run `ollama pull llama3\.2:3b`.* or set `auto_pull`"
    ) as caught:
        await provider.complete(ask())

    assert (caught.value.status_code, caught.value.provider, caught.value.model) == (
        404,
        "ollama",
        "llama3.2:3b",
    )
    assert paths(transport) == ["/api/chat"]


async def test_server_not_there_is_error_that_says_how_to_start_it() -> None:
    provider, transport = make(
        *[httpx2.ConnectError("refused")] * 3, max_retries=2, min_retry_delay=0.0
    )

    with pytest.raises(
        NetworkError,
        match=r"http://127\.0\.0\.1:11434: refused; start it with `ollama serve`",
    ):
        await provider.complete(ask())

    assert len(transport.requests) == 3


def test_request_tried_three_times_unless_config_says_otherwise() -> None:
    assert OllamaConfig().max_retries == 2
    with pytest.raises(ValueError, match="max_retries"):
        OllamaConfig(max_retries=-1)


async def test_a_path_that_no_ollama_has_is_no_missing_model() -> None:
    provider, _ = make(
        HttpAnswer(
            status=404,
            headers={"content-type": "text/plain"},
            parts=(b"404 page not found",),
        )
    )

    with pytest.raises(NotFoundError, match="404 page not found") as caught:
        await provider.complete(ask())

    assert "ollama pull" not in str(caught.value)


PROGRESS: Final[tuple[JSONObject, ...]] = (
    {"status": "pulling manifest"},
    {
        "status": "pulling 6a0746a1ec1a",
        "digest": "sha256:6a0746a1ec1a",
        "total": 100,
        "completed": 50,
    },
    {"status": "verifying sha256 digest"},
)


async def test_missing_model_is_fetched_before_answer_where_wanted() -> None:
    provider, transport = make(
        MISSING, pulling(*PROGRESS, {"status": "success"}), HELLO, auto_pull=True
    )

    async with provider.stream(ask()) as stream:
        items = [item async for item in stream]

    assert items[0] == TextDelta(text="")
    assert isinstance(items[-1], ChatResponse)
    assert items[-1].text == "Hello"
    assert paths(transport) == ["/api/chat", "/api/pull", "/api/chat"]
    assert transport.bodies[1] == {"model": "llama3.2:3b", "stream": True}
    assert all(transport.closed)


def test_a_long_fetch_shows_every_few_seconds_that_it_lives(
    anyio_backend_name: str,
) -> None:
    half_a_minute = tuple(
        part for _ in range(60) for part in (json_lines(PROGRESS[1]), 0.5)
    )
    fetched = HttpAnswer(parts=(*half_a_minute, json_lines({"status": "success"})))

    async def answer() -> list[Delta | ChatResponse]:
        provider, _ = make(MISSING, fetched, HELLO, auto_pull=True)
        async with provider.stream(ask()) as stream:
            return [item async for item in stream]

    items = VirtualClock().run(answer, backend=anyio_backend_name)

    assert items[: items.index(TextDelta(text="Hello"))] == [TextDelta(text="")] * 6


def test_a_fetch_that_takes_too_long_is_given_up(anyio_backend_name: str) -> None:
    endless = HttpAnswer(parts=(json_lines(PROGRESS[1]), 5.0) * 100)

    async def answer() -> float:
        provider, _ = make(MISSING, endless, auto_pull=True, pull_timeout=42.0)
        with pytest.raises(LLMTimeoutError, match="42 s"):
            await provider.complete(ask())
        return anyio.current_time()

    assert VirtualClock().run(answer, backend=anyio_backend_name) == 42


@pytest.mark.parametrize(
    ("report", "error", "said"),
    [
        (
            pulling({"error": "pull model manifest: file does not exist"}),
            NotFoundError,
            "file does not exist",
        ),
        (pulling(*PROGRESS), StreamError, "before it was there"),
        (pulling(*PROGRESS, parts=(b"<html>",)), StreamError, "not JSON"),
        (
            json_answer({"error": "disk is full"}, status=500),
            ProviderUnavailableError,
            "disk is full",
        ),
    ],
    ids=["unknown", "cut", "page", "refused"],
)
async def test_failed_fetch_names_provider_and_model(
    report: HttpAnswer, error: type[LLMError], said: str
) -> None:
    provider, transport = make(MISSING, report, auto_pull=True)

    with pytest.raises(error, match=said) as caught:
        await provider.complete(ask())

    assert (caught.value.provider, caught.value.model) == ("ollama", "llama3.2:3b")
    assert paths(transport) == ["/api/chat", "/api/pull"]


async def test_a_model_is_fetched_once_for_a_request() -> None:
    provider, transport = make(
        MISSING, pulling({"status": "success"}), MISSING, auto_pull=True
    )

    with pytest.raises(NotFoundError):
        await provider.complete(ask())

    assert paths(transport) == ["/api/chat", "/api/pull", "/api/chat"]


OVERLONG: Final[JSONObject] = {
    "error": {
        "code": 400,
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 8889,
        "n_ctx": 4096,
        "message": "m",
    }
}


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (
            json.dumps(OVERLONG),
            "has 8889 tokens and the model was loaded with 4096; shorten it, or raise `num_ctx`",
        ),
        (OVERLONG["error"], "has 8889 tokens"),
        ("the input length exceeds the context length", "raise `num_ctx`"),
        (
            "the prompt is longer than the context length currently available to the model",
            "raise `num_ctx`",
        ),
    ],
    ids=["nested", "object", "text", "other-text"],
)
async def test_request_that_is_too_long_is_error_with_figures(
    problem: JSONValue, said: str
) -> None:
    provider, _ = make(json_answer({"error": problem}, status=400))

    with pytest.raises(ContextLengthError, match=said) as caught:
        await provider.complete(ask())

    assert caught.value.status_code == 400


@pytest.mark.parametrize(
    ("status", "problem", "error"),
    [
        (400, '"llama3.2:3b" does not support thinking', InvalidRequestError),
        (401, "unauthorized", AuthenticationError),
        (
            500,
            "model requires more system memory (5.6 GiB) than is available (4.1 GiB)",
            ProviderUnavailableError,
        ),
        (
            503,
            "server busy, please try again. maximum pending requests exceeded",
            ProviderUnavailableError,
        ),
    ],
    ids=["400", "401", "500", "503"],
)
async def test_a_refusal_has_the_servers_words(
    status: int, problem: str, error: type[LLMError]
) -> None:
    provider, _ = make(json_answer({"error": problem}, status=status))

    with pytest.raises(error) as caught:
        await provider.complete(ask())

    assert problem in str(caught.value)


async def test_a_tool_that_the_model_calls_runs_in_a_session() -> None:
    words: list[str] = []

    @tool
    async def look_up(word: str) -> str:
        """Look up a word."""
        words.append(word)
        return "the sea's rise and fall"

    call: JSONObject = {"function": {"name": "look_up", "arguments": {"word": "tide"}}}
    calls = HttpAnswer(
        parts=(
            json_lines(
                {"message": {"content": "", "tool_calls": [call]}, "done": False}, END
            ),
        )
    )
    provider, transport = make(calls, HELLO)
    session = create_test_session(provider=provider, tools=[look_up])

    async with session:
        text = await session.execute("What is a tide?")

    assert (text, words) == ("Hello", ["tide"])
    _, called, result = messages_of(transport.bodies[1])
    assert (result["tool_name"], result["content"]) == (
        "look_up",
        "the sea's rise and fall",
    )
    assert called["tool_calls"] == [{"id": result["tool_call_id"], **call}]


async def test_the_connection_is_closed_as_soon_as_the_last_line_came() -> None:
    provider, transport = make(
        HttpAnswer(parts=(json_lines({"message": {"content": "Hello"}}, END), 3600.0))
    )

    response = await provider.complete(ask())

    assert (response.text, transport.closed) == ("Hello", [True])


async def test_leaving_an_answer_closes_its_connection() -> None:
    provider, transport = make(
        HttpAnswer(parts=(json_lines({"message": {"content": "Hel"}}), 3600.0))
    )

    async with provider.stream(ask()) as stream:
        first = await anext(stream)

    assert (first, transport.closed) == (TextDelta(text="Hel"), [True])
