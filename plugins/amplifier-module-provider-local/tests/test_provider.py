"""What the provider makes of requests and answers, with a server whose answers the tests write."""

from __future__ import annotations

import json
import queue
import re
import socket
import socketserver
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import anyio
import attrs
import pytest
from anyio import to_thread

from amplifier_module_provider_local import LocalConfig, LocalProvider
from amplifier_sdk.chat import (
    ChatRequest,
    ChatResponse,
    Degradation,
    ToolChoice,
    ToolSpec,
    Usage,
)
from amplifier_sdk.content import (
    ContentBlock,
    ImageBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from amplifier_sdk.errors import (
    AuthenticationError,
    ContextLengthError,
    InvalidRequestError,
    LLMError,
    LLMTimeoutError,
    NetworkError,
    NotFoundError,
    ProviderUnavailableError,
    RateLimitError,
    StreamError,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import image_block
from amplifier_sdk.messages import Message
from amplifier_sdk.streaming import Delta, TextDelta, ToolCallDelta

pytestmark = pytest.mark.process


@attrs.define(eq=False)
class Request:
    """A request as the server read it."""

    path: str
    headers: str
    body: JSONObject


@attrs.frozen
class Reply:
    """What a server sends; `hold` keeps the connection until the client closes it, `length` is what it promises."""

    body: bytes = b""
    status: int = 200
    content_type: str = "text/event-stream"
    hold: bool = False
    length: int | None = None


@attrs.define(eq=False)
class Peer:
    """An HTTP server on the loopback interface that sends what it is told, one reply after the other.

    It speaks from threads, so that both backends meet the same peer. `left` gets an item when a client closes
    a connection that was held.
    """

    replies: list[Reply] = attrs.field(factory=list)
    requests: list[Request] = attrs.field(factory=list)
    left: queue.Queue[str] = attrs.field(factory=queue.Queue)
    tokens: Reply | None = None
    address: str = ""

    def chats(self) -> list[JSONObject]:
        """The chat requests' bodies, in order."""
        return [
            request.body
            for request in self.requests
            if request.path == "/v1/chat/completions"
        ]

    def handle(self, connection: socket.socket) -> None:
        request = _read(connection)
        if request is None:
            return
        self.requests.append(request)
        reply = (
            (self.tokens or _tokens(request))
            if request.path == "/tokenize"
            else self.replies.pop(0)
        )
        length = (
            f"Content-Length: {reply.length}\r\n" if reply.length is not None else ""
        )
        head = f"HTTP/1.1 {reply.status} X\r\nContent-Type: {reply.content_type}\r\n{length}Connection: close\r\n\r\n"
        connection.sendall(head.encode() + reply.body)
        if reply.hold:
            while connection.recv(1024):
                pass
            self.left.put("closed")


def _read(connection: socket.socket) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    while length is not None and len(body) < int(length[1]):
        body += connection.recv(65536)
    return Request(
        head.split()[1].decode(), head.decode(), json.loads(body) if body else {}
    )


def _tokens(request: Request) -> Reply:
    """Split a text into tokens of four bytes; what is no text is sent as numbers, as llama.cpp does."""
    text = str(request.body["content"]).encode()
    pieces = [text[start : start + 4] for start in range(0, len(text), 4)]
    tokens = [
        {"id": 1, "piece": piece.decode() if piece.isascii() else list(piece)}
        for piece in pieces
    ]
    return Reply(
        json.dumps({"tokens": tokens}).encode(), content_type="application/json"
    )


@pytest.fixture
def peer(fake_llama: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    """A server for one test, which the fake llama.cpp says is its own."""
    peer = Peer()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                peer.handle(self.request)
            except OSError:
                peer.left.put("broken")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        peer.address = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setenv("AMPLIFIER_FAKE_LLAMA_ADDRESS", peer.address)
        yield peer
        server.shutdown()
        thread.join()


@pytest.fixture
async def local(fake_llama: Path, peer: Peer) -> AsyncIterator[LocalProvider]:
    """The provider, with a real child process whose answers `peer` gives."""
    provider = LocalProvider(LocalConfig(model_path=str(fake_llama)))
    yield provider
    await provider.aclose()


def written(
    *pieces: str,
    reason: str | None = "stop",
    usage: tuple[int, int] | None = (10, 2),
    end: bytes = b"data: [DONE]\n\n",
    between: bytes = b"",
    hold: bool = False,
) -> Reply:
    """Write the stream of an answer: its pieces, why it ended, and what it used."""
    chunks: list[JSONValue] = [
        {"choices": [{"delta": {"role": "assistant", "content": None}}]}
    ]
    chunks += [
        {"choices": [{"delta": {"content": piece}, "finish_reason": None}]}
        for piece in pieces
    ]
    if reason is not None:
        chunks.append({"choices": [{"delta": {}, "finish_reason": reason}]})
    if usage is not None:
        chunks.append({"choices": [], "usage": _usage(*usage)})
    events = [
        b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"
        for chunk in chunks
    ]
    return Reply(between.join(events) + end, hold=hold)


def _usage(read: int, written: int) -> JSONObject:
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "prompt_tokens_details": {"cached_tokens": 3},
    }


def refused(status: int, **problem: JSONValue) -> Reply:
    """Write a refusal as llama.cpp does."""
    return Reply(
        json.dumps({"error": {"code": status, **problem}}).encode(),
        status,
        "application/json",
    )


READ: Final = ToolSpec(
    name="read_file",
    description="Read a text file, whole. Slow for large ones.",
    parameters={
        "type": "object",
        "properties": {"file_path": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["file_path"],
    },
)
ADD: Final = ToolSpec(
    name="add",
    description="Add two numbers",
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
)
QUESTION: Final = "When is the meeting? Read the file notes.txt"


def ask(
    text: str = "Hello",
    *,
    tools: Sequence[ToolSpec] | None = None,
    tool_choice: ToolChoice | None = None,
    max_output_tokens: int | None = None,
) -> ChatRequest:
    messages = [Message(role="user", content=text)]
    return ChatRequest(
        messages=messages,
        tools=tools,
        tool_choice=tool_choice,
        max_output_tokens=max_output_tokens,
    )


async def take(
    provider: LocalProvider, request: ChatRequest
) -> tuple[list[Delta], ChatResponse]:
    items: list[Delta] = []
    async with provider.stream(request) as stream:
        async for item in stream:
            if isinstance(item, ChatResponse):
                return items, item
            items.append(item)
    raise AssertionError("no response")


async def test_an_answer_streams_and_its_last_item_is_the_whole_of_it(
    local: LocalProvider, peer: Peer
) -> None:
    peer.replies = [written("Hel", "lo", "\u2028!")]

    deltas, response = await take(local, ask())

    assert deltas == [
        TextDelta(text="Hel"),
        TextDelta(text="lo"),
        TextDelta(text="\u2028!"),
    ]
    assert response == ChatResponse(
        content=[TextBlock(text="Hello\u2028!")],
        finish_reason="stop",
        usage=Usage(
            input_tokens=10, output_tokens=2, total_tokens=12, cache_read_tokens=3
        ),
        metadata={"model": "tiny"},
    )


async def test_half_of_a_surrogate_pair_is_sent_as_a_question_mark(
    local: LocalProvider, peer: Peer
) -> None:
    peer.replies = [written("Hello")]

    await local.complete(ask("broken \ud83d text"))

    assert "broken ? text" in str(peer.chats()[0]["messages"])


async def test_complete_gives_the_same_answer(local: LocalProvider, peer: Peer) -> None:
    peer.replies = [written("Hello")]

    response = await local.complete(ask())

    assert response.text == "Hello"
    assert peer.chats()[0]["stream"] is True


async def test_an_empty_answer_has_no_content(local: LocalProvider, peer: Peer) -> None:
    peer.replies = [written(usage=None)]

    response = await local.complete(ask())

    assert (response.content, response.usage, response.finish_reason) == (
        (),
        None,
        "stop",
    )


async def test_an_answer_that_was_cut_off_says_so(
    local: LocalProvider, peer: Peer
) -> None:
    peer.replies = [written("Once upon a", reason="length")]

    response = await local.complete(ask())

    assert (response.text, response.finish_reason, response.is_complete) == (
        "Once upon a",
        "length",
        False,
    )


async def test_an_answer_that_goes_round_in_circles_is_ended(
    local: LocalProvider, peer: Peer
) -> None:
    peer.replies = [
        attrs.evolve(
            written(*["It is in the notes. "] * 6, reason=None, usage=None, end=b""),
            hold=True,
        )
    ]

    response = await local.complete(ask())

    assert response.text == "It is in the notes. " * 5
    assert response.finish_reason == "stop"
    assert str(response.degradation) == (
        "its beginning instead of an answer to its end: the model said the same over and over"
    )
    assert await to_thread.run_sync(peer.left.get) == "closed"


async def test_keepalives_are_empty_deltas_and_unknown_is_skipped(
    local: LocalProvider, peer: Peer
) -> None:
    unknown = (
        b'event: news\ndata: {"kind": "progress", "choices": '
        b'"none", "usage": 3}\n\ndata: {"choices": [4]}\n\n: hi\n\n'
    )
    peer.replies = [written("a", "b", between=unknown, usage=None)]

    deltas, response = await take(local, ask())

    assert (
        "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "ab"
    )
    assert deltas.count(TextDelta(text="")) == 3
    assert response.text == "ab"


@pytest.mark.parametrize(
    ("reply", "error", "words"),
    [
        pytest.param(
            lambda: written("a", end=b""),
            StreamError,
            "before the answer was whole",
            id="no end mark",
        ),
        pytest.param(
            lambda: written("a", reason=None),
            StreamError,
            "without a reason",
            id="no reason",
        ),
        pytest.param(
            lambda: Reply(b'data: {"choices": [{"del'),
            StreamError,
            "ended",
            id="cut in the middle",
        ),
        pytest.param(
            lambda: Reply(b"data: <html>\n\n"),
            StreamError,
            "not JSON: '<html>'",
            id="not JSON",
        ),
        pytest.param(
            lambda: Reply(b"data: [1]\n\n"),
            StreamError,
            "no JSON object",
            id="no object",
        ),
        pytest.param(
            lambda: Reply(b"<html>", content_type="text/html"),
            StreamError,
            "answered with text/html",
            id="HTML",
        ),
        pytest.param(
            lambda: written(
                "a",
                end=b'data: {"error": {"code": 500, "message": "out of memory"}}\n\n',
                reason=None,
            ),
            ProviderUnavailableError,
            "out of memory",
            id="error in the middle",
        ),
        pytest.param(
            lambda: Reply(b'data: {"error": {"message": "odd"}}\n\n'),
            ProviderUnavailableError,
            "odd",
            id="no code",
        ),
        pytest.param(
            lambda: Reply(b"data: " + b"x" * 17_000_000),
            StreamError,
            "longer than",
            id="an endless event",
        ),
        pytest.param(
            lambda: refused(
                400, type="exceed_context_size_error", n_prompt_tokens=5531, n_ctx=4096
            ),
            ContextLengthError,
            "has 5531 tokens and the model takes 4096",
            id="too long",
        ),
        pytest.param(
            lambda: refused(400, message="bad schema"),
            InvalidRequestError,
            "bad schema",
            id="400",
        ),
        pytest.param(
            lambda: refused(401, message="Invalid API Key"),
            AuthenticationError,
            "API Key",
            id="401",
        ),
        pytest.param(
            lambda: refused(404, message="File Not Found"),
            NotFoundError,
            "Not Found",
            id="404",
        ),
        pytest.param(
            lambda: refused(429, message="slow down"),
            RateLimitError,
            "slow down",
            id="429",
        ),
        pytest.param(
            lambda: refused(503, message="loading"),
            ProviderUnavailableError,
            "loading",
            id="503",
        ),
        pytest.param(
            lambda: refused(418, message="teapot"),
            LLMError,
            "status 418: teapot",
            id="418",
        ),
        pytest.param(
            lambda: Reply(b"<h1>Oops</h1>", status=500),
            ProviderUnavailableError,
            "<h1>Oops",
            id="no JSON",
        ),
        pytest.param(
            lambda: Reply(b"[]", status=500),
            ProviderUnavailableError,
            "no reason given",
            id="other JSON",
        ),
        pytest.param(
            lambda: Reply(b"x" * 200_000, status=500),
            ProviderUnavailableError,
            "xxx",
            id="a long refusal",
        ),
        pytest.param(
            lambda: Reply(b"", status=500),
            ProviderUnavailableError,
            "no reason given",
            id="nothing at all",
        ),
    ],
)
async def test_a_bad_answer_is_an_error_that_names_provider_and_model(
    local: LocalProvider,
    peer: Peer,
    reply: Callable[[], Reply],
    error: type[LLMError],
    words: str,
) -> None:
    peer.replies = [reply()]

    with pytest.raises(error, match=words) as caught:
        await local.complete(ask())

    assert type(caught.value) is error
    assert (caught.value.provider, caught.value.model) == ("local", "tiny")
    assert peer.replies == []


async def test_connection_that_breaks_in_middle_is_stream_error(
    local: LocalProvider, peer: Peer
) -> None:
    peer.replies = [attrs.evolve(written("a", end=b""), length=10_000)]

    with pytest.raises(StreamError, match="broke"):
        await local.complete(ask())


async def test_a_server_that_died_unseen_is_started_again(
    local: LocalProvider,
    peer: Peer,
    monkeypatch: pytest.MonkeyPatch,
    children: Callable[[int | None], list[int]],
) -> None:
    monkeypatch.setenv("AMPLIFIER_FAKE_LLAMA_ADDRESS", "http://127.0.0.1:9")
    with pytest.raises(NetworkError, match="cannot be reached"):
        await local.complete(ask())
    monkeypatch.setenv("AMPLIFIER_FAKE_LLAMA_ADDRESS", peer.address)
    peer.replies = [written("Hello")]

    assert (await local.complete(ask())).text == "Hello"
    assert len(children(None)) == 1


async def test_leaving_the_stream_ends_the_request(
    local: LocalProvider, peer: Peer
) -> None:
    peer.replies = [written("a", reason=None, usage=None, end=b"", hold=True)]

    async with local.stream(ask()) as stream:
        async for item in stream:
            assert item == TextDelta(text="a")
            break

    await closed(peer)


async def test_cancelling_ends_the_request(local: LocalProvider, peer: Peer) -> None:
    peer.replies = [
        written("a", reason=None, usage=None, end=b"", hold=True),
        written("Hello"),
    ]

    with anyio.CancelScope() as scope:
        async with local.stream(ask()) as stream:
            async for _ in stream:
                scope.cancel()

    assert scope.cancelled_caught
    await closed(peer)
    assert (await local.complete(ask())).text == "Hello"


async def test_server_that_falls_silent_is_timeout_and_started_anew(
    local: LocalProvider,
    peer: Peer,
    monkeypatch: pytest.MonkeyPatch,
    children: Callable[[int | None], list[int]],
) -> None:
    monkeypatch.setattr("amplifier_module_provider_local.wire._IDLE", 0.5)
    peer.replies = [
        written("Hello"),
        written("a", reason=None, usage=None, end=b"", hold=True),
        written("Hello"),
    ]
    await local.complete(ask())
    stuck = children(None)

    with pytest.raises(LLMTimeoutError, match="silent"):
        await local.complete(ask())

    await closed(peer)
    assert not children(None)
    assert (await local.complete(ask())).text == "Hello"
    assert len(children(None)) == len(stuck) == 1


async def test_waiting_for_a_free_slot_gives_signs_of_life(
    fake_llama: Path, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amplifier_kit.vendors.slots.SIGN_OF_LIFE", 0.05)
    local = LocalProvider(LocalConfig(model_path=str(fake_llama), n_parallel=1))
    peer.replies = [
        written("first", reason=None, usage=None, end=b"", hold=True),
        written("second"),
    ]
    first = local.stream(ask())
    async with first as stream:
        assert await anext(stream) == TextDelta(text="first")
        async with local.stream(ask()) as waiting:
            life = await anext(waiting)
    await local.aclose()

    assert life == TextDelta(text="")


async def test_requests_wait_for_a_free_slot(fake_llama: Path, peer: Peer) -> None:
    local = LocalProvider(LocalConfig(model_path=str(fake_llama), n_parallel=1))
    peer.replies = [
        written("first", reason=None, usage=None, end=b"", hold=True),
        written("second"),
    ]
    started = anyio.Event()

    async def hold() -> None:
        async with local.stream(ask()) as stream:
            async for _ in stream:
                started.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold)
        await started.wait()
        with anyio.move_on_after(0.2) as waited:
            await local.complete(ask())
        in_flight = len(peer.chats())
        tasks.cancel_scope.cancel()
    answer = await local.complete(ask())
    await local.aclose()

    assert (waited.cancelled_caught, in_flight) == (True, 1)
    assert answer.text == "second"


HELLO: Final = [Message(role="user", content="Hello")]


@pytest.mark.parametrize(
    ("request_", "sent"),
    [
        pytest.param(
            ask(),
            {"temperature": 0.0, "max_tokens": 512, "repeat_penalty": 1.1},
            id="defaults",
        ),
        pytest.param(
            ChatRequest(messages=HELLO, temperature=0.7, top_p=0.5),
            {"temperature": 0.7, "top_p": 0.5},
            id="sampling",
        ),
        pytest.param(
            ChatRequest(messages=HELLO, max_output_tokens=7, stop=("x", "y")),
            {"max_tokens": 7, "stop": ["x", "y"]},
            id="ends",
        ),
        pytest.param(
            ChatRequest(messages=HELLO, model="tiny", response_format={"type": "text"}),
            {},
            id="text of the only model",
        ),
        pytest.param(
            ChatRequest(messages=HELLO, response_format={"type": "json"}),
            {"response_format": {"type": "json_object"}, "repeat_penalty": 1.0},
            id="any JSON",
        ),
        pytest.param(
            ChatRequest(
                messages=HELLO,
                response_format={"type": "json_schema", "schema": {"type": "integer"}},
            ),
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {"type": "integer"}},
                }
            },
            id="JSON by a schema",
        ),
    ],
)
async def test_what_the_request_asks_for_reaches_the_server(
    local: LocalProvider, peer: Peer, request_: ChatRequest, sent: JSONObject
) -> None:
    peer.replies = [written("Hello")]

    await local.complete(request_)

    [body] = peer.chats()
    assert {name: body.get(name) for name in sent} == sent
    assert body.keys() <= {
        "messages",
        "temperature",
        "max_tokens",
        "repeat_penalty",
        "stream",
        "stream_options",
        *sent,
    }


