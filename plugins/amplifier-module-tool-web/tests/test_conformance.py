"""The module has every behaviour of its type."""

from __future__ import annotations

import atexit
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from amplifier.testing.conformance import ToolSamples, conformance
from amplifier_kit.http.web_search import SEARCH_BACKEND, SearchHit
from amplifier_module_tool_web import Web
from amplifier_sdk.jsontypes import JSONValue

OVER = threading.Event()
INSIDE: list[str] = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/slow":
            OVER.wait(20)
            return
        self.send_response(404 if self.path == "/nowhere" else 200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"A page.")

    def log_message(self, *_: object) -> None:
        pass


class Backend:
    name = "shelf"

    async def search(self, query: str, limit: int, /) -> Sequence[SearchHit]:
        return [SearchHit(url="https://example.com/", title=query)][:limit]


# The samples name the port, so it has to be known before anything is served.
SERVER = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
SERVER.daemon_threads = True
URL = f"http://127.0.0.1:{SERVER.server_port}"
atexit.register(SERVER.server_close)


@asynccontextmanager
async def around() -> AsyncGenerator[dict[str, JSONValue], None]:
    """Serve while anybody is inside: two sessions may be at once."""
    INSIDE.append("session")
    if len(INSIDE) == 1:
        OVER.clear()
        threading.Thread(target=SERVER.serve_forever, args=(0.01,)).start()
    try:
        yield {"allowed_addresses": [f"127.0.0.1:{SERVER.server_port}"]}
    finally:
        INSIDE.pop()
        if not INSIDE:
            OVER.set()
            SERVER.shutdown()


TestWeb = conformance(
    "tool",
    Web,
    samples=ToolSamples(
        around=around,
        capabilities={SEARCH_BACKEND: Backend()},
        arguments={
            "web_fetch": ({"url": f"{URL}/page"},),
            "web_search": ({"query": "pages"},),
        },
        failing={
            "web_fetch": (
                {"url": f"{URL}/nowhere"},
                {"url": "http://169.254.169.254/"},
                {"url": "no address"},
            ),
            "web_search": ({"query": " "},),
        },
        slow={"web_fetch": {"url": f"{URL}/slow"}},
        bad_config={"max_redirects": -1},
    ),
)
