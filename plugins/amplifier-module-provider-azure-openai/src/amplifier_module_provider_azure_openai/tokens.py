"""Entra tokens: what a command prints, cached until it expires.

The forms that are read: a bare token, and the JSON of `az account get-access-token`, of `azd auth token` and of the
metadata service of a managed identity.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from time import time
from typing import Final

import anyio
import attrs
from anyio.abc import ByteReceiveStream, Process

from amplifier_kit.processes import find_program, python_environment
from amplifier_sdk.errors import AuthenticationError
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.secret import Secret

__all__ = ["AccessToken", "CommandTokens", "read_token"]

_LIFE: Final = 300.0
"""Seconds for which a token without an expiry is cached."""

_MARGIN: Final = 300.0
"""Seconds before its end in which a token is not used any more."""

_MAX_BYTES: Final = 64 * 1024
_TAIL: Final = 500
"""Characters of what a failed command says that the error quotes."""

_END: Final = 5.0
"""Seconds in which a command that was killed must be gone."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""What a bearer's token can be, by RFC 6750."""

_TOKENS: Final = ("accessToken", "access_token", "token")
_ENDS: Final = ("expires_on", "expiresOn")


@attrs.frozen
class AccessToken:
    """A token and the seconds for which it may be used, from now."""

    text: Secret
    life: float


def read_token(output: str, *, now: float) -> AccessToken:
    """Read what a command printed.

    Args:
        output: its standard output.
        now: the time, in seconds of the epoch.

    Raises:
        AuthenticationError: there is no token in it.
    """
    printed = output.strip()
    try:
        value: JSONValue = json.loads(printed)
    except (ValueError, RecursionError):
        value = printed
    if isinstance(value, Mapping):
        text: JSONValue = next((value[key] for key in _TOKENS if key in value), None)
        ends = next(filter(None, (_end(value.get(key)) for key in _ENDS)), None)
    else:
        text, ends = value, None
    if not isinstance(text, str) or not _TOKEN.fullmatch(text):
        raise AuthenticationError(
            "The command of `credential` printed no token (what it printed is not shown)"
        )
    left = _LIFE
    if ends is not None:
        left = ends - now
    return AccessToken(Secret(text), left - min(_MARGIN, left / 2))


def _end(value: JSONValue) -> float | None:
    """Return when a token ends, in seconds of the epoch; a time without a zone is a local one."""
    if isinstance(value, (int, float)):
        return float(value)
    if not isinstance(value, str):
        return None
    with suppress(ValueError):
        return float(value)
    with suppress(ValueError):
        return datetime.fromisoformat(value).timestamp()
    return None


@attrs.define(eq=False)
class CommandTokens:
    """The tokens that a command prints.

    Args:
        command: a program and its arguments.
        timeout: seconds in which it must have ended.

    Attributes:
        is_fresh: whether the token that was given last had just been printed.
    """

    command: Sequence[str]
    timeout: float
    is_fresh: bool = attrs.field(default=False, init=False)
    _token: AccessToken | None = attrs.field(default=None, init=False)
    _until: float = attrs.field(default=0.0, init=False)
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)

    async def get(self) -> Secret:
        """Return a token that holds; the command runs once for all who wait.

        Raises:
            AuthenticationError: the command cannot be run, fails, is too slow, or prints no token.
        """
        async with self._lock:
            self.is_fresh = self._token is None or anyio.current_time() >= self._until
            if self._token is None or self.is_fresh:
                self._token = read_token(await self._run(), now=time())
                self._until = anyio.current_time() + self._token.life
            return self._token.text

    def forget(self) -> None:
        """Ask the command again at the next use: the vendor did not accept what it printed."""
        self._token = None

    async def _run(self) -> str:
        output, errors = bytearray(), bytearray()
        status: int | None = None
        with anyio.move_on_after(self.timeout):
            async with _started(self.command) as process:
                async with anyio.create_task_group() as group:
                    group.start_soon(_keep, process.stdout, output)
                    group.start_soon(_keep, process.stderr, errors)
                status = await process.wait()
        if status is None:
            raise AuthenticationError(
                f"The command of `credential` ({self.command[0]}) had not ended after {self.timeout:g} s; "
                "is it waiting for somebody to sign in? `credential_timeout` can be longer"
            )
        if status:
            message = (
                errors.decode("utf-8", "replace").strip()[-_TAIL:] or "it says nothing"
            )
            raise AuthenticationError(
                f"The command of `credential` ({self.command[0]}) ended with status {status}: {message}"
            )
        return output.decode("utf-8", "replace")


@asynccontextmanager
async def _started(command: Sequence[str]) -> AsyncIterator[Process]:
    """Start a command in a session of its own; when the block is left, all of it is ended."""
    program = _program(command[0])
    if program is None:
        raise AuthenticationError(
            f"The command of `credential` cannot be run: {command[0]} is not installed"
        )
    try:
        # a start that is broken off leaves a process that nobody knows
        with anyio.CancelScope(shield=True):
            # Not in the working directory: such commands are often Python, which a project's files would shadow.
            process = await anyio.open_process(
                [program, *command[1:]],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                cwd=Path.home(),
                env=python_environment(("*",)),
            )
    except OSError as error:
        raise AuthenticationError(
            f"The command of `credential` cannot be run: {error}"
        ) from error
    try:
        yield process
    finally:
        with anyio.move_on_after(_END, shield=True):
            # it has ended, as it should
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.aclose()


def _program(name: str) -> str | None:
    if os.sep in name:
        return os.path.abspath(name)
    return find_program(name)


async def _keep(stream: ByteReceiveStream | None, token: bytearray) -> None:
    """Read a stream to its end and keep the beginning."""
    assert stream is not None
    async for piece in stream:
        token += piece[: _MAX_BYTES - len(token)]