@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        (
            ChatRequest(messages=HELLO, model="gpt-9"),
            NotFoundError,
            "'gpt-9' is not here; this provider has 'tiny' alone",
        ),
        (ask(max_output_tokens=0), InvalidRequestError, "above 0; got 0"),
        (
            ChatRequest(messages=HELLO, response_format={"type": "xml"}),
            InvalidRequestError,
            "'json_schema' with its 'schema'; got",
        ),
        (ask(tool_choice="required"), InvalidRequestError, "the request offers none"),
        (ask(tool_choice="any", tools=[ADD]), InvalidRequestError, "got 'any'"),
        (
            ask(tool_choice={"type": "tool", "name": "read_fil"}, tools=[READ, ADD]),
            InvalidRequestError,
            "forces 'read_fil', and the request offers read_file, add; did you mean 'read_file'",
        ),
        (
            ask(tool_choice={"type": "tool", "name": "x"}),
            InvalidRequestError,
            "offers no tools",
        ),
        (
            ChatRequest(
                messages=[Message(role="system", content="Be good")],
                tools=[ADD],
                tool_choice="required",
            ),
            InvalidRequestError,
            "last user message; there is none",
        ),
    ],
)
async def test_a_request_that_cannot_be_answered_says_why(
    local: LocalProvider,
    peer: Peer,
    request_: ChatRequest,
    error: type[LLMError],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        await local.complete(request_)

    assert peer.requests == []


async def test_a_forced_tool_is_asked_for_its_arguments_alone(
    local: LocalProvider, peer: Peer
) -> None:
    peer.replies = [written('{"file_', 'path": "notes.txt"}')]
    choice = {"type": "tool", "name": "read_file"}

    deltas, response = await take(
        local,
        ask(QUESTION, tools=[READ, ADD], tool_choice=choice, max_output_tokens=60),
    )

    [call] = response.tool_calls or ()
    assert (call.name, call.arguments, call.problem) == (
        "read_file",
        {"file_path": "notes.txt"},
        None,
    )
    assert response.content == (
        ToolCallBlock(id=call.id, name="read_file", input={"file_path": "notes.txt"}),
    )
    assert response.finish_reason == "tool_calls"
    assert response.metadata == {"model": "tiny", "tool_choice": "forced"}
    assert response.degradation is None
    assert deltas == [
        ToolCallDelta(id=call.id, name="read_file", arguments='{"file_'),
        ToolCallDelta(id=call.id, name="read_file", arguments='path": "notes.txt"}'),
    ]
    [body] = peer.chats()
    assert body["max_tokens"] == 60
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {
            "schema": {
                "type": "object",
                "properties": {"file_path": {"type": "string", "maxLength": 100}},
                "required": ["file_path"],
                "additionalProperties": False,
            }
        },
    }
    assert body["messages"] == [
        {
            "role": "system",
            "content": "Extract the arguments of read_file from the request as JSON.",
        },
        {"role": "user", "content": "Read a text file: alpha.txt"},
        {"role": "assistant", "content": '{"file_path": "alpha.txt"}'},
        {"role": "user", "content": "Read a text file: docs/beta.md"},
        {"role": "assistant", "content": '{"file_path": "docs/beta.md"}'},
        {"role": "user", "content": "Read a text file: gamma.csv"},
        {"role": "assistant", "content": '{"file_path": "gamma.csv"}'},
        {"role": "user", "content": QUESTION},
    ]


