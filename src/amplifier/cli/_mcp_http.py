"""`amplifier mcp serve --http`: until a signal ends it, on asyncio or trio."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Final

import anyio
import click

from amplifier.app.sessions.selection import SelectedSession
from amplifier.cli._app_dirs import find_secrets
from amplifier.cli._server_stores import require_server
from amplifier.cli._session_selection import report_opening
from amplifier.cli._terminal import notice

__all__ = ["serve_http"]

_TOKEN: Final = "AMPLIFIER_MCP_TOKEN"  # noqa: S105  # the name of the variable


def serve_http(
    selected: SelectedSession,
    tools: Sequence[str],
    accepted: frozenset[str],
    port: int,
    backend: str,
) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        click.ClickException: a package or the token is missing, or the port cannot be had.
    """
    require_server(backend)
    token = _token()
    anyio.run(
        partial(_serve, selected, tools, accepted, token, port, backend),
        backend=backend,
    )


def _token() -> str:
    from amplifier.mcp_server.http import SHORTEST_TOKEN

    token = os.environ.get(_TOKEN) or find_secrets().get(_TOKEN) or ""
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise click.ClickException(
            f"Clients need a token of {SHORTEST_TOKEN} characters or more: store a random one with"
            f" 'amplifier config secret set {_TOKEN}'"
        )
    return token


async def _serve(
    selected: SelectedSession,
    tools: Sequence[str],
    accepted: frozenset[str],
    token: str,
    port: int,
    backend: str,
) -> None:
    from amplifier.cli._listener import Listener, listen_for_signals
    from amplifier.mcp_server.http import PATH, http_application
    from amplifier.mcp_server.service import serving_session
    from amplifier_kit.rpc.received import RpcLimits

    listener, stop = Listener(host="127.0.0.1", port=port), anyio.Event()
    async with serving_session(selected, tools, accepted=accepted) as service:
        report_opening(service.opened, needs_provider=False)
        bound = listener.bind()
        place = bound.getsockname()[1]
        async with (
            http_application(service, token, place, RpcLimits()) as application,
            anyio.create_task_group() as group,
        ):
            await group.start(partial(listen_for_signals, stop))
            notice(f"Serving at http://127.0.0.1:{place}{PATH}")
            await listener.serve(application, bound, backend, stop)
            group.cancel_scope.cancel()
