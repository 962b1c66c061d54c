"""What module authors write with: the contracts, the values that cross them, decorators and base classes.

Names load when they are first used, so that importing one does not import them all. Event names are in
`amplifier_sdk.events`, every error in `amplifier_sdk.errors`, what several plugins share is the
package `amplifier_kit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_sdk.approvals import (
        ApprovalProvider,
        ApprovalRequest,
        ApprovalResponse,
    )
    from amplifier_sdk.arguments import Arguments, read_arguments
    from amplifier_sdk.chat import (
        ChatRequest,
        ChatResponse,
        ConfigField,
        Degradation,
        ModelInfo,
        Pricing,
        ProviderInfo,
        ToolCall,
        ToolSpec,
        Usage,
    )
    from amplifier_sdk.compaction import CompactionResult
    from amplifier_sdk.content import (
        AudioBlock,
        ContentBlock,
        DocumentBlock,
        ImageBlock,
        ReasoningBlock,
        RedactedThinkingBlock,
        TextBlock,
        ThinkingBlock,
        ToolCallBlock,
        ToolResultBlock,
        VendorBlock,
        VideoBlock,
    )
    from amplifier_sdk.contexts import BaseContext
    from amplifier_sdk.contracts import (
        ApprovalSystem,
        ContextManager,
        Coordinator,
        DisplaySystem,
        HookHandler,
        Hooks,
        ModuleSource,
        ModuleSourceResolver,
        Orchestrator,
        Provider,
        StreamingProvider,
        Tool,
        TurnHost,
    )
    from amplifier_sdk.decorators import (
        context,
        hook,
        module,
        orchestrator,
        provider,
        toolset,
    )
    from amplifier_sdk.delegation import ChildResult, SessionSpawn, SpawnOptions
    from amplifier_sdk.engines import ExecutionEngine
    from amplifier_sdk.errors import (
        AmplifierError,
        ApprovalPendingError,
        ApprovalTimeoutError,
        ApprovalUnavailableError,
        BudgetExceededError,
        ConfigError,
        LLMError,
        MediaError,
        ModuleLoadError,
        ModuleNotFoundError,
        SessionBusyError,
        SessionClosedError,
        ToolError,
        TurnCancelled,
    )
    from amplifier_sdk.events import Event
    from amplifier_sdk.handlers import on
    from amplifier_sdk.hookspecs import HookSpec, ModuleKind, hookspec
    from amplifier_sdk.journal import Journal
    from amplifier_sdk.jsontypes import JSONValue
    from amplifier_sdk.limits import LimitChanges, Limits
    from amplifier_sdk.loops import Loop, LoopConfig, Turn
    from amplifier_sdk.messages import Message, MessageDict
    from amplifier_sdk.progress import ToolContext, ToolOutput, ToolProgress
    from amplifier_sdk.providers import BaseProvider
    from amplifier_sdk.redaction import Redactor
    from amplifier_sdk.results import ContextInjection, Emission, HookResult, ToolResult
    from amplifier_sdk.run_context import RunContext
    from amplifier_sdk.secret import Secret
    from amplifier_sdk.stores import SessionStore
    from amplifier_sdk.streaming import (
        Delta,
        SteeringInjected,
        StreamEvent,
        TextDelta,
        ThinkingDelta,
        ToolCallDelta,
        ToolFinished,
        ToolStarted,
        TurnFinished,
        UsageReported,
    )
    from amplifier_sdk.tools import FunctionTool, tool

__all__ = [
    "AmplifierError",
    "ApprovalPendingError",
    "ApprovalProvider",
    "ApprovalRequest",
    "ApprovalResponse",
    "ApprovalSystem",
    "ApprovalTimeoutError",
    "ApprovalUnavailableError",
    "Arguments",
    "AudioBlock",
    "BaseContext",
    "BaseProvider",
    "BudgetExceededError",
    "ChatRequest",
    "ChatResponse",
    "ChildResult",
    "CompactionResult",
    "ConfigError",
    "ConfigField",
    "ContentBlock",
    "ContextInjection",
    "ContextManager",
    "Coordinator",
    "Degradation",
    "Delta",
    "DisplaySystem",
    "DocumentBlock",
    "Emission",
    "Event",
    "ExecutionEngine",
    "FunctionTool",
    "HookHandler",
    "HookResult",
    "HookSpec",
    "Hooks",
    "ImageBlock",
    "JSONValue",
    "Journal",
    "LLMError",
    "LimitChanges",
    "Limits",
    "Loop",
    "LoopConfig",
    "MediaError",
    "Message",
    "MessageDict",
    "ModelInfo",
    "ModuleKind",
    "ModuleLoadError",
    "ModuleNotFoundError",
    "ModuleSource",
    "ModuleSourceResolver",
    "Orchestrator",
    "Pricing",
    "Provider",
    "ProviderInfo",
    "ReasoningBlock",
    "RedactedThinkingBlock",
    "Redactor",
    "RunContext",
    "Secret",
    "SessionBusyError",
    "SessionClosedError",
    "SessionSpawn",
    "SessionStore",
    "SpawnOptions",
    "SteeringInjected",
    "StreamEvent",
    "StreamingProvider",
    "TextBlock",
    "TextDelta",
    "ThinkingBlock",
    "ThinkingDelta",
    "Tool",
    "ToolCall",
    "ToolCallBlock",
    "ToolCallDelta",
    "ToolContext",
    "ToolError",
    "ToolFinished",
    "ToolOutput",
    "ToolProgress",
    "ToolResult",
    "ToolResultBlock",
    "ToolSpec",
    "ToolStarted",
    "Turn",
    "TurnCancelled",
    "TurnFinished",
    "TurnHost",
    "Usage",
    "UsageReported",
    "VendorBlock",
    "VideoBlock",
    "context",
    "hook",
    "hookspec",
    "module",
    "on",
    "orchestrator",
    "provider",
    "read_arguments",
    "tool",
    "toolset",
]

_HOME = {
    "approvals": ("ApprovalProvider", "ApprovalRequest", "ApprovalResponse"),
    "arguments": ("Arguments", "read_arguments"),
    "chat": (
        "ChatRequest",
        "ChatResponse",
        "ConfigField",
        "Degradation",
        "ModelInfo",
        "Pricing",
        "ProviderInfo",
        "ToolCall",
        "ToolSpec",
        "Usage",
    ),
    "compaction": ("CompactionResult",),
    "content": (
        "AudioBlock",
        "ContentBlock",
        "DocumentBlock",
        "ImageBlock",
        "ReasoningBlock",
        "RedactedThinkingBlock",
        "TextBlock",
        "ThinkingBlock",
        "ToolCallBlock",
        "ToolResultBlock",
        "VendorBlock",
        "VideoBlock",
    ),
    "contexts": ("BaseContext",),
    "contracts": (
        "ApprovalSystem",
        "ContextManager",
        "Coordinator",
        "DisplaySystem",
        "HookHandler",
        "Hooks",
        "ModuleSource",
        "ModuleSourceResolver",
        "Orchestrator",
        "Provider",
        "StreamingProvider",
        "Tool",
        "TurnHost",
    ),
    "decorators": ("context", "hook", "module", "orchestrator", "provider", "toolset"),
    "delegation": ("ChildResult", "SessionSpawn", "SpawnOptions"),
    "engines": ("ExecutionEngine",),
    "errors": (
        "AmplifierError",
        "ApprovalPendingError",
        "ApprovalTimeoutError",
        "ApprovalUnavailableError",
        "BudgetExceededError",
        "ConfigError",
        "LLMError",
        "MediaError",
        "ModuleLoadError",
        "ModuleNotFoundError",
        "SessionBusyError",
        "SessionClosedError",
        "ToolError",
        "TurnCancelled",
    ),
    "events": ("Event",),
    "handlers": ("on",),
    "hookspecs": ("HookSpec", "ModuleKind", "hookspec"),
    "journal": ("Journal",),
    "jsontypes": ("JSONValue",),
    "limits": ("LimitChanges", "Limits"),
    "loops": ("Loop", "LoopConfig", "Turn"),
    "messages": ("Message", "MessageDict"),
    "progress": ("ToolContext", "ToolOutput", "ToolProgress"),
    "providers": ("BaseProvider",),
    "redaction": ("Redactor",),
    "results": ("ContextInjection", "Emission", "HookResult", "ToolResult"),
    "run_context": ("RunContext",),
    "secret": ("Secret",),
    "stores": ("SessionStore",),
    "streaming": (
        "Delta",
        "SteeringInjected",
        "StreamEvent",
        "TextDelta",
        "ThinkingDelta",
        "ToolCallDelta",
        "ToolFinished",
        "ToolStarted",
        "TurnFinished",
        "UsageReported",
    ),
    "tools": ("FunctionTool", "tool"),
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
