"""Servers at an address: a real one of the protocol's own library, and some that behave badly."""

from __future__ import annotations

import gzip
import json
import resource
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import uvicorn
from mcp.server.mcpserver import Context, MCPServer

from amplifier.kernel.sessions.session import AmplifierSession
from amplifier.testing import MockApprovalSystem
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import ToolResult

Open = Callable[..., AbstractAsyncContextManager[AmplifierSession]]  # type: ignore[explicit-any]  # options go by name
Text = Callable[..., Awaitable[str]]  # type: ignore[explicit-any]  # a tool's arguments go by name
Call = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # a tool's arguments go by name
Status = Callable[[AmplifierSession, str], Awaitable[JSONObject]]
Until = Callable[[Callable[[], object]], Awaitable[None]]


PAGES: dict[str, str] = {}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def real_server() -> Iterator[str]:
    """A server of the protocol's library, in a thread."""
    server = MCPServer("real")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    async def count(ctx: Context, to: int) -> str:  # type: ignore[explicit-any]  # as the library declares it
        """Count, and tell of it."""
        for number in range(to):
            await ctx.report_progress(number + 1, to, f"at {number + 1}")
        return "counted"

    @server.tool()
    def large(characters: int) -> str:
        """Answer at length."""
        return "x" * characters

    port = free_port()
    config = uvicorn.Config(
        server.streamable_http_app(), host="127.0.0.1", port=port, log_level="critical", ws="none", lifespan="on"
    )
    runner = uvicorn.Server(config)
    thread = threading.Thread(target=runner.run, daemon=True)
    thread.start()
    while not runner.started:
        assert thread.is_alive()
    yield f"http://127.0.0.1:{port}/mcp"
    runner.should_exit = True
    thread.join(10)


async def test_a_real_server_answers(opened: Open, real_server: str, text: Text, failure: Text) -> None:
    async with opened({"s": {"url": real_server, "type": "http"}}) as one:
        assert {"mcp__s__add", "mcp__s__count", "mcp__s__large"} <= set(one.coordinator.tools)
        assert json.loads((await text(one, "mcp__s__add", a=2, b=3)).split("\n")[0]) == 5
        assert "counted" in await text(one, "mcp__s__count", to=3)
        assert "a: expected" in await failure(one, "mcp__s__add", a="x", b=3)


async def test_a_message_over_http_that_is_too_long_fails_its_call_alone(
    opened: Open, real_server: str, text: Text, failure: Text
) -> None:
    async with opened({"s": {"url": real_server}}, max_message_bytes=100_000) as one:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        told = await failure(one, "mcp__s__large", characters=400_000)
        assert "100000" in told
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024
        assert "counted" in await text(one, "mcp__s__count", to=1)


class Site:
    """Answers each request by a function of the message and the headers."""

    def __init__(
        self, answer: Callable[[dict[str, object], dict[str, str]], tuple[int, dict[str, str], bytes]]
    ) -> None:
        self.seen: list[dict[str, str]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                site.seen.append(headers)
                status, told, data = answer(json.loads(body), headers)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **told}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self) -> None:
                self.send_response(405)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_DELETE(self) -> None:
                self.do_GET()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/mcp"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


JSON = {"Content-Type": "application/json"}


def hello(message: dict[str, object], *, session: str = "abc") -> tuple[int, dict[str, str], bytes]:
    """What a well-behaved server of an earlier protocol answers."""
    match message.get("method"):
        case "server/discover":
            error = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}
            return 200, JSON, json.dumps(error).encode()
        case "initialize":
            result: object = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "site", "version": "1"},
            }
            return 200, {**JSON, "Mcp-Session-Id": session}, told(message, result)
        case "tools/list":
            return 200, JSON, told(message, {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]})
        case "tools/call":
            return 200, JSON, told(message, {"content": [{"type": "text", "text": "gone"}]})
        case _:
            return 202, {}, b""


