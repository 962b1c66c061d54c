"""Servers of models on this machine, found by what answers at their ports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import attrs
import pytest
from anyio.abc import SocketAttribute, SocketStream

from amplifier.app.providers import local_servers
from amplifier.app.providers.local_servers import KNOWN, find_local_servers

OLLAMA, STUDIO, _ = KNOWN
OPENAI = b'{"object": "list", "data": [{"id": "qwen"}, {"id": "phi"}]}'
TAGS = b'{"models": [{"name": "llama3:8b"}]}'


@asynccontextmanager
async def _answering(body: bytes, status: bytes = b"200 OK") -> AsyncIterator[int]:
    """Serve one answer to whoever asks, and yield the port."""

    async def answer(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            head = b"HTTP/1.0 " + status + b"\r\nContent-Type: application/json\r\n\r\n"
            await stream.send(head + body)

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(listener.serve, answer)
        yield listener.extra(SocketAttribute.local_port)
        group.cancel_scope.cancel()


async def test_what_answers_is_found_with_its_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with _answering(TAGS) as first, _answering(OPENAI) as second:
        known = (attrs.evolve(OLLAMA, port=first), attrs.evolve(STUDIO, port=second))
        monkeypatch.setattr(local_servers, "KNOWN", known)

        one, other = await find_local_servers()

    assert (one.name, one.models) == ("Ollama", ("llama3:8b",))
    assert one.options == {"host": f"http://127.0.0.1:{first}"}
    assert (other.name, other.models) == ("LM Studio", ("qwen", "phi"))
    assert other.options == {"base_url": f"http://127.0.0.1:{second}/v1"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"<html>", b"200 OK"),
        (b"[1, 2]", b"200 OK"),
        (b'{"data": []}', b"200 OK"),
        (b'{"data": [7, {"id": 3}]}', b"200 OK"),
        (OPENAI, b"404 Not Found"),
        (b"\xff\xfe", b"200 OK"),
    ],
)
async def test_another_program_at_the_port_is_left_out(
    monkeypatch: pytest.MonkeyPatch, body: bytes, status: bytes
) -> None:
    async with _answering(body, status) as port:
        monkeypatch.setattr(local_servers, "KNOWN", (attrs.evolve(STUDIO, port=port),))

        assert await find_local_servers() == []


async def test_where_nothing_listens_nothing_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with _answering(OPENAI) as port:
        pass
    monkeypatch.setattr(local_servers, "KNOWN", (attrs.evolve(STUDIO, port=port),))

    assert await find_local_servers() == []


async def test_a_silent_server_costs_a_short_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_servers, "TIMEOUT", 0.01)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(SocketAttribute.local_port)
        monkeypatch.setattr(local_servers, "KNOWN", (attrs.evolve(STUDIO, port=port),))

        with anyio.fail_after(5):
            assert await find_local_servers() == []