async def test_a_required_tool_is_named_first(local: LocalProvider, peer: Peer) -> None:
    peer.replies = [
        written("ad", "d", between=b": hi\n\n"),
        written('{"a": 2, "b": 3}'),
    ]

    deltas, response = await take(
        local, ask("Add 2 and 3", tools=[READ, ADD], tool_choice="required")
    )

    [call] = response.tool_calls or ()
    assert (call.name, call.arguments) == ("add", {"a": 2, "b": 3})
    assert response.metadata == {"model": "tiny", "tool_choice": "grammar"}
    assert response.usage == Usage(
        input_tokens=20, output_tokens=4, total_tokens=24, cache_read_tokens=6
    )
    assert TextDelta(text="") in deltas
    assert deltas[-1] == ToolCallDelta(
        id=call.id, name="add", arguments='{"a": 2, "b": 3}'
    )
    naming = peer.chats()[0]
    assert naming["grammar"] == 'root ::= "read_file" | "add"'
    assert naming["messages"] == [
        {"role": "system", "content": "Name the tool for the request."},
        {"role": "user", "content": "Read a text file: alpha.txt"},
        {"role": "assistant", "content": "read_file"},
        {"role": "user", "content": "Add two numbers: 7, 12"},
        {"role": "assistant", "content": "add"},
        {"role": "user", "content": "Read a text file: docs/beta.md"},
        {"role": "assistant", "content": "read_file"},
        {"role": "user", "content": "Add two numbers: 12, 40"},
        {"role": "assistant", "content": "add"},
        {"role": "user", "content": "Add 2 and 3"},
    ]


