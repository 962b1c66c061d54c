"""An agent behind HTTP: an ASGI application that any server of asyncio or trio runs.

It needs the extra `amplifier[server]`.
"""

from __future__ import annotations

from importlib.util import find_spec as _find_spec

from amplifier_kit.installation import install_command as _install_command

if _find_spec("starlette") is None:
    # the modules below would name no extra
    raise ModuleNotFoundError(
        f"To serve an agent, starlette is needed: {_install_command('amplifier[server]')}",
        name="starlette",
    )
from amplifier.serving.application import AgentServer
from amplifier.serving.limits import ServerLimits
from amplifier.serving.tokens import Token

__all__ = ["AgentServer", "ServerLimits", "Token"]
