"""Answers that stream over HTTP at the pace of fast models: what a delta costs the server, and how late it comes."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final

import anyio

from benchmarks.pairing import Effort
from benchmarks.rows import Row, figure
from benchmarks.served_app import GAP, PIECES, SECRET

__all__ = ["served"]

STREAMS: Final = 500
DELTA: Final = re.compile(rb'id: (\d+)\ndata: ({"type": ?"text_delta"[^\n]*)\n\n')


def served(backend: str, effort: Effort) -> list[Row]:
    """Five hundred streams of 50 pieces a second each; the effort has no say in it."""
    return [row for kind in ("agent", "floor") for row in _measured(kind, backend)]


def _measured(kind: str, backend: str) -> list[Row]:
    with _server(kind, backend) as (port, pid):
        delays: list[float] = []
        paths = anyio.run(_open_all, kind, port)
        used, started = _cpu(pid), perf_counter()
        anyio.run(_read_all, port, paths, delays)
        wall, used = perf_counter() - started, _cpu(pid) - used
    what = {"agent": "a served agent", "floor": "FastAPI and a bare generator"}[kind]
    rate = f"{len(delays) / wall:,.0f} of {STREAMS / GAP:,.0f} deltas a second"
    late = sorted(delays)[int(len(delays) * 0.99)] * 1e3
    name = f"{STREAMS} streams of {what}"
    return [
        figure(
            f"{name}, CPU of a delta, {backend}",
            used / len(delays) * 1e6,
            rate,
            unit=" µs",
        ),
        figure(f"{name}, delay p99, {backend}", late, unit=" ms"),
    ]


async def _open_all(kind: str, port: int) -> list[str]:
    """Return the address of each stream; those of an agent have a session each."""
    if kind == "floor":
        return ["/v1/chat/completions"] * STREAMS
    answers = [await _post(port, "/sessions", b"{}") for _ in range(STREAMS)]
    return [f"/sessions/{json.loads(raw)['session_id']}/turns" for raw in answers]


async def _read_all(port: int, paths: list[str], delays: list[float]) -> None:
    """Read all streams at once."""
    async with anyio.create_task_group() as readers:
        for path in paths:
            readers.start_soon(_read, port, path, delays)


def _request(path: str, body: bytes) -> bytes:
    # version 1.0: the body has no chunks, and ends with the connection
    return (
        f"POST {path} HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\nAccept: text/event-stream\r\n"
        f"Authorization: Bearer {SECRET}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def _post(port: int, path: str, body: bytes) -> bytes:
    raw = b""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(_request(path, body))
        async for piece in stream:
            raw += piece
    return raw.partition(b"\r\n\r\n")[2]


async def _read(port: int, path: str, delays: list[float]) -> None:
    """Read one stream; every piece has to come once, in order."""
    rest, count, last = b"", 0, 0
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(_request(path, b'{"prompt": "Go on."}'))
        async for piece in stream:
            now = perf_counter()
            rest += piece
            end = rest.rfind(b"\n\n") + 2
            for number, data in DELTA.findall(rest[:end]):
                if int(number) <= last:
                    raise RuntimeError(f"event {number!r} came after {last}")
                last = int(number)
                count += 1
                delays.append(now - float(json.loads(data)["text"]))
            rest = rest[end:]
            # hypercorn leaves the connection open behind the last one
            if count >= PIECES:
                break
    if count != PIECES:
        raise RuntimeError(f"{count} of {PIECES} pieces came")


@contextmanager
def _server(kind: str, backend: str) -> Iterator[tuple[int, int]]:
    """Run a server and yield its port and process id."""
    with socket.create_server(("127.0.0.1", 0), backlog=2 * STREAMS) as listener:
        fd = listener.fileno()
        arguments = ("-m", "benchmarks.served_app", kind, backend, str(fd))
        process = subprocess.Popen([sys.executable, *arguments], pass_fds=[fd])
        try:
            # who comes before it runs waits here
            port = listener.getsockname()[1]
            anyio.run(_post, port, "/nowhere", b"{}")
            yield port, process.pid
        finally:
            process.terminate()
            process.wait()


def _cpu(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
