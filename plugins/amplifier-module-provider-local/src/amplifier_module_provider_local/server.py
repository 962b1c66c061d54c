"""The model's server, seen from the application: a child process, started, watched and ended."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import attrs
from anyio import to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from amplifier_kit.processes import open_python, python_argv, python_environment
from amplifier_sdk.errors import ConfigurationError, ProviderUnavailableError
from amplifier_sdk.jsontypes import JSONValue

if TYPE_CHECKING:
    from amplifier_module_provider_local.wire import Wire

__all__ = ["ModelServer", "ServerSettings"]

_CHILD: Final = str(Path(__file__).with_name("_server_child.py"))
_LINE: Final = 64 * 1024
_CLEANUP: Final = 4.0
_MAX_THREADS: Final = 4


@attrs.frozen(kw_only=True)
class ServerSettings:
    """How the server runs; `threads` of `None` leaves one processor free and takes at most four."""

    path: Path
    n_ctx: int
    n_parallel: int
    threads: int | None
    start_timeout: float


@attrs.define(eq=False)
class ModelServer:
    """One running server and the way to talk to it; made by `start`, ended by `aclose`."""

    process: Process
    wire: Wire

    @classmethod
    async def start(cls, settings: ServerSettings) -> ModelServer:
        """Start a server and wait until it has loaded the model.

        Raises:
            ConfigurationError: llama.cpp cannot be imported or does not take the model.
            ProviderUnavailableError: the process ended, or was not ready in time.
        """
        secret = secrets.token_urlsafe(32)
        process = await open_python(
            python_argv(_CHILD, packages=True), environment=python_environment()
        )
        try:
            with anyio.fail_after(settings.start_timeout):
                address = await _load(process, settings, secret)
                # HTTP is imported beside the loading: it takes a tenth of a second, and only answers need it.
                wire_module = await to_thread.run_sync(
                    partial(import_module, f"{__package__}.wire")
                )
            wire: Wire = wire_module.Wire.connect(address, secret)
        except TimeoutError as error:
            await _end(process)
            raise ProviderUnavailableError(
                f"The model {str(settings.path)!r} was not loaded within {settings.start_timeout:g} s; "
                "raise `start_timeout`"
            ) from error
        except BaseException:
            await _end(process)
            raise
        return cls(process, wire)

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self.process.returncode is None

    async def aclose(self) -> None:
        """End the process, whatever it is doing, and wait for its end; shielded, a few seconds at most."""
        with anyio.move_on_after(_CLEANUP, shield=True):
            await self.wire.aclose()
        await _end(self.process)


async def _load(process: Process, settings: ServerSettings, secret: str) -> str:
    """Give the order and return the address."""
    order = {
        "path": str(settings.path),
        "n_ctx": settings.n_ctx,
        "n_parallel": settings.n_parallel,
        "threads": settings.threads or _threads(),
        # not in the arguments, which everyone on the machine can read
        "secret": secret,
    }
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        await process.stdin.send(json.dumps(order).encode() + b"\n")
        line = await BufferedByteReceiveStream(process.stdout).receive_until(
            b"\n", _LINE
        )
    except (
        anyio.BrokenResourceError,
        anyio.EndOfStream,
        anyio.IncompleteRead,
    ) as error:
        status = await process.wait()
        raise ProviderUnavailableError(
            f"The server of the model {str(settings.path)!r} ended with status {status} before it was ready"
        ) from error
    return _address(json.loads(line), settings.path)


def _threads() -> int:
    """Return the number of processors but one, from 1 to 4.

    The model's threads wait for each other at every step: one that shares its processor holds all of them back.
    """
    if hasattr(os, "sched_getaffinity"):
        usable = len(os.sched_getaffinity(0))
    else:
        usable = os.cpu_count() or 1
    return max(1, min(usable - 1, _MAX_THREADS))


def _address(answer: Mapping[str, JSONValue], path: Path) -> str:
    if "missing" in answer:
        raise ConfigurationError(
            f"xllamacpp (llama.cpp for Python) cannot be imported by {sys.executable}: {answer['missing']}. "
            "Install a wheel of it that fits this platform"
        )
    if "error" in answer:
        raise ConfigurationError(
            f"llama.cpp does not take the model {str(path)!r}: {answer['error']}. Is it a whole GGUF file of a kind "
            "that the installed xllamacpp knows?"
        )
    return str(answer["address"])


async def _end(process: Process) -> None:
    with anyio.move_on_after(_CLEANUP, shield=True):
        if process.returncode is None:
            process.kill()
        await process.aclose()
