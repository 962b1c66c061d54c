"""Servers of models that run on this machine: found at the ports that each is known for, and asked for their models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import anyio
import attrs

from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["KNOWN", "LocalServer", "find_local_servers"]

TIMEOUT: Final = 0.5
"""Seconds that a server may take: on loopback an answer takes milliseconds."""

_HOST: Final = "127.0.0.1"
_MAX_BYTES: Final = 1_000_000


@attrs.frozen(kw_only=True)
class LocalServer:
    """A server of models.

    Args:
        name: what people call it.
        port: where it listens on loopback.
        path: what lists its models.
        module: the provider that speaks to it.
        config: further configuration of that provider, `{address}` being the server's.
        models: the models that it has.
    """

    name: str
    port: int
    path: str
    module: str
    config: Mapping[str, str] = attrs.field(factory=dict)
    models: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """The beginning of its addresses."""
        return f"http://{_HOST}:{self.port}"

    @property
    def options(self) -> JSONObject:
        """What the provider is configured with."""
        return {
            key: value.format(address=self.address)
            for key, value in self.config.items()
        }


_COMPATIBLE: Final = partial(
    LocalServer,
    path="/v1/models",
    module="provider-chat-completions",
    config={"base_url": "{address}/v1"},
)

KNOWN: Final = (
    LocalServer(
        name="Ollama",
        port=11434,
        path="/api/tags",
        module="provider-ollama",
        config={"host": "{address}"},
    ),
    _COMPATIBLE(name="LM Studio", port=1234),
    _COMPATIBLE(name="llama.cpp", port=8080),
)
"""The servers that are looked for."""


async def find_local_servers() -> list[LocalServer]:
    """Return the servers that answer and have a model, with their models; all are asked at once.

    What answers otherwise at such a port is another program, and is left out.
    """
    found: dict[int, LocalServer] = {}

    async def ask(number: int, server: LocalServer) -> None:
        models: tuple[str, ...] = ()
        # Whatever else listens there may answer as it likes.
        with suppress(
            OSError, ValueError, anyio.EndOfStream, anyio.BrokenResourceError
        ):
            with anyio.move_on_after(TIMEOUT):
                models = _models(await _get(server))
        if models:
            found[number] = attrs.evolve(server, models=models)

    async with anyio.create_task_group() as group:
        for number, server in enumerate(KNOWN):
            group.start_soon(ask, number, server)
    return [found[number] for number in sorted(found)]


async def _get(server: LocalServer) -> JSONValue:
    # HTTP 1.0: the answer ends with the connection, and needs no library.
    request = f"GET {server.path} HTTP/1.0\r\nHost: {_HOST}:{server.port}\r\nAccept: application/json\r\n\r\n"
    async with await anyio.connect_tcp(_HOST, server.port) as stream:
        await stream.send(request.encode())
        data = b""
        with suppress(anyio.EndOfStream):
            while len(data) < _MAX_BYTES:
                data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        return None
    content: JSONValue = json.loads(body)
    return content


def _models(content: JSONValue) -> tuple[str, ...]:
    """Return the names of a list of models, in Ollama's form or in OpenAI's."""
    fields = as_object(content)
    listed = as_list(fields.get("models")) or as_list(fields.get("data"))
    names = []
    for entry in map(as_object, listed):
        name = entry.get("id") or entry.get("name")
        if isinstance(name, str) and name:
            names.append(name)
    return tuple(names)
