"""The Agent Client Protocol: editors drive sessions over JSON-RPC."""

from __future__ import annotations

from amplifier.acp.agent import AcpAgent

__all__ = ["AcpAgent"]
