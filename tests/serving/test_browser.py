"""Chromium reads a turn by its own `EventSource`, across a connection that breaks in the middle."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from amplifier import Agent
from amplifier_kit.scripted import answer
from tests.doubles import ScriptedProvider
from tests.serving.test_servers import uvicorn_at

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        CHROMIUM is None, reason="Chromium is not installed: apt-get install chromium"
    ),
    pytest.mark.timeout(120),
]

PAGE = """<!doctype html><title>t</title><pre id="log"></pre><script>
const log = [];
const source = new EventSource(location.hash.slice(1));
source.onmessage = (event) => {
  log.push([Number(event.lastEventId), JSON.parse(event.data)]);
  if (JSON.parse(event.data).type === "turn_result") {
    source.close();
    document.getElementById("log").textContent = JSON.stringify(log);
  }
};
</script>"""


class Breaking:
    """Ends the first event stream after some events, as a network does."""

    def __init__(self, app: ASGIApp, after: int) -> None:
        self.app = app
        self.after = after
        self.asked: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not str(scope.get("path")).endswith("/events"):
            await self.app(scope, receive, send)
            return
        self.asked.append(Request(scope).headers.get("last-event-id", ""))
        is_first, is_broken = len(self.asked) == 1, False

        async def broken(message: Message) -> None:
            nonlocal is_broken
            body = message.get("body", b"")
            if is_broken or not (is_first and body):
                if not is_broken:
                    await send(message)
                return
            is_broken = True
            frames = body.split(b"\n\n")[: self.after]
            whole = b"retry: 10\n\n" + b"\n\n".join(frames) + b"\n\n"
            # half of the next event is lost with the connection
            await send({**message, "body": whole + b"id: 99\nda", "more_body": False})

        await self.app(scope, receive, broken)


def test_a_page_that_loses_its_connection_misses_nothing(tmp_path: Path) -> None:
    words = [f"word-{number} " for number in range(20)]
    server = Agent(ScriptedProvider(answer(*words))).asgi(allow_anonymous=True)
    breaking = Breaking(server, after=3)

    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse(PAGE)

    app = Starlette(
        routes=[Route("/", page), Mount("/agent", breaking)], lifespan=server.lifespan
    )
    with uvicorn_at(app) as url:
        session = httpx2.post(f"{url}/agent/sessions").json()["session_id"]
        turns = f"/agent/sessions/{session}/turns"
        accept = {"Accept": "text/event-stream"}
        whole = httpx2.post(f"{url}{turns}", json={"prompt": "Hi"}, headers=accept)
        turn = json.loads(whole.text.splitlines()[1][6:])["turn_id"]
        command = [
            *(str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu"),
            *(f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"),
            "--virtual-time-budget=5000",
            f"{url}/#{turns}/{turn}/events",
        ]
        ran = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=100
        )

    found = re.search(r'<pre id="log">(.*)</pre>', ran.stdout)
    assert found is not None, ran.stdout
    read = json.loads(found[1])
    assert [number for number, _ in read] == [*range(1, len(read) + 1)]
    texts = [event["text"] for _, event in read if event["type"] == "text_delta"]
    assert "".join(texts) == "".join(words)
    assert breaking.asked == ["", "3"]
