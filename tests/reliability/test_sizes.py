"""Something huge on every way into a session: the process stays small, and tells the true size.

`AMPLIFIER_TABLES=1` takes a gigabyte, and a process for each way on each backend; otherwise a tenth of it comes on half
of the ways with each backend, in one process.
"""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs
import pytest

from tests.reliability.figures import note_figure
from tests.reliability.sizes import ROWS, messages_of

FULL: Final = "AMPLIFIER_TABLES" in os.environ
SIZE: Final = 1_000_000_000 if FULL else 100_000_000
MOST: Final = 64 * 1024
"""Kilobytes that the process may grow by."""
PIECE: Final = b"x" * 1_000_000

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]
if FULL:
    pytestmark.append(pytest.mark.slow)

TRUE_SIZES: Final[Mapping[str, tuple[str, ...]]] = {
    "bash-lines": (f'"stdout_total_bytes": {SIZE}',),
    "bash-one-line": (f'"stdout_total_bytes": {SIZE}',),
    "web-long": ("is longer than the 5242880 bytes",),
    "web-packed": ("is longer than the 5242880 bytes",),
    "file-first-lines": ('"lines_read": 5', "line 4"),
    "file-last-lines": ('"lines_read": 5', f'"total_lines": {SIZE // 100}'),
    "mcp-message": ("a message of 100000",),
    "many-messages": (f"{messages_of(SIZE) + 2} messages",),
}
"""What is told of each."""


@attrs.define(eq=False)
class Source:
    """A server of pages as long as their addresses say."""

    url: str
    sent: dict[str, int]


@pytest.fixture(scope="module")
def source() -> Iterator[Source]:
    """Serve `/long/BYTES`, and `/packed/BYTES` which is that many bytes when it is unpacked."""
    sent: dict[str, int] = defaultdict(int)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, size = self.path.strip("/").split("/")
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            if kind == "packed":
                self.send_header("Content-Encoding", "gzip")
            self.end_headers()
            for piece in pieces(int(size)) if kind == "long" else packed(int(size)):
                self.wfile.write(piece)
                sent[self.path] += len(piece)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Say nothing of a reader who has gone."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Source(f"http://127.0.0.1:{server.server_address[1]}", sent)
        server.shutdown()
        thread.join()


def pieces(size: int) -> Iterator[bytes]:
    for start in range(0, size, len(PIECE)):
        yield PIECE[: size - start]


def packed(size: int) -> Iterator[bytes]:
    """Pack as small as it gets, each piece alike: only the first one is work."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield packer.compress(b"x" * 10) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(PIECE) + packer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(0, size, len(PIECE)):
        yield again


@pytest.fixture(params=ROWS if FULL else ["half"])
def rows(anyio_backend_name: str, request: pytest.FixtureRequest) -> list[str]:
    """The ways that one process takes."""
    return [request.param] if FULL else [*ROWS][anyio_backend_name == "trio" :: 2]


def test_what_is_huge_leaves_the_process_small(
    tmp_path: Path, source: Source, anyio_backend_name: str, rows: list[str]
) -> None:
    source.sent.clear()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.reliability.sizes"),
            *(anyio_backend_name, str(tmp_path), source.url, str(SIZE), *rows),
        ],
        cwd=Path(__file__).parents[2],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "TMPDIR": str(tmp_path),
            "AMPLIFIER_HOME": str(tmp_path / "own"),
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    seen = {line["row"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert list(seen) == rows
    for row, line in seen.items():
        note_figure(
            f"size, {row}, {anyio_backend_name}",
            f"grew by {line['grown'] / 1024:.1f} MB",
        )
        assert [part for part in TRUE_SIZES[row] if part not in line["told"]] == [], (
            line["told"][-1000:]
        )
    assert {
        row: line["grown"] for row, line in seen.items() if line["grown"] > MOST
    } == {}
    assert source.sent[f"/long/{SIZE}"] < SIZE / 2  # the limit, and what is under way