async def test_many_tools_have_one_example_each(
    local: LocalProvider, peer: Peer
) -> None:
    tools = [
        ToolSpec(name=f"tool_{number}", parameters={"type": "object"})
        for number in range(9)
    ]
    peer.replies = [written("tool_8"), written("{}")]

    response = await local.complete(ask("Go", tools=tools, tool_choice="required"))

    [call] = response.tool_calls or ()
    assert (call.name, call.arguments) == ("tool_8", {})
    messages = peer.chats()[0]["messages"]
    assert isinstance(messages, list)
    assert len(messages) == 1 + 2 * 9 + 1
    assert messages[1] == {"role": "user", "content": "tool 0"}


async def test_the_rule_decides_what_the_request_leaves_open(
    local: LocalProvider, peer: Peer
) -> None:
    peer.replies = [written('{"file_path": "notes.txt"}'), written("Paris.")]

    call = await local.complete(ask(QUESTION, tools=[READ]))
    text = await local.complete(
        ask("What is the capital of France?", tools=[READ], tool_choice="auto")
    )

    assert [c.name for c in call.tool_calls or ()] == ["read_file"]
    assert (text.tool_calls, text.text) == (None, "Paris.")
    for response in (call, text):
        assert response.metadata == {"model": "tiny", "tool_choice": "gate: lexical"}
        assert response.degradation is not None
        assert response.degradation.requested == "tool_choice: auto"


