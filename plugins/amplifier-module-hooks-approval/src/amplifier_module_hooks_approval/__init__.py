"""Lets tool calls run, asks a person or refuses them, by rules on their parsed arguments."""

from __future__ import annotations

from amplifier_module_hooks_approval._hook import ApprovalHook
from amplifier_module_hooks_approval.config import ApprovalConfig

__all__ = ["ApprovalConfig", "ApprovalHook"]
