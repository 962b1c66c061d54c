"""Takes secrets out of what a session logs, stores and shows, and out of its events."""

from __future__ import annotations

from amplifier_module_hooks_redaction._mount import RedactionConfig, mount

__all__ = ["RedactionConfig", "mount"]