async def test_that_a_persons_images_are_not_seen_is_said(
    fake_llama: Path, local: LocalProvider, peer: Peer
) -> None:
    peer.replies = [written("A cat."), written("A cat.")]
    image = ImageBlock(
        source={"type": "base64", "media_type": "image/png", "data": "AAAA"}
    )
    request = ChatRequest(
        messages=[
            Message(role="user", content=[TextBlock(text="What is this?"), image])
        ]
    )

    with pytest.raises(InvalidRequestError, match="this model cannot see; leave it"):
        await local.complete(request)
    degrading = LocalProvider(LocalConfig(model_path=str(fake_llama), degrade=True))
    plain = await degrading.complete(request)
    open_choice = await degrading.complete(attrs.evolve(request, tools=[READ]))
    await degrading.aclose()

    assert plain.degradation == Degradation(
        requested="images",
        actual="texts that say so",
        reason="this model cannot see",
    )
    assert open_choice.degradation is not None
    assert open_choice.degradation.requested.startswith("images; tool_choice")
    assert "AAAA" not in str(peer.chats())


@pytest.mark.parametrize(("effort", "lost"), [("high", True), ("none", False)])
async def test_an_effort_is_reported_as_not_made(
    local: LocalProvider, peer: Peer, effort: str, lost: bool
) -> None:
    peer.replies = [written("Paris.")]

    answer = await local.complete(
        attrs.evolve(ask("What is the capital?"), reasoning_effort=effort)
    )

    reported = answer.degradation is not None
    assert reported == lost
    if answer.degradation is not None:
        assert str(answer.degradation) == (
            "an answer at once instead of reasoning_effort: this model does not reason"
        )


