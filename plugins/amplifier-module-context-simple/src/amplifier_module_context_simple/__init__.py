"""A conversation memory that keeps everything and shows the model what fits."""

from __future__ import annotations

from amplifier_module_context_simple._context import SimpleContext
from amplifier_module_context_simple._settings import ContextConfig

__all__ = ["ContextConfig", "SimpleContext"]
