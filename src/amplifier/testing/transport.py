"""A transport without a network: it plays answers as a test wrote them, and keeps what was asked.

```python
provider.transport = ScriptedTransport(
    HttpAnswer(parts=(sse({"choices": []}), 2.5, sse("[DONE]"))),
    HttpAnswer(status=429, headers={"retry-after": "3"}),
)
```

It needs the extra `amplifier[http]`, and runs under a `VirtualClock`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import anyio
import anyio.lowlevel
import attrs
import httpx2

from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "HttpAnswer",
    "HttpPart",
    "HttpStep",
    "ScriptedTransport",
    "json_answer",
    "json_lines",
    "pieces",
    "sse",
]

HttpPart: TypeAlias = bytes | float | anyio.Event | BaseException
"""One thing that happens while an answer arrives: bytes come, seconds pass, an event is waited for, the line breaks."""

_STREAM: Final = "text/event-stream"
_JSON: Final = "application/json"


@attrs.frozen(kw_only=True)
class HttpAnswer:
    """One answer.

    Args:
        status: its status.
        headers: names in any case; without a content type it is a stream of events, or JSON for a status of 300 or
            more.
        parts: its body as it arrives.
        before: what happens before the headers come.
    """

    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    parts: tuple[HttpPart, ...] = ()
    before: tuple[HttpPart, ...] = ()


HttpStep: TypeAlias = (
    "HttpAnswer | BaseException | Callable[[httpx2.Request], HttpAnswer]"
)
"""What a transport does with a request: answers, fails to connect, or asks a function, which gets all that follow."""


def json_answer(
    value: JSONValue, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> HttpAnswer:
    """Make an answer of one JSON text."""
    return HttpAnswer(
        status=status,
        headers={"content-type": _JSON, **(headers or {})},
        parts=(json.dumps(value).encode(),),
    )


def sse(*events: JSONValue | tuple[str, JSONValue]) -> bytes:
    """Write server-sent events: of texts as they are, of other values as JSON; a pair is an event's name and data."""
    return b"".join(
        _event(*event) if isinstance(event, tuple) else _event("", event)
        for event in events
    )


def _event(name: str, data: JSONValue) -> bytes:
    if isinstance(data, str):
        text = data
    else:
        text = json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def json_lines(*values: JSONValue) -> bytes:
    """Write one JSON text a line."""
    return b"".join(
        json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values
    )


def pieces(data: bytes, at: Iterable[int]) -> tuple[bytes, ...]:
    """Cut bytes at these places, which ascend."""
    places = [0, *at, len(data)]
    return tuple(data[start:end] for start, end in pairwise(places))


class ScriptedTransport(httpx2.AsyncBaseTransport):
    """Plays one answer for each request, in the order in which requests come.

    Attributes:
        requests: what was asked.
        bodies: the requests' bodies, read as JSON; `None` for those without one.
        closed: for each answer whether its stream was closed.
        is_closed: whether the transport itself was closed.

    Args:
        steps: what it does, one step a request; more can be appended to `steps`. A function stays: it answers all
            further requests.
    """

    def __init__(self, *steps: HttpStep) -> None:
        self.steps: list[HttpStep] = list(steps)
        self.requests: list[httpx2.Request] = []
        self.bodies: list[JSONValue] = []
        self.is_closed: bool = False
        self._streams: list[_Stream] = []
        self._asked: anyio.Event | None = None

    @property
    def closed(self) -> list[bool]:
        """For each answer whether its stream was closed."""
        return [stream.is_closed for stream in self._streams]

    async def wait_for_request(self, number: int = 1) -> httpx2.Request:
        """Wait until so many requests came, and return that one."""
        while len(self.requests) < number:
            if self._asked is None:
                self._asked = anyio.Event()
            await self._asked.wait()
        return self.requests[number - 1]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Do the next step.

        Raises:
            AssertionError: the script is at its end.
            BaseException: the step is an exception.
        """
        # read although nobody looks: a body that cannot be written fails here
        content = await request.aread()
        self.requests.append(request)
        self.bodies.append(json.loads(content) if content else None)
        if self._asked is not None:
            self._asked.set()
            self._asked = None
        answer = self._next(request)
        for part in answer.before:
            await _pass(part)
        if answer.status < 300:
            kind = _STREAM
        else:
            kind = _JSON
        headers = httpx2.Headers({"content-type": kind})
        headers.update(answer.headers)
        stream = _Stream(answer.parts)
        self._streams.append(stream)
        return httpx2.Response(
            answer.status, headers=headers, stream=stream, request=request
        )

    async def aclose(self) -> None:
        """Note that it was closed."""
        self.is_closed = True

    def _next(self, request: httpx2.Request) -> HttpAnswer:
        if not self.steps:
            raise AssertionError(
                f"The script has {len(self.requests) - 1} answers; this is one request more"
            )
        step = self.steps[0]
        # a function stays for all that follow
        if isinstance(step, (HttpAnswer, BaseException)):
            del self.steps[0]
        if isinstance(step, BaseException):
            # one that many tests raise would collect all their tracebacks
            raise step.with_traceback(None)
        if isinstance(step, HttpAnswer):
            return step
        return step(request)


async def _pass(part: HttpPart) -> bytes:
    """Let a part happen, and return the bytes that it brings."""
    if isinstance(part, bytes):
        # as the network would: others run between two pieces
        await anyio.lowlevel.checkpoint()
        return part
    if isinstance(part, BaseException):
        raise part.with_traceback(None)
    if isinstance(part, anyio.Event):
        await part.wait()
    else:
        await anyio.sleep(part)
    return b""


class _Stream(httpx2.AsyncByteStream):
    """An answer's body. It is no generator, so that leaving it early leaves nothing to be finished."""

    def __init__(self, parts: Sequence[HttpPart]) -> None:
        self.is_closed: bool = False
        self._parts = iter(parts)

    def __aiter__(self) -> _Stream:
        return self

    async def __anext__(self) -> bytes:
        for part in self._parts:
            if piece := await _pass(part):
                return piece
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.is_closed = True
