"""Where and when an agent works: directory, platform, date, session and the state of the git repository."""

from __future__ import annotations

from amplifier_module_hooks_status_context._hook import mount
from amplifier_module_hooks_status_context._settings import StatusContextConfig

__all__ = ["StatusContextConfig", "mount"]
