"""One real server for the tests: llama.cpp with the embedded model, on the loopback interface."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Final

import anyio
import attrs
import httpx2

from amplifier_module_provider_local import LocalConfig
from amplifier_module_provider_local.weights import (
    EMBEDDED,
    ModelFile,
    cache_directory,
    embedded_file,
)

__all__ = ["Server", "run_server"]

_CHILD: Final = Path(__file__).with_name("llama_child.py")


@attrs.frozen
class Server:
    """A server that speaks three vendors' protocols; whoever has no key is refused."""

    address: str
    key: str = attrs.field(repr=False)

    async def busy(self) -> int:
        """Return how many of the two slots are at work."""
        headers = {"Authorization": f"Bearer {self.key}"}
        async with httpx2.AsyncClient(trust_env=False, verify=False) as client:
            slots = (await client.get(f"{self.address}/slots", headers=headers)).json()
        return sum(slot["is_processing"] for slot in slots)

    async def wait_until_idle(self, seconds: float = 8.0) -> None:
        """Return when no slot is at work any more; the server is asked until then."""
        with anyio.fail_after(seconds):
            while await self.busy():
                pass


@contextmanager
def run_server() -> Iterator[Server]:
    """Run a server, with the weights out of the cache; they are fetched when they are not there."""
    with ThreadPoolExecutor(1) as thread:  # no event loop runs there
        path = thread.submit(anyio.run, _weights).result()
    key = secrets.token_urlsafe(32)
    with subprocess.Popen(
        [sys.executable, str(_CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"path": str(path), "key": key}) + "\n")
            process.stdin.flush()
            address = process.stdout.readline().strip()
            assert address, "llama.cpp's server did not start"
            yield Server(address, key)
        finally:
            process.kill()


async def _weights() -> Path:
    async with aclosing(
        embedded_file(EMBEDDED, cache_directory(LocalConfig()))
    ) as steps:
        async for step in steps:
            if isinstance(step, ModelFile):
                return step.path
    raise AssertionError("the weights cannot be had")
