"""The protocols that modules implement, and the models that their methods take and return."""

from __future__ import annotations

from amplifier.compat.original.message_models import ChatRequest, ChatResponse, ToolCall
from amplifier.compat.original.models import (
    ApprovalRequest,
    ApprovalResponse,
    HookResult,
    ModelInfo,
    ProviderInfo,
    ToolResult,
)
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
    "ChatRequest",
    "ChatResponse",
    "ContextManager",
    "DisplaySystem",
    "HookHandler",
    "HookResult",
    "ModelInfo",
    "Orchestrator",
    "Provider",
    "ProviderInfo",
    "Tool",
    "ToolCall",
    "ToolResult",
]
