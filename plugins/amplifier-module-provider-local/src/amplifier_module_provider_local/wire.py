"""HTTP with the server: token counts and streamed answers."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Final, TypeAlias

import attrs
import httpx2

from amplifier_module_provider_local.faults import refusal, transport_error
from amplifier_sdk.chat import Usage
from amplifier_sdk.errors import StreamError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.kit.sse import Comment, EventTooLongError, read_events

__all__ = ["Alive", "AnswerItem", "End", "Piece", "Wire"]

# The server speaks at least every ten seconds, also while it reads a prompt.
_TIMEOUT: Final = httpx2.Timeout(60.0, connect=5.0, pool=None)
_LONGEST_REFUSAL: Final = 64 * 1024


@attrs.frozen
class Piece:
    """A piece of the answer's text."""

    text: str


@attrs.frozen
class Alive:
    """The server is at work and has nothing to say yet."""


@attrs.frozen
class End:
    """The end of a whole answer; `usage` is `None` when the server did not report it."""

    finish_reason: str
    usage: Usage | None


AnswerItem: TypeAlias = Piece | Alive | End
"""What an answer's stream yields: pieces and signs of life, then one end."""


@attrs.define(eq=False)
class Wire:
    """A client of one server; whoever opens it closes it."""

    client: httpx2.AsyncClient

    @classmethod
    def connect(cls, address: str, secret: str) -> Wire:
        """Make the client; nothing is sent yet."""
        # The server closes connections that are kept: using one again fails every third time. It speaks plain HTTP
        # on the loopback interface: a context without certificates spares the time of loading them.
        transport = _Transport(
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            trust_env=False,
            limits=httpx2.Limits(max_keepalive_connections=0, max_connections=None),
        )
        return cls(
            httpx2.AsyncClient(
                base_url=address,
                headers={"Authorization": f"Bearer {secret}", "Content-Type": "application/json"},
                transport=transport,
                timeout=_TIMEOUT,
                trust_env=False,
            )
        )

    async def aclose(self) -> None:
        """Close the client."""
        await self.client.aclose()

    async def tokenize(self, text: str) -> tuple[bytes, ...]:
        """Return the text's tokens, each as the bytes it stands for.

        Raises:
            LLMError: the server refused or broke off.
        """
        try:
            response = await self.client.post("/tokenize", content=_written({"content": text, "with_pieces": True}))
        except httpx2.TransportError as error:
            raise transport_error(error) from error
        if response.status_code != httpx2.codes.OK:
            raise refusal(response.status_code, response.content)
        answer: Mapping[str, Sequence[Mapping[str, str | list[int]]]] = response.json()
        pieces = (token["piece"] for token in answer["tokens"])
        return tuple(piece.encode() if isinstance(piece, str) else bytes(piece) for piece in pieces)

    async def answer(self, body: JSONObject) -> AsyncGenerator[AnswerItem, None]:
        """Stream the answer to one chat request; closing the generator ends the server's work on it.

        Raises:
            LLMError: the server refused, broke off, or ended the stream before the answer.
        """
        order = {**body, "stream": True, "stream_options": {"include_usage": True}}
        try:
            async with self.client.stream("POST", "/v1/chat/completions", content=_written(order)) as response:
                if response.status_code != httpx2.codes.OK:
                    raise refusal(response.status_code, await _beginning(response))
                kind = response.headers.get("content-type", "")
                if not kind.startswith("text/event-stream"):
                    raise StreamError(f"The model's server answered with {kind or 'no content type'}, not a stream")
                async with aclosing(_items(response)) as items:
                    async for item in items:
                        yield item
        except httpx2.TransportError as error:
            raise transport_error(error) from error
        except EventTooLongError as error:
            raise StreamError(f"The model's server: {error}") from error


def _written(body: Mapping[str, JSONValue]) -> bytes:
    """Write a request; half of a surrogate pair, which no server can read, becomes a question mark."""
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


class _Transport(httpx2.AsyncHTTPTransport):
    """Gives responses whose streams may be left early."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Stream(response.stream)
        return response


@attrs.define(eq=False)
class _Stream(httpx2.AsyncByteStream):
    """A response's stream that leaves no generator behind when its reader stops early.

    The library closes its generators but one, which trio then complains about; reading on after the connection
    is closed ends that one as well.
    """

    inner: httpx2.AsyncByteStream

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        pieces = aiter(self.inner)
        try:
            async for piece in pieces:
                yield piece
        finally:
            await self.inner.aclose()
            with suppress(httpx2.TransportError, httpx2.StreamError):
                async for _ in pieces:
                    pass

    async def aclose(self) -> None:
        await self.inner.aclose()


async def _beginning(response: httpx2.Response) -> bytes:
    """Return the beginning of a body; a refusal is short."""
    body = b""
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > _LONGEST_REFUSAL:
                break
    return body


async def _items(response: httpx2.Response) -> AsyncGenerator[AnswerItem, None]:
    reason: str | None = None
    usage: Usage | None = None
    async with aclosing(response.aiter_bytes()) as pieces, aclosing(read_events(pieces)) as events:
        async for event in events:
            if isinstance(event, Comment):
                yield Alive()
                continue
            if event.data == "[DONE]":
                break
            chunk = _chunk(event.data)
            usage = _usage(chunk) or usage
            choice = _choice(chunk)
            if text := _text(choice):
                yield Piece(text)
            if isinstance(given := choice.get("finish_reason"), str):
                reason = given
        else:
            raise StreamError("The model's server ended the stream before the answer was whole")
    if reason is None:
        raise StreamError("The model's server ended the answer without a reason")
    yield End(reason, usage)


def _chunk(data: str) -> Mapping[str, JSONValue]:
    try:
        chunk: JSONValue = json.loads(data)
    except ValueError as error:
        raise StreamError(f"The model's server sent what is not JSON: {data[:200]!r}") from error
    if not isinstance(chunk, Mapping):
        raise StreamError(f"The model's server sent what is no object: {data[:200]!r}")
    if isinstance(problem := chunk.get("error"), Mapping):
        code = problem.get("code")
        raise refusal(code if isinstance(code, int) else httpx2.codes.INTERNAL_SERVER_ERROR, data.encode())
    return chunk


def _choice(chunk: Mapping[str, JSONValue]) -> Mapping[str, JSONValue]:
    """Return the first choice; the chunk with the usage has none, and unknown chunks have other things."""
    choices = chunk.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}


def _text(choice: Mapping[str, JSONValue]) -> str:
    delta = choice.get("delta")
    content = delta.get("content") if isinstance(delta, Mapping) else None
    return content if isinstance(content, str) else ""


def _usage(chunk: Mapping[str, JSONValue]) -> Usage | None:
    usage = chunk.get("usage")
    if not isinstance(usage, Mapping):
        return None
    read, written = _number(usage, "prompt_tokens"), _number(usage, "completion_tokens")
    details = usage.get("prompt_tokens_details")
    cached = _number(details, "cached_tokens") if isinstance(details, Mapping) else None
    return Usage(input_tokens=read, output_tokens=written, total_tokens=read + written, cache_read_tokens=cached)


def _number(numbers: Mapping[str, JSONValue], key: str) -> int:
    value = numbers.get(key)
    return value if isinstance(value, int) else 0
