"""Servers at an address: a real one of the protocol's own library, and some that behave badly."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
import pytest
import uvicorn
from anyio import to_thread
from mcp.server.mcpserver import Context, MCPServer

from amplifier.kernel.sessions.session import AmplifierSession
from amplifier.testing import MockApprovalSystem
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.results import ToolResult

Open = Callable[..., AbstractAsyncContextManager[AmplifierSession]]  # type: ignore[explicit-any]  # options go by name
Text = Callable[..., Awaitable[str]]  # type: ignore[explicit-any]  # a tool's arguments go by name
Call = Callable[..., Awaitable[ToolResult]]  # type: ignore[explicit-any]  # a tool's arguments go by name
Status = Callable[[AmplifierSession, str], Awaitable[JSONObject]]
Page: TypeAlias = tuple[int, dict[str, str], bytes]
Sites = Callable[..., Any]  # type: ignore[explicit-any]  # what it makes is conftest.py's
Hello = Callable[..., Page]  # type: ignore[explicit-any]  # options go by name

JSON = {"Content-Type": "application/json"}
ONE_BACKEND: Final = pytest.mark.parametrize(
    "anyio_backend", ["asyncio"], scope="session"
)


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

    config = uvicorn.Config(
        server.streamable_http_app(), log_level="critical", ws="none", lifespan="on"
    )
    runner = uvicorn.Server(config)
    # who comes before it runs waits here
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=runner.run, args=([listener],), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        runner.should_exit = True
        thread.join(10)


async def test_a_real_server_answers(
    opened: Open, real_server: str, text: Text, failure: Text
) -> None:
    async with opened({"s": {"url": real_server, "type": "http"}}) as one:
        assert {"mcp__s__add", "mcp__s__count", "mcp__s__large"} <= set(
            one.coordinator.tools
        )
        assert (
            json.loads((await text(one, "mcp__s__add", a=2, b=3)).split("\n")[0]) == 5
        )
        assert "counted" in await text(one, "mcp__s__count", to=3)
        assert "a: expected" in await failure(one, "mcp__s__add", a="x", b=3)


async def test_message_over_http_that_is_too_long_fails_call_alone(
    opened: Open, real_server: str, text: Text, failure: Text
) -> None:
    async with opened({"s": {"url": real_server}}, max_message_bytes=100_000) as one:
        reported = await failure(one, "mcp__s__large", characters=400_000)
        assert (
            "gave no answer that can be used; the call may have had its effect"
            in reported
        )
        assert (
            "more than the 100000 bytes of max_message_bytes; ask for less" in reported
        )
        assert "counted" in await text(one, "mcp__s__count", to=1)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_message_over_http_of_very_many_values_fails_call_alone(
    opened: Open, site: Sites, hello: Hello, text: Text, failure: Text, kind: str
) -> None:
    content: list[dict[str, object]] = [{}] * 200_000

    def answer(message: dict[str, object], _: dict[str, str]) -> Page:
        if message.get("method") != "tools/call" or not content:
            return hello(message)
        data = json.dumps(
            {"jsonrpc": "2.0", "id": message["id"], "result": {"content": content}}
        ).encode()
        content.clear()
        return (
            200,
            {"Content-Type": kind},
            data if kind == "application/json" else b"data: " + data + b"\n\n",
        )

    async with opened({"s": {"url": site(answer).url}}) as one:
        assert "more than 100000 values; ask for less" in await failure(
            one, "mcp__s__go"
        )
        assert await text(one, "mcp__s__go") == "gone"


async def test_nothing_asked_before_server_knows_that_session_begins(
    opened: Open, site: Sites, hello: Hello, text: Text
) -> None:
    asked, begun = threading.Event(), threading.Event()

    def answer(message: dict[str, object], _: dict[str, str]) -> Page:
        if message.get("method") == "notifications/initialized":
            asked.wait(0.5)
            begun.set()
        if message.get("method") == "tools/list":
            asked.set()
            if not begun.is_set():
                return 400, {}, b""
        return hello(message)

    async with opened({"s": {"url": site(answer).url}}) as one:
        assert await text(one, "mcp__s__go") == "gone"


async def test_a_call_is_waited_for_as_long_as_it_may_take(
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    site: Sites,
    hello: Hello,
    text: Text,
    failure: Text,
) -> None:
    """A request that may not take that long, sent while nothing comes of the call, tells that the time is over."""
    monkeypatch.setattr("amplifier_module_tool_mcp.http_transport._SILENT_SECONDS", 0.2)
    called, over = threading.Event(), threading.Event()
    reported: list[str] = []

    def answer(message: dict[str, object], _: dict[str, str]) -> Page:
        status, kind, body = hello(message)
        if message.get("method") == "initialize":
            return status, kind, body.replace(b'"tools"', b'"resources": {}, "tools"')
        if message.get("method") in ("tools/call", "resources/list"):
            called.set()
            over.wait(10)
        return status, kind, body

    async with opened({"s": {"url": site(answer).url}}) as one:

        async def call() -> None:
            reported.append(await text(one, "mcp__s__go"))

        async with anyio.create_task_group() as calls:
            calls.start_soon(call)
            await to_thread.run_sync(called.wait, 10)
            await failure(one, "mcp_resources", server="s")
            over.set()
    assert reported == ["gone"]


async def test_what_server_asks_without_end_is_answered_up_to_rate(
    opened: Open, monkeypatch: pytest.MonkeyPatch, site: Sites, hello: Hello, text: Text
) -> None:
    monkeypatch.setattr("amplifier_module_tool_mcp.wire._MOST", 3)
    asked = b"".join(
        b'data: {"jsonrpc": "2.0", "id": %d, "method": "ping"}\n\n' % number
        for number in range(100)
    )

    def answer(message: dict[str, object], _: dict[str, str]) -> Page:
        page = hello(message)
        if message.get("method") != "tools/call":
            return page
        return (
            200,
            {"Content-Type": "text/event-stream"},
            asked + b"data: " + page[2] + b"\n\n",
        )

    here = site(answer)
    async with opened({"s": {"url": here.url}}) as one:
        for _ in range(2):
            assert await text(one, "mcp__s__go") == "gone"
    assert 0 < [headers["method"] for headers in here.seen].count("None") < 50


async def test_headers_and_the_servers_session_go_with_every_request(
    opened: Open, site: Sites, hello: Hello, monkeypatch: pytest.MonkeyPatch, text: Text
) -> None:
    monkeypatch.setenv("SITE_TOKEN", "very-secret-token")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    here = site(lambda message, _: hello(message))
    server = {"url": here.url, "headers": {"Authorization": "Bearer ${SITE_TOKEN}"}}
    async with opened({"s": server}) as one:
        assert await text(one, "mcp__s__go") == "gone"
    assert {headers["authorization"] for headers in here.seen} == {
        "Bearer very-secret-token"
    }
    assert here.seen[-1]["mcp-session-id"] == "abc"


async def test_a_session_that_the_server_ended_is_begun_again(
    opened: Open, site: Sites, hello: Hello, text: Text, failure: Text
) -> None:
    sessions = ["one", "two"]
    calls: list[str] = []

    def answer(message: dict[str, object], headers: dict[str, str]) -> Page:
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


async def test_session_that_ended_while_resources_read_is_begun_again(
    opened: Open, site: Sites, hello: Hello, text: Text, failure: Text
) -> None:
    sessions = ["one", "two"]

    def answer(message: dict[str, object], headers: dict[str, str]) -> Page:
        if message.get("method") == "initialize":
            status, reported, body = hello(message, session=sessions.pop(0))
            return status, reported, body.replace(b'"tools"', b'"resources"')
        if message.get("method") == "resources/list":
            result = {"resources": [{"uri": "note:///a", "name": "a"}]}
            body = json.dumps(
                {"jsonrpc": "2.0", "id": message["id"], "result": result}
            ).encode()
            return (
                (404, {}, b"")
                if headers["mcp-session-id"] == "one"
                else (200, JSON, body)
            )
        return hello(message)

    async with opened({"s": {"url": site(answer).url}}) as one:
        assert "the next call begins another" in await failure(
            one, "mcp_resources", server="s"
        )
        assert await text(one, "mcp_resources", server="s") == "note:///a a:"


async def test_a_header_that_cannot_be_sent_is_named_and_not_shown(
    opened: Open,
    monkeypatch: pytest.MonkeyPatch,
    site: Sites,
    hello: Hello,
    status: Status,
) -> None:
    monkeypatch.setenv("SITE_TOKEN", "very-secret-token\n")
    here = site(lambda message, _: hello(message))
    server = {"url": here.url, "headers": {"Authorization": "Bearer ${SITE_TOKEN}"}}
    async with opened({"s": server}) as one:
        reported = await status(one, "s")
    assert reported["state"] == "refused"
    assert "the header 'Authorization' holds a line end" in str(reported["problem"])
    assert "very-secret" not in str(reported)
    assert here.seen == []


async def test_the_id_of_a_session_is_one_that_can_be_sent_back(
    opened: Open, site: Sites, hello: Hello, status: Status
) -> None:
    here = site(lambda message, _: hello(message, session="caf\u00e9"))
    async with opened({"s": {"url": here.url}}) as one:
        assert "the id that it gives the session cannot be sent back" in str(
            (await status(one, "s"))["problem"]
        )


@ONE_BACKEND
@pytest.mark.parametrize(
    ("code", "headers", "body", "why"),
    [
        (401, {}, b"", "it answers with status 401"),
        (500, {}, b"x" * 100, "it answers with status 500"),
        (200, {"Content-Type": "text/html"}, b"<html>", "it answers with 'text/html'"),
        (200, JSON, b"{", "its answer cannot be read"),
        (
            200,
            JSON,
            b'"' + b"x" * 300_000 + b'"',
            "more than the 100000 bytes of max_message_bytes",
        ),
        (
            200,
            {**JSON, "Content-Encoding": "gzip"},
            gzip.compress(b"x" * 10_000_000),
            "packed",
        ),
        (302, {"Location": "http://169.254.169.254/"}, b"", "not followed"),
        (307, {"Location": "http://localhost:9/"}, b"", "not followed"),
        (307, {"Location": "http://[::1"}, b"", "not followed"),
    ],
    ids=[
        "401",
        "500",
        "html",
        "broken",
        "long",
        "packed",
        "found",
        "elsewhere",
        "nowhere",
    ],
)
async def test_an_address_that_is_no_server_says_why(
    opened: Open,
    status: Status,
    site: Sites,
    code: int,
    headers: dict[str, str],
    body: bytes,
    why: str,
) -> None:
    here = site(lambda *_: (code, headers, body))
    async with opened({"s": {"url": here.url}}, max_message_bytes=100_000) as one:
        found = await status(one, "s")
        assert found["state"] == ("login" if code == 401 else "failed")
        assert why in str(found["problem"])


async def test_nobody_there_says_so(opened: Open, status: Status) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        async with opened(
            {"s": {"url": f"http://127.0.0.1:{nobody.getsockname()[1]}/mcp"}}
        ) as one:
            assert "attempts" in str((await status(one, "s"))["problem"])


@pytest.mark.parametrize(
    ("page", "may_have_run"),
    [
        ((400, {}, b""), False),
        ((502, {}, b""), True),
        ((200, JSON, b"{"), True),
        ((302, {"Location": "/"}, b""), False),
    ],
    ids=["refused", "gateway", "broken", "redirect"],
)
async def test_a_call_without_an_answer_says_whether_it_may_have_run(
    opened: Open,
    site: Sites,
    hello: Hello,
    failure: Text,
    page: Page,
    may_have_run: bool,
) -> None:
    here = site(
        lambda message, _: (
            page if message.get("method") == "tools/call" else hello(message)
        )
    )
    async with opened({"s": {"url": here.url}}) as one:
        reported = await failure(one, "mcp__s__go")
    assert ("may have had its effect" in reported) is may_have_run
    assert ("did not carry the call out" in reported) is not may_have_run


async def test_a_server_that_is_gone_did_not_carry_the_call_out(
    opened: Open, site: Sites, hello: Hello, failure: Text
) -> None:
    here = site(lambda message, _: hello(message))
    async with opened({"s": {"url": here.url}}) as one:
        here.close()
        reported = await failure(one, "mcp__s__go")
    assert "did not carry the call out" in reported
    assert "may have had" not in reported


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_a_projects_address_is_a_public_one(
    opened: Open,
    site: Sites,
    hello: Hello,
    work: Path,
    host: str,
    call: Call,
    status: Status,
) -> None:
    here = site(lambda message, _: hello(message))
    url = here.url.replace("127.0.0.1", host)
    (work / ".mcp.json").write_text(json.dumps({"mcpServers": {"p": {"url": url}}}))
    async with opened(approval=MockApprovalSystem("Agree")) as one:
        await call(one, "mcp_accept", server="p")
        assert "not public" in str((await status(one, "p"))["problem"])
    assert here.seen == []
