"""`amplifier_core`, as modules of the original import it: `amplifier.compat` puts this package under that name."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier.compat.original.approval import ApprovalSystem, ApprovalTimeoutError
    from amplifier.compat.original.cancellation import (
        CancellationState,
        CancellationToken,
    )
    from amplifier.compat.original.content_models import (
        ContentBlock,
        ContentBlockType,
        TextContent,
        ThinkingContent,
        ToolCallContent,
        ToolResultContent,
    )
    from amplifier.compat.original.coordinator import ModuleCoordinator
    from amplifier.compat.original.display import DisplaySystem
    from amplifier.compat.original.hooks import HookRegistry
    from amplifier.compat.original.interfaces import (
        ApprovalProvider,
        ApprovalRequest,
        ApprovalResponse,
        ContextManager,
        HookHandler,
        Orchestrator,
        Provider,
        Tool,
    )
    from amplifier.compat.original.llm_errors import (
        AbortError,
        AccessDeniedError,
        AuthenticationError,
        ConfigurationError,
        ContentFilterError,
        ContextLengthError,
        InvalidRequestError,
        InvalidToolCallError,
        LLMError,
        LLMTimeoutError,
        NetworkError,
        NotFoundError,
        ProviderUnavailableError,
        QuotaExceededError,
        RateLimitError,
        StreamError,
        classify_error_message,
    )
    from amplifier.compat.original.loader import ModuleLoader, ModuleValidationError
    from amplifier.compat.original.message_models import (
        ChatRequest,
        ChatResponse,
        ContentBlockUnion,
        Degradation,
        ImageBlock,
        Message,
        ReasoningBlock,
        RedactedThinkingBlock,
        ResponseFormat,
        ResponseFormatJson,
        ResponseFormatJsonSchema,
        ResponseFormatText,
        TextBlock,
        ThinkingBlock,
        ToolCall,
        ToolCallBlock,
        ToolResultBlock,
        ToolSpec,
        Usage,
    )
    from amplifier.compat.original.models import (
        ConfigField,
        ContextInjection,
        HookResult,
        ModelInfo,
        ModuleInfo,
        Pricing,
        ProviderInfo,
        SessionStatus,
        ToolResult,
    )
    from amplifier.compat.original.session import AmplifierSession
    from amplifier.compat.original.testing import (
        EventRecorder,
        MockContextManager,
        MockCoordinator,
        MockTool,
        ScriptedOrchestrator,
        TestCoordinator,
        create_test_coordinator,
        wait_for,
    )
    from amplifier.compat.original.utils.retry import RetryConfig, retry_with_backoff

__all__ = [
    "AbortError",
    "AccessDeniedError",
    "AmplifierSession",
    "ApprovalProvider",
    "ApprovalRequest",
    "ApprovalResponse",
    "ApprovalSystem",
    "ApprovalTimeoutError",
    "AuthenticationError",
    "CancellationState",
    "CancellationToken",
    "ChatRequest",
    "ChatResponse",
    "ConfigField",
    "ConfigurationError",
    "ContentBlock",
    "ContentBlockType",
    "ContentBlockUnion",
    "ContentFilterError",
    "ContextInjection",
    "ContextLengthError",
    "ContextManager",
    "Degradation",
    "DisplaySystem",
    "EventRecorder",
    "HookHandler",
    "HookRegistry",
    "HookResult",
    "ImageBlock",
    "InvalidRequestError",
    "InvalidToolCallError",
    "LLMError",
    "LLMTimeoutError",
    "Message",
    "MockContextManager",
    "MockCoordinator",
    "MockTool",
    "ModelInfo",
    "ModuleCoordinator",
    "ModuleInfo",
    "ModuleLoader",
    "ModuleValidationError",
    "NetworkError",
    "NotFoundError",
    "Orchestrator",
    "Pricing",
    "Provider",
    "ProviderInfo",
    "ProviderUnavailableError",
    "QuotaExceededError",
    "RateLimitError",
    "ReasoningBlock",
    "RedactedThinkingBlock",
    "ResponseFormat",
    "ResponseFormatJson",
    "ResponseFormatJsonSchema",
    "ResponseFormatText",
    "RetryConfig",
    "ScriptedOrchestrator",
    "SessionStatus",
    "StreamError",
    "TestCoordinator",
    "TextBlock",
    "TextContent",
    "ThinkingBlock",
    "ThinkingContent",
    "Tool",
    "ToolCall",
    "ToolCallBlock",
    "ToolCallContent",
    "ToolResult",
    "ToolResultBlock",
    "ToolResultContent",
    "ToolSpec",
    "Usage",
    "__version__",
    "classify_error_message",
    "create_test_coordinator",
    "retry_with_backoff",
    "wait_for",
]

__version__ = "2.0.2"
"""The version of the original whose names these are."""

_HOME = {
    "approval": ("ApprovalSystem", "ApprovalTimeoutError"),
    "cancellation": ("CancellationState", "CancellationToken"),
    "content_models": (
        "ContentBlock",
        "ContentBlockType",
        "TextContent",
        "ThinkingContent",
        "ToolCallContent",
        "ToolResultContent",
    ),
    "coordinator": ("ModuleCoordinator",),
    "display": ("DisplaySystem",),
    "hooks": ("HookRegistry",),
    "interfaces": (
        "ApprovalProvider",
        "ApprovalRequest",
        "ApprovalResponse",
        "ContextManager",
        "HookHandler",
        "Orchestrator",
        "Provider",
        "Tool",
    ),
    "llm_errors": (
        "AbortError",
        "AccessDeniedError",
        "AuthenticationError",
        "ConfigurationError",
        "ContentFilterError",
        "ContextLengthError",
        "InvalidRequestError",
        "InvalidToolCallError",
        "LLMError",
        "LLMTimeoutError",
        "NetworkError",
        "NotFoundError",
        "ProviderUnavailableError",
        "QuotaExceededError",
        "RateLimitError",
        "StreamError",
        "classify_error_message",
    ),
    "loader": ("ModuleLoader", "ModuleValidationError"),
    "message_models": (
        "ChatRequest",
        "ChatResponse",
        "ContentBlockUnion",
        "Degradation",
        "ImageBlock",
        "Message",
        "ReasoningBlock",
        "RedactedThinkingBlock",
        "ResponseFormat",
        "ResponseFormatJson",
        "ResponseFormatJsonSchema",
        "ResponseFormatText",
        "TextBlock",
        "ThinkingBlock",
        "ToolCall",
        "ToolCallBlock",
        "ToolResultBlock",
        "ToolSpec",
        "Usage",
    ),
    "models": (
        "ConfigField",
        "ContextInjection",
        "HookResult",
        "ModelInfo",
        "ModuleInfo",
        "Pricing",
        "ProviderInfo",
        "SessionStatus",
        "ToolResult",
    ),
    "session": ("AmplifierSession",),
    "testing": (
        "EventRecorder",
        "MockContextManager",
        "MockCoordinator",
        "MockTool",
        "ScriptedOrchestrator",
        "TestCoordinator",
        "create_test_coordinator",
        "wait_for",
    ),
    "utils.retry": ("RetryConfig", "retry_with_backoff"),
}

_SUBMODULES = frozenset((*_HOME, "capabilities", "events", "module_sources"))

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    _load, __dir__ = load_from(__name__, _HOME)

    def __getattr__(name: str) -> object:
        """Load a public name, or a submodule: `import amplifier_core` brings all of them."""
        if name in _SUBMODULES or name in ("utils", "validation"):
            return _import_module(f"{__name__}.{name}")
        return _load(name)
