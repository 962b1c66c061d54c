"""The log of a session: every event as a line of JSON, without secrets, written beside the turn."""

from __future__ import annotations

from amplifier_module_hooks_logging._mount import mount
from amplifier_module_hooks_logging._settings import LoggingConfig

__all__ = ["LoggingConfig", "mount"]
