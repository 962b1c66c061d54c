"""A conversation memory that keeps everything and shows the model what fits."""

from __future__ import annotations

from amplifier_module_context_simple._context import ContextConfig, SimpleContext

__all__ = ["ContextConfig", "SimpleContext"]
