"""A server in a process of its own, for the case `served`: an agent, or FastAPI with a bare generator as its floor.

python -m benchmarks.served_app agent|floor asyncio|trio FD
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from time import perf_counter
from typing import TYPE_CHECKING

import anyio
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from amplifier import Agent
from amplifier.serving import ServerLimits, Token
from benchmarks.cases.paced import PacedModel

if TYPE_CHECKING:
    from starlette.types import ASGIApp

__all__ = ["GAP", "PIECES", "SECRET"]

SECRET = "a-secret-for-this-machine"  # noqa: S105  # nobody else reaches the server
PIECES = 200
GAP = 0.02
"""Seconds between two pieces of one stream."""


class _FastModel(PacedModel):
    """Fifty pieces a second."""

    pieces = PIECES
    gap = GAP


def _agent() -> ASGIApp:
    token = Token(
        name="bench",
        secret=SECRET,
        max_requests=1_000_000,
        max_sessions=1000,
        max_turns=1000,
        max_streams=1000,
    )
    return Agent(_FastModel()).asgi(tokens=[token], limits=ServerLimits())


def _floor() -> ASGIApp:
    app = FastAPI()

    async def pieces() -> AsyncIterator[bytes]:
        for number in range(1, PIECES + 1):
            await anyio.sleep(GAP)
            event = {"type": "text_delta", "text": str(perf_counter()), "index": 0}
            yield f"id: {number}\ndata: {json.dumps(event)}\n\n".encode()

    @app.post("/v1/chat/completions")
    async def stream() -> StreamingResponse:
        return StreamingResponse(pieces(), media_type="text/event-stream")

    return app


def _run(app: ASGIApp, backend: str, fd: int) -> None:
    if backend == "asyncio":
        import uvicorn

        uvicorn.run(app, fd=fd, log_level="critical", timeout_graceful_shutdown=1)
        return
    import hypercorn.trio
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"fd://{fd}"]
    anyio.run(hypercorn.trio.serve, app, config, backend="trio")  # type: ignore[arg-type]  # its own name for an ASGI application


if __name__ == "__main__":
    kind, backend, fd = sys.argv[1:]
    _run(_agent() if kind == "agent" else _floor(), backend, int(fd))
