"""HTTP with the server: token counts, streamed answers, and what it answers when it refuses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from math import inf
from typing import Final, TypeAlias

import attrs

from amplifier_kit.http.sse import Comment, ServerEvent
from amplifier_kit.open_data import as_list, as_object
from amplifier_kit.vendors import read_object, read_problem, read_tokens, refusal
from amplifier_kit.vendors.client import Exchange, VendorClient
from amplifier_kit.vendors.refusals import status_of
from amplifier_sdk.chat import Usage
from amplifier_sdk.errors import LLMError, LLMTimeoutError, NetworkError, StreamError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["Alive", "AnswerEnd", "AnswerItem", "Piece", "Wire", "fault"]

# seconds; the server speaks at least every ten, also while it reads a prompt
_IDLE: Final = 60.0


@attrs.frozen
class Piece:
    """A piece of the answer's text."""

    text: str


@attrs.frozen
class Alive:
    """The server is at work and has nothing to say yet."""


@attrs.frozen
class AnswerEnd:
    """The end of a whole answer; `usage` is `None` when the server did not report it."""

    finish_reason: str
    usage: Usage | None


AnswerItem: TypeAlias = Piece | Alive | AnswerEnd
"""What an answer's stream yields: pieces and signs of life, then one end."""


@attrs.define(eq=False)
class Wire:
    """A client of one server; whoever opens it closes it."""

    client: VendorClient
    headers: Mapping[str, str] = attrs.field(repr=False)

    @classmethod
    def connect(cls, address: str, secret: str) -> Wire:
        """Make the client; nothing is sent yet."""
        return cls(
            VendorClient.open(address, idle_timeout=_IDLE),
            {"Authorization": f"Bearer {secret}"},
        )

    async def aclose(self) -> None:
        """Close the client."""
        await self.client.aclose()

    async def tokenize(self, text: str) -> tuple[bytes, ...]:
        """Return the text's tokens, each as the bytes it stands for.

        Raises:
            LLMError: the server refused, broke off, or sent what are no tokens.
        """
        with _of_the_server():
            answer = await self.client.json(
                self._call("tokenize", {"content": text, "with_pieces": True})
            )
        tokens = as_object(answer).get("tokens")
        if not isinstance(tokens, list):
            raise StreamError(
                f"The model's server sent what are no tokens: {answer!r:.200}"
            )
        return tuple(map(_token, tokens))

    async def answer(self, body: JSONObject) -> AsyncGenerator[AnswerItem, None]:
        """Stream the answer to one chat request; closing the generator ends the server's work on it.

        Raises:
            LLMError: the server refused, broke off, or ended the stream before the answer.
        """
        order: JSONObject = {
            **body,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        events = self.client.events(self._call("v1/chat/completions", order))
        with _of_the_server():
            async with aclosing(events), aclosing(_items(events)) as items:
                async for item in items:
                    yield item

    def _call(self, path: str, body: JSONObject) -> Exchange:
        return Exchange(
            path=path, body=body, headers=self.headers, refuse=fault, timeout=inf
        )


@contextmanager
def _of_the_server() -> Iterator[None]:
    """Say of whom the errors are that name an address and options which nobody configured."""
    try:
        yield
    except NetworkError as error:
        raise NetworkError("The model's server cannot be reached") from error
    except LLMTimeoutError as error:
        raise LLMTimeoutError("The model's server is silent") from error


def _token(token: JSONValue) -> bytes:
    """Return the bytes of a token, whose `piece` is a text or, where it is none, a list of bytes."""
    piece = as_object(token).get("piece")
    if isinstance(piece, str):
        return piece.encode()
    if isinstance(piece, list):
        return bytes(byte for byte in piece if isinstance(byte, int))
    return b""


async def _items(
    events: AsyncGenerator[ServerEvent | Comment, None],
) -> AsyncGenerator[AnswerItem, None]:
    reason: str | None = None
    usage: Usage | None = None
    async for event in events:
        if isinstance(event, Comment):
            yield Alive()
            continue
        if event.data == "[DONE]":
            break
        chunk = read_object(event.data)
        if isinstance(chunk.get("error"), Mapping):
            raise fault(status_of(event.data), {}, event.data.encode())
        usage = _usage(chunk) or usage
        # the chunk with the usage has no choice, and unknown chunks have other things
        choice = as_object(next(iter(as_list(chunk.get("choices"))), None))
        if text := _text(choice):
            yield Piece(text)
        if isinstance(given := choice.get("finish_reason"), str):
            reason = given
    else:
        raise StreamError(
            "The model's server ended the stream before the answer was whole"
        )
    if reason is None:
        raise StreamError("The model's server ended the answer without a reason")
    yield AnswerEnd(reason, usage)


def _text(choice: Mapping[str, JSONValue]) -> str:
    content = as_object(choice.get("delta")).get("content")
    if isinstance(content, str):
        return content
    return ""


def _usage(chunk: JSONObject) -> Usage | None:
    usage = chunk.get("usage")
    if not isinstance(usage, Mapping):
        return None
    read = read_tokens(usage, "prompt_tokens") or 0
    written = read_tokens(usage, "completion_tokens") or 0
    cached = read_tokens(usage.get("prompt_tokens_details"), "cached_tokens")
    return Usage(
        input_tokens=read,
        output_tokens=written,
        total_tokens=read + written,
        cache_read_tokens=cached,
    )


def fault(status: int, headers: Mapping[str, str], body: bytes) -> LLMError:
    """Return the error for an answer that is none: by its status, with the server's own words.

    Args:
        status: the HTTP status, or the one that an error inside the answer names.
        headers: names in lower case.
        body: the beginning of the body.
    """
    problem = read_problem(body)
    if problem.get("type") != "exceed_context_size_error":
        return refusal(status, headers, body)
    read, window = problem.get("n_prompt_tokens"), problem.get("n_ctx")
    words = f"the request has {read} tokens and the model takes {window}; shorten it, or raise `n_ctx`"
    return refusal(status, headers, body, words=words)