async def test_without_the_rule_an_open_choice_is_text(
    fake_llama: Path, peer: Peer
) -> None:
    local = LocalProvider(LocalConfig(model_path=str(fake_llama), tool_gate="off"))
    peer.replies = [written("No.")]

    response = await local.complete(ask(QUESTION, tools=[READ]))
    await local.aclose()

    assert (response.text, response.tool_calls) == ("No.", None)
    assert response.metadata == {"model": "tiny", "tool_choice": "gate: off"}


async def test_no_tool_is_called_when_none_may_be(
    local: LocalProvider, peer: Peer
) -> None:
    peer.replies = [written("No.")]

    response = await local.complete(ask(QUESTION, tools=[READ], tool_choice="none"))

    assert (response.text, response.tool_calls, response.metadata) == (
        "No.",
        None,
        {"model": "tiny"},
    )


@pytest.mark.parametrize(
    "replies",
    [[("read_fi", "length")], [("read_file", "stop"), ('{"file_path": "no', "length")]],
)
async def test_a_call_that_was_cut_off_is_no_call(
    local: LocalProvider, peer: Peer, replies: list[tuple[str, str]]
) -> None:
    peer.replies = [written(text, reason=reason) for text, reason in replies]

    response = await local.complete(
        ask(QUESTION, tools=[READ, ADD], tool_choice="required")
    )

    assert (response.tool_calls, response.content, response.finish_reason) == (
        None,
        (),
        "length",
    )
    assert response.usage is not None
    assert response.usage.input_tokens == 10 * len(replies)


