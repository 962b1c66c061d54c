"""The names of what servers offer, all different: of tools as models call them, of prompts as people type them."""

from __future__ import annotations

import hashlib
import re
from typing import Final

__all__ = ["command_name", "tool_name"]

_LONGEST: Final = 64
_DIGEST: Final = 8
_PLAIN_SERVER: Final = r"(?!_)(?!.*__)[A-Za-z0-9_-]+(?<!_)"
_PLAIN_TOOL: Final = r"(?!_)[A-Za-z0-9_-]+"
_PLAIN_PROMPT: Final = r"[A-Za-z0-9_.-]{1,64}"
_ODD: Final = r"[^A-Za-z0-9_-]+"


def tool_name(server: str, tool: str) -> str:
    """Return the one name of a server's tool: `mcp__SERVER__TOOL`, at most 64 letters, digits, `_` and `-`.

    Where that would be too long, hold other characters, or be the name of another pair as well, what fits of it is
    followed by a digest of both names.
    """
    name = f"mcp__{server}__{tool}"
    if (
        len(name) <= _LONGEST
        and re.fullmatch(_PLAIN_SERVER, server)
        and re.fullmatch(_PLAIN_TOOL, tool)
    ):
        return name
    digest = _digest(server, tool)
    server, tool = (re.sub(_ODD, "_", text) for text in (server, tool))
    return f"{f'mcp__{server[:24]}__{tool}'[: _LONGEST - _DIGEST - 1]}_{digest}"


def command_name(server: str, prompt: str) -> str:
    """Return the one name of a server's prompt, as a command: `mcp:SERVER:PROMPT`, as `tool_name` does."""
    if re.fullmatch(_PLAIN_PROMPT, server) and re.fullmatch(_PLAIN_PROMPT, prompt):
        return f"mcp:{server}:{prompt}"
    plain = (re.sub(_ODD, "_", text)[:24] for text in (server, prompt))
    return f"mcp:{':'.join(plain)}_{_digest(server, prompt)}"


def _digest(server: str, offered: str) -> str:
    return hashlib.sha256(
        # With the length: `a`, `bc` and `ab`, `c` are two pairs.
        f"{len(server)}:{server}{offered}".encode("utf-8", "surrogatepass")
    ).hexdigest()[:_DIGEST]
