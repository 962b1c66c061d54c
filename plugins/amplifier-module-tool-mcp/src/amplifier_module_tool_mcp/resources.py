"""The resources of servers, as tools list and read them."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from amplifier_kit.trust.untrusted import mark_untrusted
from amplifier_module_tool_mcp.results import (
    ResultCollector,
    one_line,
    read_contents,
    words_of,
)
from amplifier_module_tool_mcp.server import Server
from amplifier_sdk.errors import ToolError
from amplifier_sdk.results import ToolResult

if TYPE_CHECKING:
    from mcp.client import Client  # takes most of a second to import

__all__ = ["list_resources", "read_resource"]

T = TypeVar("T")

_MOST: Final = 200
_LONGEST_ERROR: Final = 3000


async def list_resources(server: Server) -> ToolResult:
    """List the resources of a server and the templates of their addresses.

    Raises:
        ToolError: the server cannot, or fails.
    """
    client = await _client(server)
    found = await _asked(server, client.list_resources())
    lines = [
        f"{item.uri} {item.name}: {item.description or item.mime_type or ''}"
        for item in found.resources
    ]
    more = found.next_cursor is not None
    with suppress(ToolError):  # servers may leave templates out
        templates = await _asked(server, client.list_resource_templates())
        lines += [
            f"{item.uri_template} (template) {item.name}"
            for item in templates.resource_templates
        ]
        more = more or templates.next_cursor is not None
    shown = list(map(one_line, lines[:_MOST]))
    if more or len(lines) > _MOST:
        shown.append("[… more are not shown]")
    reading = ResultCollector(f"mcp:{server.name}", server.config.max_result_chars)
    reading.add_text("\n".join(shown) or "no resources")
    return reading.to_result()


async def read_resource(server: Server, uri: str) -> ToolResult:
    """Read a resource.

    Raises:
        ToolError: the server cannot, or fails.
    """
    client = await _client(server)
    found = await _asked(server, client.session.read_resource(uri))
    return read_contents(
        found.contents, f"mcp:{server.name}", server.config.max_result_chars
    )


async def _client(server: Server) -> Client:
    client = await server.client()
    if not server.has_resources:
        raise ToolError(f"the MCP server {server.name!a} has no resources")
    return client


async def _asked(server: Server, answer: Awaitable[T]) -> T:
    from mcp import MCPError  # it is imported when there is a client

    try:
        return await answer
    except (MCPError, ValueError, RuntimeError) as error:
        if isinstance(error, MCPError):
            server.failed(error)
        shown = mark_untrusted(words_of(error)[:_LONGEST_ERROR], f"mcp:{server.name}")
        raise ToolError(
            f"the MCP server {server.name!a} did not answer:\n{shown}"
        ) from error