async def test_arguments_that_cannot_be_read_are_call_with_problem(
    local: LocalProvider, peer: Peer
) -> None:
    peer.replies = [written("[1, 2]")]

    response = await local.complete(ask(QUESTION, tools=[READ], tool_choice="required"))

    [call] = response.tool_calls or ()
    assert (call.arguments, call.raw_arguments, response.content) == ({}, "[1, 2]", ())
    assert call.problem is not None
    assert "expected an object" in call.problem


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param("Friday at 10", "Friday at 10", id="text"),
        pytest.param(
            '{"file_path": "n", "content": "1\\tFriday\\n2\\tat 10\\n"}',
            "Friday\nat 10",
            id="numbered lines",
        ),
        pytest.param('{"entries": [1]}', '{"entries": [1]}', id="other JSON"),
        pytest.param("1\tFriday\nat 10", "1\tFriday\nat 10", id="a table"),
        pytest.param(
            [
                TextBlock(text="Friday"),
                ToolResultBlock(tool_call_id="c", output={"text": "at 10"}),
            ],
            "Friday\n\nat 10",
            id="blocks",
        ),
        pytest.param(
            [ToolResultBlock(tool_call_id="c", output="at 10")], "at 10", id="a block"
        ),
        pytest.param(
            [TextBlock(text="a.png"), image_block("image/png", "AAAA")],
            "a.png\n\n[an image is not shown: this model cannot see]",
            id="an image",
        ),
    ],
)
async def test_result_is_put_before_question_and_answered_with_text(
    local: LocalProvider, peer: Peer, content: str | list[ContentBlock], text: str
) -> None:
    peer.replies = [written("On Friday.")]
    call = ToolCallBlock(id="c", name="read_file", input={"file_path": "notes.txt"})
    messages = [
        Message(role="developer", content="Be brief."),
        Message(role="user", content="Hello"),
        Message(role="tool", tool_call_id="b", content="an old result"),
        Message(role="assistant", content="Hi"),
        Message(role="system", content="Be kind."),
        Message(role="user", content=QUESTION),
        Message(role="assistant", content=[TextBlock(text="Let me look."), call]),
        Message(role="tool", tool_call_id="c", content=content),
    ]

    response = await local.complete(ChatRequest(messages=messages, tools=[READ, ADD]))

    assert response.text == "On Friday."
    assert response.metadata == {"model": "tiny", "tool_choice": "after a result"}
    assert peer.chats()[0]["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": f"{text}\n\nUsing the text above: {QUESTION}"},
    ]


async def test_what_the_model_began_to_say_follows_the_question(
    local: LocalProvider, peer: Peer
) -> None:
    peer.replies = [written("there was")]
    messages = [
        Message(role="user", content="Go on"),
        Message(role="assistant", content="Once"),
    ]

    await local.complete(ChatRequest(messages=messages))

    assert peer.chats()[0]["messages"] == [
        {"role": "user", "content": "Go on"},
        {"role": "assistant", "content": "Once"},
    ]


async def test_without_a_question_the_other_messages_are_sent(
    local: LocalProvider, peer: Peer
) -> None:
    peer.replies = [written("Hello")]

    await local.complete(
        ChatRequest(messages=[Message(role="system", content="Greet.")], tools=[READ])
    )

    assert peer.chats()[0]["messages"] == [{"role": "system", "content": "Greet."}]


async def test_a_result_of_many_bytes_and_few_tokens_is_whole(
    local: LocalProvider, peer: Peer
) -> None:
    peer.replies = [written("Yes.")]
    text = "word " * 1_000
    messages = [
        Message(role="user", content="Well?"),
        Message(role="tool", tool_call_id="c", content=text),
    ]

    response = await local.complete(ChatRequest(messages=messages))

    assert response.metadata == {"model": "tiny"}
    assert peer.chats()[0]["messages"] == [
        {"role": "user", "content": f"{text.strip()}\n\nUsing the text above: Well?"}
    ]


