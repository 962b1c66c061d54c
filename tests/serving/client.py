"""A caller of an ASGI application in the same event loop, which reads answers while they form."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import attrs
from anyio.streams.memory import MemoryObjectReceiveStream
from starlette.types import ASGIApp, Message
from typing_extensions import Unpack

from amplifier import Agent
from amplifier.serving import Token
from amplifier.serving.application import ServerOptions
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["ALICE", "BOB", "Answer", "Caller", "Event", "Stream", "serving"]

ALICE: Final = Token(name="alice", secret="alice-secret-0123456789")
BOB: Final = Token(name="bob", secret="bob-secret-0123456789")


@attrs.frozen
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # type: ignore[explicit-any]  # noqa: ANN401  # whatever the server wrote
        return json.loads(self.body)


@attrs.frozen
class Event:  # type: ignore[explicit-any]  # likewise
    id: int
    data: dict[str, Any]  # type: ignore[explicit-any]  # likewise

    @property
    def type(self) -> str:
        return str(self.data["type"])


@attrs.define(eq=False)
class Stream:
    """An answer that still forms."""

    status: int
    headers: Mapping[str, str]
    pieces: MemoryObjectReceiveStream[bytes]
    raw: bytes = b""
    _read: int = 0

    async def frame(self) -> bytes:
        """Return the next frame or comment; `b""` at the end."""
        while b"\n\n" not in self.raw[self._read :]:
            try:
                self.raw += await self.pieces.receive()
            except anyio.EndOfStream:
                assert self._read == len(self.raw)
                return b""
        end = self.raw.index(b"\n\n", self._read)
        frame = self.raw[self._read : end]
        self._read = end + 2
        return frame

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Event:
        while frame := await self.frame():
            if not frame.startswith(b":"):
                number, data = frame.split(b"\n")
                return Event(
                    int(number.removeprefix(b"id: ")),
                    json.loads(data.removeprefix(b"data: ")),
                )
        raise StopAsyncIteration

    async def rest(self) -> bytes:
        async for piece in self.pieces:
            self.raw += piece
        return self.raw


@attrs.frozen(eq=False)
class Caller:
    """Somebody who calls, with a token or without."""

    app: ASGIApp
    secret: str | None = ALICE.secret

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        async with self.stream(method, path, body, headers) as stream:
            return Answer(stream.status, stream.headers, await stream.rest())

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return await self.request("GET", path, None, headers)

    async def post(
        self, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        return await self.request("POST", path, body, headers)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Stream]:
        """Send a request; leaving the block disconnects."""
        raw = _encoded(body)
        given = {
            "host": "127.0.0.1",
            "content-length": str(len(raw)),
            **(headers or {}),
        }
        if raw:
            given.setdefault("content-type", "application/json")
        if self.secret is not None:
            given.setdefault("authorization", f"Bearer {self.secret}")
        async with self.raw(method, path, given, [raw]) as stream:
            yield stream

    @asynccontextmanager
    async def raw(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        pieces: list[bytes],
        *,
        is_whole: bool = True,
    ) -> AsyncIterator[Stream]:
        """Send a request as it stands; a body that is not whole never ends."""
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "scheme": "http",
            "headers": [
                (name.lower().encode(), value.encode("latin-1"))
                for name, value in headers.items()
            ],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }
        gone, started = anyio.Event(), anyio.Event()
        waiting = list(pieces)
        start: list[Message] = []
        sender, receiver = anyio.create_memory_object_stream[bytes](10_000)

        async def receive() -> Message:
            if waiting:
                more = len(waiting) > 1 or not is_whole
                return {
                    "type": "http.request",
                    "body": waiting.pop(0),
                    "more_body": more,
                }
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.append(message)
                started.set()
            elif message.get("body"):
                await sender.send(message["body"])

        async def call() -> None:
            with sender:
                try:
                    await self.app(scope, receive, send)
                except Exception:  # a server writes it to its log
                    if not start:
                        raise
                finally:
                    started.set()

        with receiver:
            async with anyio.create_task_group() as group:
                group.start_soon(call)
                await started.wait()
                (head,) = start
                names = {
                    name.decode(): value.decode() for name, value in head["headers"]
                }
                try:
                    yield Stream(head["status"], names, receiver)
                finally:
                    gone.set()

    # -- shorter

    async def begin(self) -> str:
        answer = await self.post("/sessions")
        assert answer.status == 201, answer.body
        return str(answer.json["session_id"])

    async def turn(self, session: str, prompt: JSONValue = "Hi", **options: str) -> str:
        """Begin a turn and return the path of it."""
        body = {"prompt": prompt, **options}
        answer = await self.post(f"/sessions/{session}/turns", body)
        assert answer.status == 202, answer.body
        return f"/sessions/{session}/turns/{answer.json['turn_id']}"

    async def events(self, turn: str, after: int | None = None) -> list[Event]:
        """Read all events of a turn."""
        headers = {} if after is None else {"last-event-id": str(after)}
        async with self.stream("GET", f"{turn}/events", None, headers) as stream:
            assert stream.status == 200, await stream.rest()
            return [event async for event in stream]


def _encoded(body: object) -> bytes:
    if body is None:
        return b""
    return body if isinstance(body, bytes) else json.dumps(body).encode()


@asynccontextmanager
async def serving(
    agent: Agent[None, object],
    **options: Unpack[ServerOptions],
) -> AsyncIterator[Caller]:
    """Run a server for Alice and Bob, and yield Alice."""
    options.setdefault("tokens", (ALICE, BOB))
    server = agent.asgi(**options)
    async with server.lifespan():
        yield Caller(server)
