"""The names by which models call the tools of servers: at most 64 letters, digits, `_` and `-`, all different."""

from __future__ import annotations

import hashlib
import re
from typing import Final

__all__ = ["tool_name"]

_LONGEST: Final = 64
_DIGEST: Final = 8
_PLAIN_SERVER: Final = r"(?!_)(?!.*__)[A-Za-z0-9_-]+(?<!_)"
_PLAIN_TOOL: Final = r"(?!_)[A-Za-z0-9_-]+"
_ODD: Final = r"[^A-Za-z0-9_-]+"


def tool_name(server: str, tool: str) -> str:
    """Return the one name of a server's tool: `mcp__SERVER__TOOL`.

    Where that would be too long, hold other characters, or be the name of another pair as well, what fits of it is
    followed by a digest of both names.
    """
    name = f"mcp__{server}__{tool}"
    if len(name) <= _LONGEST and re.fullmatch(_PLAIN_SERVER, server) and re.fullmatch(_PLAIN_TOOL, tool):
        return name
    digest = hashlib.sha256(f"{len(server)}:{server}{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    server, tool = (re.sub(_ODD, "_", text) for text in (server, tool))
    return f"{f'mcp__{server[:24]}__{tool}'[: _LONGEST - _DIGEST - 1]}_{digest}"
