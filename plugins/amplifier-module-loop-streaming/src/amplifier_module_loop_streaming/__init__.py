"""The agent loop for a person who watches: it streams, and reads what is typed while it works."""

from __future__ import annotations

from amplifier_module_loop_streaming._loop import StreamingConfig, StreamingLoop

__all__ = ["StreamingConfig", "StreamingLoop"]
