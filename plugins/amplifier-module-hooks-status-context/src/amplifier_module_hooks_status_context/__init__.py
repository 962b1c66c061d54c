"""Where and when an agent works: directory, platform, date, session and the state of the git repository."""

from __future__ import annotations

from amplifier_module_hooks_status_context._gitstatus import StatusContextConfig
from amplifier_module_hooks_status_context._hook import mount

__all__ = ["StatusContextConfig", "mount"]
