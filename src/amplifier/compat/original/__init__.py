"""`amplifier_core`, as modules of the original import it: `amplifier.compat` puts this package under that name."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier.compat.original.approval import ApprovalSystem as ApprovalSystem
    from amplifier.compat.original.approval import (
        ApprovalTimeoutError as ApprovalTimeoutError,
    )
    from amplifier.compat.original.cancellation import (
        CancellationState as CancellationState,
    )
    from amplifier.compat.original.cancellation import (
        CancellationToken as CancellationToken,
    )
    from amplifier.compat.original.content_models import ContentBlock as ContentBlock
    from amplifier.compat.original.content_models import (
        ContentBlockType as ContentBlockType,
    )
    from amplifier.compat.original.content_models import TextContent as TextContent
    from amplifier.compat.original.content_models import (
        ThinkingContent as ThinkingContent,
    )
    from amplifier.compat.original.content_models import (
        ToolCallContent as ToolCallContent,
    )
    from amplifier.compat.original.content_models import (
        ToolResultContent as ToolResultContent,
    )
    from amplifier.compat.original.coordinator import (
        ModuleCoordinator as ModuleCoordinator,
    )
    from amplifier.compat.original.display import DisplaySystem as DisplaySystem
    from amplifier.compat.original.hooks import HookRegistry as HookRegistry
    from amplifier.compat.original.interfaces import (
        ApprovalProvider as ApprovalProvider,
    )
    from amplifier.compat.original.interfaces import ApprovalRequest as ApprovalRequest
    from amplifier.compat.original.interfaces import (
        ApprovalResponse as ApprovalResponse,
    )
    from amplifier.compat.original.interfaces import ContextManager as ContextManager
    from amplifier.compat.original.interfaces import HookHandler as HookHandler
    from amplifier.compat.original.interfaces import Orchestrator as Orchestrator
    from amplifier.compat.original.interfaces import Provider as Provider
    from amplifier.compat.original.interfaces import Tool as Tool
    from amplifier.compat.original.llm_errors import AbortError as AbortError
    from amplifier.compat.original.llm_errors import (
        AccessDeniedError as AccessDeniedError,
    )
    from amplifier.compat.original.llm_errors import (
        AuthenticationError as AuthenticationError,
    )
    from amplifier.compat.original.llm_errors import (
        ConfigurationError as ConfigurationError,
    )
    from amplifier.compat.original.llm_errors import (
        ContentFilterError as ContentFilterError,
    )
    from amplifier.compat.original.llm_errors import (
        ContextLengthError as ContextLengthError,
    )
    from amplifier.compat.original.llm_errors import (
        InvalidRequestError as InvalidRequestError,
    )
    from amplifier.compat.original.llm_errors import (
        InvalidToolCallError as InvalidToolCallError,
    )
    from amplifier.compat.original.llm_errors import LLMError as LLMError
    from amplifier.compat.original.llm_errors import LLMTimeoutError as LLMTimeoutError
    from amplifier.compat.original.llm_errors import NetworkError as NetworkError
    from amplifier.compat.original.llm_errors import NotFoundError as NotFoundError
    from amplifier.compat.original.llm_errors import (
        ProviderUnavailableError as ProviderUnavailableError,
    )
    from amplifier.compat.original.llm_errors import (
        QuotaExceededError as QuotaExceededError,
    )
    from amplifier.compat.original.llm_errors import RateLimitError as RateLimitError
    from amplifier.compat.original.llm_errors import StreamError as StreamError
    from amplifier.compat.original.llm_errors import (
        classify_error_message as classify_error_message,
    )
    from amplifier.compat.original.loader import ModuleLoader as ModuleLoader
    from amplifier.compat.original.loader import (
        ModuleValidationError as ModuleValidationError,
    )
    from amplifier.compat.original.message_models import ChatRequest as ChatRequest
    from amplifier.compat.original.message_models import ChatResponse as ChatResponse
    from amplifier.compat.original.message_models import (
        ContentBlockUnion as ContentBlockUnion,
    )
    from amplifier.compat.original.message_models import Degradation as Degradation
    from amplifier.compat.original.message_models import ImageBlock as ImageBlock
    from amplifier.compat.original.message_models import Message as Message
    from amplifier.compat.original.message_models import (
        ReasoningBlock as ReasoningBlock,
    )
    from amplifier.compat.original.message_models import (
        RedactedThinkingBlock as RedactedThinkingBlock,
    )
    from amplifier.compat.original.message_models import (
        ResponseFormat as ResponseFormat,
    )
    from amplifier.compat.original.message_models import (
        ResponseFormatJson as ResponseFormatJson,
    )
    from amplifier.compat.original.message_models import (
        ResponseFormatJsonSchema as ResponseFormatJsonSchema,
    )
    from amplifier.compat.original.message_models import (
        ResponseFormatText as ResponseFormatText,
    )
    from amplifier.compat.original.message_models import TextBlock as TextBlock
    from amplifier.compat.original.message_models import ThinkingBlock as ThinkingBlock
    from amplifier.compat.original.message_models import ToolCall as ToolCall
    from amplifier.compat.original.message_models import ToolCallBlock as ToolCallBlock
    from amplifier.compat.original.message_models import (
        ToolResultBlock as ToolResultBlock,
    )
    from amplifier.compat.original.message_models import ToolSpec as ToolSpec
    from amplifier.compat.original.message_models import Usage as Usage
    from amplifier.compat.original.models import ConfigField as ConfigField
    from amplifier.compat.original.models import ContextInjection as ContextInjection
    from amplifier.compat.original.models import HookResult as HookResult
    from amplifier.compat.original.models import ModelInfo as ModelInfo
    from amplifier.compat.original.models import ModuleInfo as ModuleInfo
    from amplifier.compat.original.models import Pricing as Pricing
    from amplifier.compat.original.models import ProviderInfo as ProviderInfo
    from amplifier.compat.original.models import SessionStatus as SessionStatus
    from amplifier.compat.original.models import ToolResult as ToolResult
    from amplifier.compat.original.session import AmplifierSession as AmplifierSession
    from amplifier.compat.original.testing import EventRecorder as EventRecorder
    from amplifier.compat.original.testing import (
        MockContextManager as MockContextManager,
    )
    from amplifier.compat.original.testing import MockCoordinator as MockCoordinator
    from amplifier.compat.original.testing import MockTool as MockTool
    from amplifier.compat.original.testing import (
        ScriptedOrchestrator as ScriptedOrchestrator,
    )
    from amplifier.compat.original.testing import TestCoordinator as TestCoordinator
    from amplifier.compat.original.testing import (
        create_test_coordinator as create_test_coordinator,
    )
    from amplifier.compat.original.testing import wait_for as wait_for
    from amplifier.compat.original.utils.retry import RetryConfig as RetryConfig
    from amplifier.compat.original.utils.retry import (
        retry_with_backoff as retry_with_backoff,
    )

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
    "AbortError": "llm_errors",
    "AccessDeniedError": "llm_errors",
    "AmplifierSession": "session",
    "ApprovalProvider": "interfaces",
    "ApprovalRequest": "interfaces",
    "ApprovalResponse": "interfaces",
    "ApprovalSystem": "approval",
    "ApprovalTimeoutError": "approval",
    "AuthenticationError": "llm_errors",
    "CancellationState": "cancellation",
    "CancellationToken": "cancellation",
    "ChatRequest": "message_models",
    "ChatResponse": "message_models",
    "ConfigField": "models",
    "ConfigurationError": "llm_errors",
    "ContentBlock": "content_models",
    "ContentBlockType": "content_models",
    "ContentBlockUnion": "message_models",
    "ContentFilterError": "llm_errors",
    "ContextInjection": "models",
    "ContextLengthError": "llm_errors",
    "ContextManager": "interfaces",
    "Degradation": "message_models",
    "DisplaySystem": "display",
    "EventRecorder": "testing",
    "HookHandler": "interfaces",
    "HookRegistry": "hooks",
    "HookResult": "models",
    "ImageBlock": "message_models",
    "InvalidRequestError": "llm_errors",
    "InvalidToolCallError": "llm_errors",
    "LLMError": "llm_errors",
    "LLMTimeoutError": "llm_errors",
    "Message": "message_models",
    "MockContextManager": "testing",
    "MockCoordinator": "testing",
    "MockTool": "testing",
    "ModelInfo": "models",
    "ModuleCoordinator": "coordinator",
    "ModuleInfo": "models",
    "ModuleLoader": "loader",
    "ModuleValidationError": "loader",
    "NetworkError": "llm_errors",
    "NotFoundError": "llm_errors",
    "Orchestrator": "interfaces",
    "Pricing": "models",
    "Provider": "interfaces",
    "ProviderInfo": "models",
    "ProviderUnavailableError": "llm_errors",
    "QuotaExceededError": "llm_errors",
    "RateLimitError": "llm_errors",
    "ReasoningBlock": "message_models",
    "RedactedThinkingBlock": "message_models",
    "ResponseFormat": "message_models",
    "ResponseFormatJson": "message_models",
    "ResponseFormatJsonSchema": "message_models",
    "ResponseFormatText": "message_models",
    "RetryConfig": "utils.retry",
    "ScriptedOrchestrator": "testing",
    "SessionStatus": "models",
    "StreamError": "llm_errors",
    "TestCoordinator": "testing",
    "TextBlock": "message_models",
    "TextContent": "content_models",
    "ThinkingBlock": "message_models",
    "ThinkingContent": "content_models",
    "Tool": "interfaces",
    "ToolCall": "message_models",
    "ToolCallBlock": "message_models",
    "ToolCallContent": "content_models",
    "ToolResult": "models",
    "ToolResultBlock": "message_models",
    "ToolResultContent": "content_models",
    "ToolSpec": "message_models",
    "Usage": "message_models",
    "classify_error_message": "llm_errors",
    "create_test_coordinator": "testing",
    "retry_with_backoff": "utils.retry",
    "wait_for": "testing",
}

_SUBMODULES = frozenset((*_HOME.values(), "capabilities", "events", "module_sources"))

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    _load, __dir__ = load_from(__name__, _HOME)

    def __getattr__(name: str) -> object:
        """Load a public name, or a submodule: `import amplifier_core` brings all of them."""
        if name in _SUBMODULES or name in ("utils", "validation"):
            return _import_module(f"{__name__}.{name}")
        return _load(name)
