"""The protocols that modules implement."""

from __future__ import annotations

from amplifier.compat.original.models import ApprovalRequest, ApprovalResponse
from amplifier_sdk.approvals import ApprovalProvider
from amplifier_sdk.contracts import (
    ApprovalSystem,
    ContextManager,
    DisplaySystem,
    HookHandler,
    Orchestrator,
    Provider,
    Tool,
)

__all__ = [
    "ApprovalProvider",
    "ApprovalRequest",
    "ApprovalResponse",
    "ApprovalSystem",
    "ContextManager",
    "DisplaySystem",
    "HookHandler",
    "Orchestrator",
    "Provider",
    "Tool",
]
