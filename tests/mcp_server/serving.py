"""A served session, and the byte streams of its client, in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path

import anyio
import attrs
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.selection import SessionSelector, select_session
from amplifier.mcp_server.service import serving_session
from amplifier.mcp_server.transport import message_streams
from amplifier_kit.rpc.received import RpcLimits
from amplifier_sdk.jsontypes import JSONValue
from tests.cli.programs import write_plan

__all__ = ["ClientEnd", "served"]


@attrs.frozen
class ClientEnd:
    """What a client sends, and what it receives."""

    send: MemoryObjectSendStream[bytes]
    received: MemoryObjectReceiveStream[bytes]


@asynccontextmanager
async def served(
    project: Path,
    responses: Sequence[JSONValue],
    *modules: str,
    tools: Sequence[str] = (),
    accepted: frozenset[str] = frozenset(),
) -> AsyncIterator[ClientEnd]:
    """Serve a session of a plan; it ends with the block."""
    plan = write_plan(project.parent, responses, *modules)
    selected = select_session(
        PlanOptions(file=plan), SessionSelector(), AppDirs.find(project)
    )
    to_server, incoming = anyio.create_memory_object_stream[bytes](inf)
    outgoing, from_server = anyio.create_memory_object_stream[bytes](inf)

    async def serve() -> None:
        async with (
            serving_session(selected, tools, accepted=accepted) as service,
            message_streams(incoming, outgoing, RpcLimits()) as (received, sent),
        ):
            server = service.server()
            await server.run(received, sent, server.create_initialization_options())

    async with (
        to_server,
        incoming,
        outgoing,
        from_server,
        anyio.create_task_group() as group,
    ):
        group.start_soon(serve)
        yield ClientEnd(to_server, from_server)
        group.cancel_scope.cancel()