def told(message: dict[str, object], result: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode()


@pytest.fixture
def site() -> Iterator[Callable[..., Site]]:  # type: ignore[explicit-any]  # takes what a site answers
    made: list[Site] = []

    def site(answer: Callable[[dict[str, object], dict[str, str]], tuple[int, dict[str, str], bytes]]) -> Site:
        made.append(Site(answer))
        return made[-1]

    yield site
    for each in made:
        each.close()


Sites = Callable[..., Site]  # type: ignore[explicit-any]  # takes what a site answers


async def test_headers_and_the_servers_session_go_with_every_request(
    opened: Open, site: Sites, monkeypatch: pytest.MonkeyPatch, text: Text
) -> None:
    monkeypatch.setenv("SITE_TOKEN", "very-secret-token")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    here = site(lambda message, _: hello(message))
    server = {"url": here.url, "headers": {"Authorization": "Bearer ${SITE_TOKEN}"}}
    async with opened({"s": server}) as one:
        assert await text(one, "mcp__s__go") == "gone"
    assert {headers["authorization"] for headers in here.seen} == {"Bearer very-secret-token"}
    assert here.seen[-1]["mcp-session-id"] == "abc"


async def test_a_session_that_the_server_ended_is_begun_again(
    opened: Open, site: Sites, text: Text, failure: Text, until: Until
) -> None:
    sessions = ["one", "two"]
    calls: list[str] = []

    def answer(message: dict[str, object], headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        if message.get("method") == "initialize":
            return hello(message, session=sessions.pop(0))
        if message.get("method") == "tools/call":
            calls.append(headers["mcp-session-id"])
            if calls == ["one"]:
                return 404, {}, b""
        return hello(message)

    async with opened({"s": {"url": site(answer).url}}) as one:
        assert "the next call begins another" in await failure(one, "mcp__s__go")
        assert await text(one, "mcp__s__go") == "gone"
    assert calls == ["one", "two"]


@pytest.mark.parametrize(
    ("code", "headers", "body", "why"),
    [
        (401, {}, b"", "it answers with status 401"),
        (500, {}, b"x" * 100, "it answers with status 500"),
        (200, {"Content-Type": "text/html"}, b"<html>", "it answers with 'text/html'"),
        (200, JSON, b"{", "its answer cannot be read"),
        (200, JSON, b'"' + b"x" * 300_000 + b'"', "more than the 100000 bytes of max_message_bytes"),
        (200, {**JSON, "Content-Encoding": "gzip"}, gzip.compress(b"x" * 10_000_000), "packed"),
        (302, {"Location": "http://169.254.169.254/"}, b"", "not followed"),
        (307, {"Location": "http://localhost:9/"}, b"", "not followed"),
    ],
    ids=["401", "500", "html", "broken", "long", "packed", "found", "elsewhere"],
)
async def test_an_address_that_is_no_server_says_why(
    opened: Open, status: Status, site: Sites, code: int, headers: dict[str, str], body: bytes, why: str
) -> None:
    here = site(lambda *_: (code, headers, body))
    async with opened({"s": {"url": here.url}}, max_message_bytes=100_000) as one:
        found = await status(one, "s")
        assert found["state"] == "failed"
        assert why in str(found["problem"])


async def test_nobody_there_says_so(opened: Open, status: Status) -> None:
    async with opened({"s": {"url": f"http://127.0.0.1:{free_port()}/mcp"}}) as one:
        assert "attempts" in str((await status(one, "s"))["problem"])


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_a_projects_address_is_a_public_one(
    opened: Open, site: Sites, work: Path, host: str, call: Call, status: Status
) -> None:
    here = site(lambda message, _: hello(message))
    url = here.url.replace("127.0.0.1", host)
    (work / ".mcp.json").write_text(json.dumps({"mcpServers": {"p": {"url": url}}}))
    async with opened(approval=MockApprovalSystem("Agree")) as one:
        await call(one, "mcp_accept", server="p")
        assert "not public" in str((await status(one, "p"))["problem"])
    assert here.seen == []
