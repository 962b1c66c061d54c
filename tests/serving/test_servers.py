"""The servers that people run: uvicorn on asyncio, hypercorn on trio."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx2
import hypercorn.trio
import pytest
import trio
import uvicorn
from fastapi import FastAPI
from hypercorn.config import Config as HypercornConfig
from starlette.types import ASGIApp

from amplifier import Agent
from amplifier.serving import AgentServer
from amplifier_kit.installation import install_command
from tests.doubles import ScriptedProvider
from tests.serving.client import ALICE

WORDS = [f"word-{number} " for number in range(200)]


def served() -> AgentServer:
    from amplifier_kit.scripted import answer

    return Agent(ScriptedProvider(answer(*WORDS), repeat=True)).asgi(tokens=[ALICE])


@contextmanager
def uvicorn_at(app: ASGIApp) -> Iterator[str]:
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="critical", ws="none", lifespan="on")
    )
    # asyncio sends what is small at once through a socket that names its protocol alone
    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


@contextmanager
def hypercorn_on_trio(app: AgentServer) -> Iterator[str]:
    config = HypercornConfig()
    config.bind, config.errorlog = ["127.0.0.1:0"], None
    addresses: list[str] = []
    bound, stop = threading.Event(), trio.Event()
    tokens: list[trio.lowlevel.TrioToken] = []

    async def run() -> None:
        tokens.append(trio.lowlevel.current_trio_token())
        async with trio.open_nursery() as nursery:
            serve = hypercorn.trio.serve
            binds = await nursery.start(
                lambda task_status: serve(
                    app,  # type: ignore[arg-type]  # its own name for an ASGI application
                    config,
                    shutdown_trigger=stop.wait,
                    task_status=task_status,
                )
            )
            addresses.extend(binds)
            bound.set()

    thread = threading.Thread(target=trio.run, args=(run,), daemon=True)
    thread.start()
    assert bound.wait(10)
    yield addresses[0]
    tokens[0].run_sync_soon(stop.set)
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.parametrize("run", [uvicorn_at, hypercorn_on_trio])
def test_a_turn_is_read_across_a_lost_connection(
    run: Callable[[AgentServer], Iterator[str]],
) -> None:
    headers = {"Authorization": f"Bearer {ALICE.secret}"}
    with run(served()) as url, httpx2.Client(base_url=url, headers=headers) as client:  # type: ignore[attr-defined]  # a context manager
        session = client.post("/sessions").json()["session_id"]
        path = f"/sessions/{session}/turns"
        turn = client.post(path, json={"prompt": "Hi"}).json()["turn_id"]
        ids: list[int] = []
        texts: list[str] = []
        for _ in range(4):
            known = {"Last-Event-ID": str(ids[-1])} if ids else {}
            events = f"{path}/{turn}/events"
            with client.stream("GET", events, headers=known) as answer:
                if answer.status_code == 204:
                    break
                for number, line in enumerate(answer.iter_lines()):
                    if line.startswith("id: "):
                        ids.append(int(line[4:]))
                    elif line.startswith("data: "):
                        texts.append(json.loads(line[6:]).get("text", ""))
                    if number > 200 and len(ids) == len(texts) and line == "":
                        break
        assert client.delete(f"/sessions/{session}").status_code == 204

    assert ids == [*range(1, len(ids) + 1)]
    assert "".join(texts).startswith("".join(WORDS))


def test_it_is_mounted_in_fastapi() -> None:
    server = served()
    app = FastAPI(lifespan=server.lifespan)
    app.mount("/agent", server)
    with uvicorn_at(app) as url:
        headers = {"Authorization": f"Bearer {ALICE.secret}"}
        assert httpx2.get(f"{url}/agent/health").json() == {"status": "ok"}
        begun = httpx2.post(f"{url}/agent/sessions", headers=headers)

    assert begun.status_code == 201


def test_the_real_server_closes_sessions_when_it_ends() -> None:
    closed = threading.Event()
    agent = Agent(ScriptedProvider())

    def prepare(session: object, _name: str) -> None:
        session.session.coordinator.register_cleanup(closed.set)  # type: ignore[attr-defined]

    with uvicorn_at(agent.asgi(tokens=[ALICE], prepare=prepare)) as url:
        headers = {"Authorization": f"Bearer {ALICE.secret}"}
        httpx2.post(f"{url}/sessions", headers=headers)
        assert not closed.is_set()

    assert closed.wait(5)


MISSING = """
import sys
sys.modules["starlette"] = None
from amplifier import Agent
try:
    Agent("local").asgi()
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.process
def test_without_the_extra_the_error_names_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", MISSING], capture_output=True, text=True, check=True
    )

    assert install_command("amplifier[server]") in ran.stdout
