"""What module authors write with: the contracts, the values that cross them, decorators and base classes.

Names load when they are first used, so that importing one does not import them all. Event names are in
`amplifier_sdk.events`, every error in `amplifier_sdk.errors`, what several plugins share is the
package `amplifier_kit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_sdk.approvals import ApprovalProvider as ApprovalProvider
    from amplifier_sdk.approvals import ApprovalRequest as ApprovalRequest
    from amplifier_sdk.approvals import ApprovalResponse as ApprovalResponse
    from amplifier_sdk.arguments import Arguments as Arguments
    from amplifier_sdk.arguments import read_arguments as read_arguments
    from amplifier_sdk.chat import ChatRequest as ChatRequest
    from amplifier_sdk.chat import ChatResponse as ChatResponse
    from amplifier_sdk.chat import ConfigField as ConfigField
    from amplifier_sdk.chat import Degradation as Degradation
    from amplifier_sdk.chat import ModelInfo as ModelInfo
    from amplifier_sdk.chat import Pricing as Pricing
    from amplifier_sdk.chat import ProviderInfo as ProviderInfo
    from amplifier_sdk.chat import ToolCall as ToolCall
    from amplifier_sdk.chat import ToolSpec as ToolSpec
    from amplifier_sdk.chat import Usage as Usage
    from amplifier_sdk.compaction import CompactionResult as CompactionResult
    from amplifier_sdk.content import AudioBlock as AudioBlock
    from amplifier_sdk.content import ContentBlock as ContentBlock
    from amplifier_sdk.content import DocumentBlock as DocumentBlock
    from amplifier_sdk.content import ImageBlock as ImageBlock
    from amplifier_sdk.content import ReasoningBlock as ReasoningBlock
    from amplifier_sdk.content import RedactedThinkingBlock as RedactedThinkingBlock
    from amplifier_sdk.content import TextBlock as TextBlock
    from amplifier_sdk.content import ThinkingBlock as ThinkingBlock
    from amplifier_sdk.content import ToolCallBlock as ToolCallBlock
    from amplifier_sdk.content import ToolResultBlock as ToolResultBlock
    from amplifier_sdk.content import VendorBlock as VendorBlock
    from amplifier_sdk.content import VideoBlock as VideoBlock
    from amplifier_sdk.contexts import BaseContext as BaseContext
    from amplifier_sdk.contracts import ApprovalSystem as ApprovalSystem
    from amplifier_sdk.contracts import ContextManager as ContextManager
    from amplifier_sdk.contracts import Coordinator as Coordinator
    from amplifier_sdk.contracts import DisplaySystem as DisplaySystem
    from amplifier_sdk.contracts import HookHandler as HookHandler
    from amplifier_sdk.contracts import Hooks as Hooks
    from amplifier_sdk.contracts import ModuleSource as ModuleSource
    from amplifier_sdk.contracts import ModuleSourceResolver as ModuleSourceResolver
    from amplifier_sdk.contracts import Orchestrator as Orchestrator
    from amplifier_sdk.contracts import Provider as Provider
    from amplifier_sdk.contracts import StreamingProvider as StreamingProvider
    from amplifier_sdk.contracts import Tool as Tool
    from amplifier_sdk.contracts import TurnHost as TurnHost
    from amplifier_sdk.decorators import context as context
    from amplifier_sdk.decorators import hook as hook
    from amplifier_sdk.decorators import module as module
    from amplifier_sdk.decorators import orchestrator as orchestrator
    from amplifier_sdk.decorators import provider as provider
    from amplifier_sdk.decorators import toolset as toolset
    from amplifier_sdk.delegation import ChildResult as ChildResult
    from amplifier_sdk.delegation import SessionSpawn as SessionSpawn
    from amplifier_sdk.delegation import SpawnOptions as SpawnOptions
    from amplifier_sdk.engines import ExecutionEngine as ExecutionEngine
    from amplifier_sdk.errors import AmplifierError as AmplifierError
    from amplifier_sdk.errors import ApprovalPendingError as ApprovalPendingError
    from amplifier_sdk.errors import ApprovalTimeoutError as ApprovalTimeoutError
    from amplifier_sdk.errors import (
        ApprovalUnavailableError as ApprovalUnavailableError,
    )
    from amplifier_sdk.errors import BudgetExceededError as BudgetExceededError
    from amplifier_sdk.errors import ConfigError as ConfigError
    from amplifier_sdk.errors import LLMError as LLMError
    from amplifier_sdk.errors import MediaError as MediaError
    from amplifier_sdk.errors import ModuleLoadError as ModuleLoadError
    from amplifier_sdk.errors import ModuleNotFoundError as ModuleNotFoundError
    from amplifier_sdk.errors import SessionBusyError as SessionBusyError
    from amplifier_sdk.errors import SessionClosedError as SessionClosedError
    from amplifier_sdk.errors import ToolError as ToolError
    from amplifier_sdk.errors import TurnCancelled as TurnCancelled
    from amplifier_sdk.events import Event as Event
    from amplifier_sdk.handlers import on as on
    from amplifier_sdk.hookspecs import HookSpec as HookSpec
    from amplifier_sdk.hookspecs import ModuleKind as ModuleKind
    from amplifier_sdk.hookspecs import hookspec as hookspec
    from amplifier_sdk.journal import Journal as Journal
    from amplifier_sdk.jsontypes import JSONValue as JSONValue
    from amplifier_sdk.limits import LimitChanges as LimitChanges
    from amplifier_sdk.limits import Limits as Limits
    from amplifier_sdk.loops import Loop as Loop
    from amplifier_sdk.loops import LoopConfig as LoopConfig
    from amplifier_sdk.loops import Turn as Turn
    from amplifier_sdk.messages import Message as Message
    from amplifier_sdk.messages import MessageDict as MessageDict
    from amplifier_sdk.progress import ToolContext as ToolContext
    from amplifier_sdk.progress import ToolOutput as ToolOutput
    from amplifier_sdk.progress import ToolProgress as ToolProgress
    from amplifier_sdk.providers import BaseProvider as BaseProvider
    from amplifier_sdk.redaction import Redactor as Redactor
    from amplifier_sdk.results import ContextInjection as ContextInjection
    from amplifier_sdk.results import Emission as Emission
    from amplifier_sdk.results import HookResult as HookResult
    from amplifier_sdk.results import ToolResult as ToolResult
    from amplifier_sdk.run_context import RunContext as RunContext
    from amplifier_sdk.secret import Secret as Secret
    from amplifier_sdk.stores import SessionStore as SessionStore
    from amplifier_sdk.streaming import Delta as Delta
    from amplifier_sdk.streaming import SteeringInjected as SteeringInjected
    from amplifier_sdk.streaming import StreamEvent as StreamEvent
    from amplifier_sdk.streaming import TextDelta as TextDelta
    from amplifier_sdk.streaming import ThinkingDelta as ThinkingDelta
    from amplifier_sdk.streaming import ToolCallDelta as ToolCallDelta
    from amplifier_sdk.streaming import ToolFinished as ToolFinished
    from amplifier_sdk.streaming import ToolStarted as ToolStarted
    from amplifier_sdk.streaming import TurnFinished as TurnFinished
    from amplifier_sdk.streaming import UsageReported as UsageReported
    from amplifier_sdk.tools import FunctionTool as FunctionTool
    from amplifier_sdk.tools import tool as tool

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
    "AmplifierError": "errors",
    "ApprovalProvider": "approvals",
    "ApprovalRequest": "approvals",
    "ApprovalResponse": "approvals",
    "ApprovalSystem": "contracts",
    "ApprovalPendingError": "errors",
    "ApprovalTimeoutError": "errors",
    "ApprovalUnavailableError": "errors",
    "Arguments": "arguments",
    "BaseContext": "contexts",
    "BaseProvider": "providers",
    "BudgetExceededError": "errors",
    "ChatRequest": "chat",
    "ChatResponse": "chat",
    "ChildResult": "delegation",
    "CompactionResult": "compaction",
    "ConfigError": "errors",
    "ConfigField": "chat",
    "ContentBlock": "content",
    "ContextInjection": "results",
    "ContextManager": "contracts",
    "Coordinator": "contracts",
    "Degradation": "chat",
    "Delta": "streaming",
    "DisplaySystem": "contracts",
    "Emission": "results",
    "Event": "events",
    "ExecutionEngine": "engines",
    "FunctionTool": "tools",
    "HookHandler": "contracts",
    "HookResult": "results",
    "HookSpec": "hookspecs",
    "Hooks": "contracts",
    "ImageBlock": "content",
    "MediaError": "errors",
    "VideoBlock": "content",
    "DocumentBlock": "content",
    "AudioBlock": "content",
    "JSONValue": "jsontypes",
    "Journal": "journal",
    "LLMError": "errors",
    "LimitChanges": "limits",
    "Limits": "limits",
    "Loop": "loops",
    "LoopConfig": "loops",
    "Message": "messages",
    "MessageDict": "messages",
    "ModelInfo": "chat",
    "ModuleKind": "hookspecs",
    "ModuleLoadError": "errors",
    "ModuleNotFoundError": "errors",
    "ModuleSource": "contracts",
    "ModuleSourceResolver": "contracts",
    "Orchestrator": "contracts",
    "Pricing": "chat",
    "Provider": "contracts",
    "ProviderInfo": "chat",
    "ReasoningBlock": "content",
    "RedactedThinkingBlock": "content",
    "Redactor": "redaction",
    "RunContext": "run_context",
    "Secret": "secret",
    "SessionBusyError": "errors",
    "SessionClosedError": "errors",
    "SessionSpawn": "delegation",
    "SessionStore": "stores",
    "SpawnOptions": "delegation",
    "SteeringInjected": "streaming",
    "StreamEvent": "streaming",
    "StreamingProvider": "contracts",
    "TextBlock": "content",
    "TextDelta": "streaming",
    "ThinkingBlock": "content",
    "ThinkingDelta": "streaming",
    "Tool": "contracts",
    "ToolCall": "chat",
    "ToolCallBlock": "content",
    "ToolCallDelta": "streaming",
    "ToolContext": "progress",
    "ToolError": "errors",
    "ToolFinished": "streaming",
    "ToolOutput": "progress",
    "ToolProgress": "progress",
    "ToolResult": "results",
    "ToolResultBlock": "content",
    "ToolSpec": "chat",
    "ToolStarted": "streaming",
    "Turn": "loops",
    "TurnCancelled": "errors",
    "TurnFinished": "streaming",
    "TurnHost": "contracts",
    "Usage": "chat",
    "UsageReported": "streaming",
    "VendorBlock": "content",
    "context": "decorators",
    "hook": "decorators",
    "hookspec": "hookspecs",
    "module": "decorators",
    "on": "handlers",
    "orchestrator": "decorators",
    "provider": "decorators",
    "read_arguments": "arguments",
    "tool": "tools",
    "toolset": "decorators",
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
