"""A conversation memory that outlives its session: an append-only file that survives crashes."""

from __future__ import annotations

from amplifier_module_context_persistent._context import PersistentContext, mount
from amplifier_module_context_persistent._settings import PersistentConfig, Retention

__all__ = ["PersistentConfig", "PersistentContext", "Retention", "mount"]
