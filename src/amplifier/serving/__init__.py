"""An agent behind HTTP: an ASGI application that any server of asyncio or trio runs.

It needs the extra `amplifier[server]`.
"""

from __future__ import annotations

try:
    import starlette  # noqa: F401  # the modules below name no extra when it is missing
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"To serve an agent, {error.name} is needed: pip install 'amplifier[server]'",
        name=error.name,
    ) from error
from amplifier.serving.application import AgentServer
from amplifier.serving.limits import ServerLimits
from amplifier.serving.tokens import Token

__all__ = ["AgentServer", "ServerLimits", "Token"]
