"""Asking a person: the error of a question that nobody answered, and who asks."""

from __future__ import annotations

from amplifier_sdk.contracts import ApprovalSystem
from amplifier_sdk.errors import ApprovalTimeoutError

__all__ = ["ApprovalSystem", "ApprovalTimeoutError"]
