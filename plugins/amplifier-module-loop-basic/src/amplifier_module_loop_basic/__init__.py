"""The basic agent loop: ask the model, run the tools it calls, until it answers without a call."""

from __future__ import annotations

from amplifier_module_loop_basic._loop import BasicLoop

__all__ = ["BasicLoop"]