async def test_a_long_history_is_cut_to_the_newest_turns(
    fake_llama: Path, peer: Peer
) -> None:
    local = LocalProvider(
        LocalConfig(model_path=str(fake_llama), n_ctx=1024, n_parallel=1)
    )
    peer.replies = [written("Yes.")]
    turns = [
        Message(role="user" if n % 2 == 0 else "assistant", content=f"{n} " + "x" * 400)
        for n in range(20)
    ]
    messages = [
        Message(role="system", content="Be brief."),
        *turns,
        Message(role="user", content="Well?"),
    ]

    response = await local.complete(ChatRequest(messages=messages))
    await local.aclose()

    [body] = peer.chats()
    sent = body["messages"]
    assert isinstance(sent, list)
    stored = len(sent) - 2
    assert sent[0] == {"role": "system", "content": "Be brief."}
    assert sent[1:-1] == [
        {"role": m.role, "content": m.content} for m in turns[-stored:]
    ]
    assert sent[1]["role"] == "user"
    assert sent[-1] == {"role": "user", "content": "Well?"}
    assert 2 <= stored < 6
    assert response.metadata == {"model": "tiny", "messages_left_out": 20 - stored}


@pytest.mark.parametrize(
    "text", ["word " * 9_000, "é" * 3_000], ids=["very long", "many bytes"]
)
async def test_a_long_result_is_cut_to_fit(
    fake_llama: Path, peer: Peer, text: str
) -> None:
    local = LocalProvider(
        LocalConfig(model_path=str(fake_llama), n_ctx=1024, n_parallel=1)
    )
    peer.replies = [written("Yes.")]
    messages = [
        Message(role="user", content="Well?"),
        Message(role="tool", tool_call_id="c", content=text),
    ]

    response = await local.complete(ChatRequest(messages=messages))
    await local.aclose()

    [body] = peer.chats()
    sent = body["messages"]
    assert isinstance(sent, list)
    content = str(sent[-1]["content"])
    result = content.removesuffix("\n\nUsing the text above: Well?")
    assert text.startswith(result)
    # the peer's tokens are four bytes long
    assert 1_000 < len(result.encode()) <= 4 * 512
    assert response.metadata == {"model": "tiny", "result_cut": True}


async def test_a_question_that_is_too_long_is_not_cut(
    fake_llama: Path, peer: Peer
) -> None:
    local = LocalProvider(
        LocalConfig(model_path=str(fake_llama), n_ctx=1024, n_parallel=1)
    )
    peer.replies = [
        refused(400, type="exceed_context_size_error", n_prompt_tokens=9000, n_ctx=1024)
    ]
    question = "word " * 9_000

    with pytest.raises(ContextLengthError):
        await local.complete(ask(question))
    await local.aclose()

    assert peer.chats()[0]["messages"] == [{"role": "user", "content": question}]


async def test_a_long_request_is_cut_for_a_tool_call(
    fake_llama: Path, peer: Peer
) -> None:
    local = LocalProvider(
        LocalConfig(model_path=str(fake_llama), n_ctx=1024, n_parallel=1)
    )
    peer.replies = [written('{"file_path": "a"}')]

    await local.complete(ask("word " * 9_000, tools=[READ], tool_choice="required"))
    await local.aclose()

    messages = peer.chats()[0]["messages"]
    assert isinstance(messages, list)
    assert 900 < len(messages[-1]["content"]) <= 1024


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda: refused(500, message="no"), ProviderUnavailableError),
        (lambda: Reply(b"", length=9), StreamError),
        (lambda: Reply(b'{"tokens": 5}', content_type="application/json"), StreamError),
    ],
    ids=["refused", "broken", "no-tokens"],
)
async def test_a_text_that_cannot_be_measured_is_an_error(
    local: LocalProvider, peer: Peer, answer: Callable[[], Reply], error: type[LLMError]
) -> None:
    peer.tokens = answer()

    with pytest.raises(error):
        await local.complete(ask("word " * 2_000))


def test_the_provider_says_what_it_is(fake_llama: Path) -> None:
    embedded, own = (
        LocalProvider(LocalConfig()).get_info(),
        LocalProvider(
            LocalConfig(
                model_path=str(fake_llama),
                n_ctx=4096,
                n_parallel=4,
                max_output_tokens=100,
            )
        ).get_info(),
    )

    assert embedded.id == "local"
    assert "135M" in embedded.display_name
    assert "tests" in embedded.display_name
    assert embedded.credential_env_vars == ()
    assert embedded.defaults["context_window"] == 4096
    assert embedded.defaults["max_output_tokens"] == 512
    assert "tiny" in own.display_name
    assert (
        own.defaults["model"],
        own.defaults["context_window"],
        own.defaults["max_output_tokens"],
    ) == (
        "tiny",
        1024,
        100,
    )


async def test_the_provider_lists_its_one_model() -> None:
    [model] = await LocalProvider(LocalConfig()).list_models()

    assert (model.id, model.context_window) == ("smollm2-135m-instruct", 4096)


async def closed(peer: Peer) -> None:
    """Wait until the client has closed the connection that was held."""
    with anyio.fail_after(20):
        await to_thread.run_sync(peer.left.get)
