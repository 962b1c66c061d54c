"""`amplifier mcp serve --http`: the official client with a token, and those without one or with anything else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from typing import Final

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitResult, TextContent

from tests.cli.programs import BACKENDS, call, read_until, start, write_plan

pytestmark = pytest.mark.process

TOKEN: Final = "a-token-of-a-test-that-is-long-enough"  # invented
HEADERS: Final = {
    "Authorization": f"Bearer {TOKEN}",
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
}
HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token is in the environment."""
    monkeypatch.setenv("AMPLIFIER_MCP_TOKEN", TOKEN)


@contextmanager
def _serving(
    project: Path, backend: str = "asyncio"
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    plan = write_plan(project.parent, ["done"], "tool-filesystem", "hooks-approval")
    os.chdir(project)
    tools = ("--tool", "read_file", "--tool", "write_file", "--backend", backend)
    with start(
        "mcp", "serve", "--http", "--port", "0", "--plan", str(plan), *tools
    ) as server:
        reported = read_until(server.stderr, "/mcp\n")
        yield reported.rsplit("Serving at ", 1)[1].strip(), server


@asynccontextmanager
async def _client(url: str, answer: str) -> AsyncGenerator[Client, None]:
    async def elicit(context: object, params: object) -> ElicitResult:  # called by name
        del context, params
        return ElicitResult(action="accept", content={"answer": answer})

    async with httpx2.AsyncClient(headers=HEADERS, trust_env=False) as http:
        streams = streamable_http_client(url, http_client=http)
        async with Client(
            streams, elicitation_callback=elicit, mode="legacy"
        ) as client:
            yield client


def _text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def _post(url: str, body: bytes, **headers: str) -> httpx2.Response:
    with httpx2.Client(trust_env=False, timeout=30) as client:
        return client.post(url, content=body, headers={**HEADERS, **headers})


@BACKENDS
def test_clients_call_ask_and_come_back(project: Path, backend: str) -> None:
    async def use(url: str) -> None:
        written = {"file_path": "made.txt", "content": "made"}
        async with _client(url, "Deny") as one, _client(url, "Allow once") as two:
            assert "old text" in _text(
                await one.call_tool("read_file", {"file_path": "notes.txt"})
            )
            # Each question goes to the person of the client that called.
            denied = await one.call_tool("write_file", written)
            assert denied.is_error
            assert not (project / "made.txt").exists()
            allowed = await two.call_tool("write_file", written)
            assert not allowed.is_error
            assert (project / "made.txt").read_text() == "made"
        async with _client(url, "Deny") as again:
            assert len((await again.list_tools()).tools) > 2

    with _serving(project, backend) as (url, server):
        # On trio the library's client leaves generators to the garbage collector.
        anyio.run(use, url, backend="asyncio")
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0


def test_nobody_is_let_in_without_the_token(project: Path) -> None:
    body = json.dumps(HELLO).encode()
    with _serving(project) as (url, _):
        for wrong in ("", "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x"):
            refused = _post(url, body, Authorization=wrong)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"].startswith("Bearer")
        # A page in the person's browser, by a name that leads here or by its own.
        assert _post(url, body, Host="evil.example").status_code == 421
        assert _post(url, body, Origin="https://evil.example").status_code == 403
        assert _post(url.removesuffix("/mcp"), body).status_code == 404
        assert _post(url, body).status_code == 200


def test_a_session_is_not_taken_by_its_id(project: Path) -> None:
    request = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).encode()
    with _serving(project) as (url, _):
        held = _post(url, json.dumps(HELLO).encode()).headers["mcp-session-id"]
        for taken in ("", "a" * 32, "../..", held[:-1]):
            found = _post(url, request, **{"mcp-session-id": taken})
            assert found.status_code in (400, 404)
        assert (
            _post(
                url, request, **{"mcp-session-id": held, "Authorization": "Bearer x"}
            ).status_code
            == 401
        )


def test_messages_are_bounded_and_malformed_ones_refused(project: Path) -> None:
    chance = Random(17)
    with _serving(project) as (url, server):
        assert _post(url, b"[" * (50 * 1024 * 1024)).status_code == 413
        assert _post(url, b"[1," * 1_000_000).status_code == 400
        whole = json.dumps(HELLO).encode()
        for _ in range(60):
            broken = bytearray(whole)
            for _ in range(chance.randint(1, 12)):
                broken[chance.randrange(len(broken))] = chance.randrange(256)
            del broken[chance.randrange(1, len(broken)) :]
            assert 400 <= _post(url, bytes(broken)).status_code < 500
        assert _post(url, whole).status_code == 200
        assert server.poll() is None


def test_without_a_token_nothing_is_served(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = str(write_plan(project.parent, ["done"], "tool-filesystem"))
    for token in ("", "short", "é" * 30):
        monkeypatch.setenv("AMPLIFIER_MCP_TOKEN", token)
        refused = call("mcp", "serve", "--http", "--plan", plan, expect=1)
        assert "config secret set AMPLIFIER_MCP_TOKEN" in refused.stderr
