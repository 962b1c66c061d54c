"""The canonical events: names that are strings, each with the type of what it carries.

`TOOL_PRE` is the string `"tool:pre"`; to a type checker it is an `Event[ToolPre]`, so that
`hooks.register(TOOL_PRE, handler)` accepts only a handler of that payload. A bare string works as well,
untyped. Emit with the payload's constructor, `hooks.emit(TOOL_PRE, ToolPre(tool_name=…, tool_input=…))`:
a misspelt key in a literal dict would fall through to the untyped overload.

Every payload may carry the keys of `EventFields`; the kernel fills them in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, NotRequired, TypedDict, TypeVar

# payloads are plain dicts at run time: their parts need not be imported
if TYPE_CHECKING:
    from amplifier_sdk.chat import ChatResponse, Degradation, Usage
    from amplifier_sdk.jsontypes import JSONValue
    from amplifier_sdk.results import ToolResult
    from amplifier_sdk.streaming import Delta
    from amplifier_sdk.toolinfo import ToolInfo

__all__ = [
    "ALL_EVENTS",
    "APPROVAL_DENIED",
    "APPROVAL_GRANTED",
    "APPROVAL_REQUIRED",
    "ARTIFACT_READ",
    "ARTIFACT_WRITE",
    "CANCEL_COMPLETED",
    "CANCEL_REQUESTED",
    "CONTENT_BLOCK_DELTA",
    "CONTENT_BLOCK_END",
    "CONTENT_BLOCK_START",
    "CONTEXT_COMPACTION",
    "CONTEXT_INCLUDE",
    "CONTEXT_POST_COMPACT",
    "CONTEXT_PRE_COMPACT",
    "DEPRECATED_EVENTS",
    "EXECUTION_END",
    "EXECUTION_START",
    "LLM_REQUEST",
    "LLM_RESPONSE",
    "MODULE_LOAD_FAILED",
    "MODULE_ON_SESSION_READY_FAILED",
    "ORCHESTRATOR_COMPLETE",
    "PLAN_END",
    "PLAN_START",
    "POLICY_VIOLATION",
    "PROMPT_COMPLETE",
    "PROMPT_SUBMIT",
    "PROVIDER_ERROR",
    "PROVIDER_REQUEST",
    "PROVIDER_RESOLVE",
    "PROVIDER_RESPONSE",
    "PROVIDER_RETRY",
    "PROVIDER_THROTTLE",
    "PROVIDER_TOOL_SEQUENCE_REPAIRED",
    "SESSION_END",
    "SESSION_FORK",
    "SESSION_RESUME",
    "SESSION_START",
    "THINKING_DELTA",
    "THINKING_FINAL",
    "TOOL_ERROR",
    "TOOL_POST",
    "TOOL_PRE",
    "USER_NOTIFICATION",
    "ApprovalDenied",
    "ApprovalGranted",
    "ApprovalRequired",
    "ArtifactRead",
    "ArtifactWrite",
    "CancelCompleted",
    "CancelRequested",
    "ContentBlockDelta",
    "ContentBlockEnd",
    "ContentBlockStart",
    "ContextCompaction",
    "ContextInclude",
    "ContextPostCompact",
    "ContextPreCompact",
    "Event",
    "EventFields",
    "ExecutionEnd",
    "ExecutionStart",
    "LlmRequest",
    "LlmResponse",
    "ModuleLoadFailed",
    "ModuleOnSessionReadyFailed",
    "OrchestratorComplete",
    "PlanEnd",
    "PlanStart",
    "PolicyViolation",
    "PromptComplete",
    "PromptSubmit",
    "ProviderErrorPayload",
    "ProviderRequest",
    "ProviderResolve",
    "ProviderResponse",
    "ProviderRetry",
    "ProviderThrottle",
    "ProviderToolSequenceRepaired",
    "SessionEnd",
    "SessionFork",
    "SessionResume",
    "SessionStart",
    "ThinkingDeltaText",
    "ThinkingFinal",
    "ToolErrorPayload",
    "ToolPost",
    "ToolPre",
    "UserNotification",
]

P_co = TypeVar("P_co", bound=Mapping[str, object], covariant=True)


class Event(str, Generic[P_co]):
    """An event's name, which knows its payload's type."""

    __slots__ = ()


class EventFields(TypedDict, total=False):
    """What every event carries; the kernel fills in what is absent. `timestamp` is ISO 8601 in UTC."""

    session_id: str
    parent_id: str | None
    turn_id: str
    span_id: str
    parent_span_id: str | None
    iteration: int
    timestamp: str


class SessionStart(EventFields):
    """A session runs its first turn."""

    metadata: NotRequired[Mapping[str, JSONValue]]
    config: NotRequired[Mapping[str, object]]


class SessionResume(EventFields):
    """A stored session runs its first turn again."""

    metadata: NotRequired[Mapping[str, JSONValue]]
    config: NotRequired[Mapping[str, object]]


class SessionEnd(EventFields):
    """A session is cleaned up; sent before its modules are."""

    status: str
    stats: Mapping[str, JSONValue]


class SessionFork(EventFields):
    """A child session is ready; `parent` is its parent's id."""

    parent: str
    metadata: NotRequired[Mapping[str, JSONValue]]
    config: NotRequired[Mapping[str, object]]


class PromptSubmit(EventFields):
    """A turn begins; a handler may deny or change the prompt.

    `media` describes what is shown with the prompt, without its data; a handler may change the `text` of documents.
    """

    prompt: str
    media: NotRequired[Sequence[Mapping[str, JSONValue]]]
    metadata: NotRequired[Mapping[str, JSONValue]]


class PromptComplete(EventFields):
    """A turn has its answer."""

    prompt: str
    response: str
    response_preview: str
    length: int


class PlanStart(EventFields):
    """A planning phase begins."""

    prompt: NotRequired[str]


class PlanEnd(EventFields):
    """A planning phase ended."""

    plan: NotRequired[object]


class ProviderRequest(EventFields):
    """A request goes to a model; injections of handlers enter it. `messages` is the stored view, not to be changed."""

    provider: str
    model: str | None
    messages: NotRequired[Sequence[Mapping[str, JSONValue]]]
    max_reached: NotRequired[bool]


class ProviderResponse(EventFields):
    """A model answered."""

    provider: str
    model: str | None
    response: ChatResponse
    usage: Usage | None
    tool_calls: bool
    duration: float
    degradation: NotRequired[Degradation]


class ProviderErrorPayload(EventFields):
    """A provider call failed."""

    provider: str
    model: str | None
    error: Mapping[str, JSONValue]
    retryable: bool
    status_code: int | None


class ProviderRetry(EventFields):
    """A provider retries after `delay` seconds."""

    provider: str
    model: str | None
    attempt: int
    max_retries: int
    delay: float
    retry_after: float | None
    error_type: str
    error_message: str
    status_code: NotRequired[int | None]


class ProviderThrottle(EventFields):
    """A provider slows down before the vendor's limit."""

    provider: str
    model: str | None
    reason: str
    dimension: str
    remaining: int
    limit: int
    delay: float
    ratio: NotRequired[float]
    reset_timestamp: NotRequired[str]


class ProviderToolSequenceRepaired(EventFields):
    """A history was mended before it was sent: by a provider, or by the session, which stores what it mends."""

    provider: str | None
    repair_count: int
    repairs: Sequence[Mapping[str, JSONValue]]
    stored: NotRequired[bool]


class ProviderResolve(EventFields):
    """A provider is being chosen for a request; a handler may change `provider` and `model`, or deny."""

    role: NotRequired[str]
    candidates: NotRequired[Sequence[str]]
    provider: NotRequired[str]
    model: NotRequired[str | None]
    reason: NotRequired[str]


class LlmRequest(EventFields):
    """A provider sends a request to its vendor."""

    provider: str
    model: str
    message_count: int
    request_id: NotRequired[str]
    thinking_enabled: NotRequired[bool]
    thinking_budget: NotRequired[int]
    has_system: NotRequired[bool]
    tool_count: NotRequired[int]
    raw: NotRequired[object]


class LlmResponse(EventFields):
    """A provider heard back from its vendor."""

    provider: str
    model: str
    status: str
    duration_ms: float
    usage: NotRequired[Mapping[str, JSONValue]]
    error: NotRequired[str]
    request_id: NotRequired[str]
    vendor_request_id: NotRequired[str]
    raw: NotRequired[object]


class ContentBlockStart(EventFields):
    """A content block begins."""

    block_type: str
    block_index: int
    total_blocks: NotRequired[int]
    metadata: NotRequired[Mapping[str, JSONValue]]


class ContentBlockDelta(EventFields):
    """A content block grows."""

    block_index: int
    delta: Delta


class ContentBlockEnd(EventFields):
    """A content block is complete."""

    block_index: int
    block: Mapping[str, JSONValue]
    total_blocks: NotRequired[int]
    usage: NotRequired[Usage | None]


class ThinkingDeltaText(EventFields):
    """The model's visible thinking grows."""

    text: str


class ThinkingFinal(EventFields):
    """The model's visible thinking is complete."""

    text: str


class ToolPre(EventFields):
    """A tool call is about to run; a handler may deny or change it."""

    tool_name: str
    tool_input: Mapping[str, JSONValue]
    tool_call_id: NotRequired[str]
    parallel_group_id: NotRequired[str | None]
    tool_obj: NotRequired[ToolInfo | None]


class ToolPost(EventFields):
    """A tool call returned; `result` and `tool_result` are one object."""

    tool_name: str
    tool_input: Mapping[str, JSONValue]
    result: ToolResult
    tool_result: ToolResult
    tool_call_id: NotRequired[str]
    parallel_group_id: NotRequired[str | None]
    duration: NotRequired[float]


class ToolErrorPayload(EventFields):
    """A tool call failed or was refused."""

    tool_name: str
    tool_input: Mapping[str, JSONValue]
    error: Mapping[str, JSONValue]
    tool_call_id: NotRequired[str]
    parallel_group_id: NotRequired[str | None]


class ContextPreCompact(EventFields):
    """A context is about to shorten its view."""

    message_count: int
    token_count: int
    before_messages: int
    before_tokens: int
    strategy: str


class ContextPostCompact(EventFields):
    """A context shortened its view; the history is unchanged."""

    message_count: int
    token_count: int
    after_messages: int
    after_tokens: int
    removed_messages: int
    removed_tokens: int
    strategy: str
    usage: NotRequired[Usage]


class ContextCompaction(EventFields):
    """A view was shortened, with every figure of it."""

    before_tokens: int
    after_tokens: int
    before_messages: int
    after_messages: int
    messages_removed: int
    budget: int
    target_tokens: NotRequired[int]
    messages_truncated: NotRequired[int]
    user_messages_stubbed: NotRequired[int]
    strategy_level: NotRequired[int]
    protected_recent: NotRequired[float]
    protected_tool_results: NotRequired[int]
    system_messages_preserved: NotRequired[int]
    left_out: NotRequired[Sequence[tuple[int, int]]]


class ContextInclude(EventFields):
    """A file or text entered the context."""

    path: NotRequired[str]
    source: NotRequired[str]


class OrchestratorComplete(EventFields):
    """A loop ended its turn."""

    orchestrator: str
    turn_count: int
    status: str


class ExecutionStart(EventFields):
    """An orchestrator starts to work."""

    prompt: str


class ExecutionEnd(EventFields):
    """An orchestrator stopped working, whatever the reason."""

    response: str
    status: str


class UserNotification(EventFields):
    """Something the person should know."""

    message: str
    level: NotRequired[str]
    source: NotRequired[str]
    notification_type: NotRequired[str]
    metadata: NotRequired[Mapping[str, JSONValue]]


class ArtifactWrite(EventFields):
    """A tool wrote a file; `bytes` is its new size."""

    path: str
    bytes: int


class ArtifactRead(EventFields):
    """A tool read a file; `bytes` is how much."""

    path: str
    bytes: int


class PolicyViolation(EventFields):
    """A policy stopped something."""

    policy: NotRequired[str]
    reason: NotRequired[str]


class ApprovalRequired(EventFields):
    """A person is asked; `prompt` is all that is shown, `action` the handler's own words."""

    prompt: str
    tool_name: NotRequired[str]
    action: NotRequired[str]
    risk_level: NotRequired[str]
    options: NotRequired[Sequence[str]]


class ApprovalGranted(EventFields):
    """A person allowed it, now or for the session."""

    prompt: str
    tool_name: NotRequired[str]
    reason: NotRequired[str]


class ApprovalDenied(EventFields):
    """A person refused it, or nobody answered."""

    prompt: str
    tool_name: NotRequired[str]
    reason: NotRequired[str]


class CancelRequested(EventFields):
    """Somebody asked the turn to stop."""

    state: str


class CancelCompleted(EventFields):
    """The cancelled turn has stopped and its history is closed."""

    was_immediate: bool


class ModuleLoadFailed(EventFields):
    """A module of the plan could not be used."""

    module_id: str
    module_type: str
    error: str
    reason_code: str
    instance_id: NotRequired[str]


class ModuleOnSessionReadyFailed(EventFields):
    """A module's `on_session_ready` failed."""

    module_id: str
    error: str


SESSION_START: Final = Event[SessionStart]("session:start")
SESSION_RESUME: Final = Event[SessionResume]("session:resume")
SESSION_END: Final = Event[SessionEnd]("session:end")
SESSION_FORK: Final = Event[SessionFork]("session:fork")
PROMPT_SUBMIT: Final = Event[PromptSubmit]("prompt:submit")
PROMPT_COMPLETE: Final = Event[PromptComplete]("prompt:complete")
PLAN_START: Final = Event[PlanStart]("plan:start")
PLAN_END: Final = Event[PlanEnd]("plan:end")
PROVIDER_REQUEST: Final = Event[ProviderRequest]("provider:request")
PROVIDER_RESPONSE: Final = Event[ProviderResponse]("provider:response")
PROVIDER_ERROR: Final = Event[ProviderErrorPayload]("provider:error")
PROVIDER_RETRY: Final = Event[ProviderRetry]("provider:retry")
PROVIDER_THROTTLE: Final = Event[ProviderThrottle]("provider:throttle")
PROVIDER_TOOL_SEQUENCE_REPAIRED: Final = Event[ProviderToolSequenceRepaired](
    "provider:tool_sequence_repaired"
)
PROVIDER_RESOLVE: Final = Event[ProviderResolve]("provider:resolve")
LLM_REQUEST: Final = Event[LlmRequest]("llm:request")
LLM_RESPONSE: Final = Event[LlmResponse]("llm:response")
CONTENT_BLOCK_START: Final = Event[ContentBlockStart]("content_block:start")
CONTENT_BLOCK_DELTA: Final = Event[ContentBlockDelta]("content_block:delta")
CONTENT_BLOCK_END: Final = Event[ContentBlockEnd]("content_block:end")
THINKING_DELTA: Final = Event[ThinkingDeltaText]("thinking:delta")
THINKING_FINAL: Final = Event[ThinkingFinal]("thinking:final")
TOOL_PRE: Final = Event[ToolPre]("tool:pre")
TOOL_POST: Final = Event[ToolPost]("tool:post")
TOOL_ERROR: Final = Event[ToolErrorPayload]("tool:error")
CONTEXT_PRE_COMPACT: Final = Event[ContextPreCompact]("context:pre_compact")
CONTEXT_POST_COMPACT: Final = Event[ContextPostCompact]("context:post_compact")
CONTEXT_COMPACTION: Final = Event[ContextCompaction]("context:compaction")
CONTEXT_INCLUDE: Final = Event[ContextInclude]("context:include")
ORCHESTRATOR_COMPLETE: Final = Event[OrchestratorComplete]("orchestrator:complete")
EXECUTION_START: Final = Event[ExecutionStart]("execution:start")
EXECUTION_END: Final = Event[ExecutionEnd]("execution:end")
USER_NOTIFICATION: Final = Event[UserNotification]("user:notification")
ARTIFACT_WRITE: Final = Event[ArtifactWrite]("artifact:write")
ARTIFACT_READ: Final = Event[ArtifactRead]("artifact:read")
POLICY_VIOLATION: Final = Event[PolicyViolation]("policy:violation")
APPROVAL_REQUIRED: Final = Event[ApprovalRequired]("approval:required")
APPROVAL_GRANTED: Final = Event[ApprovalGranted]("approval:granted")
APPROVAL_DENIED: Final = Event[ApprovalDenied]("approval:denied")
CANCEL_REQUESTED: Final = Event[CancelRequested]("cancel:requested")
CANCEL_COMPLETED: Final = Event[CancelCompleted]("cancel:completed")
MODULE_LOAD_FAILED: Final = Event[ModuleLoadFailed]("module:load_failed")
MODULE_ON_SESSION_READY_FAILED: Final = Event[ModuleOnSessionReadyFailed](
    "module:on_session_ready_failed"
)

ALL_EVENTS: Final[tuple[str, ...]] = tuple(
    event for event in globals().values() if isinstance(event, Event)
)
"""Every canonical event: the constants above, in the order of a session's life."""

DEPRECATED_EVENTS: Final[tuple[str, ...]] = (
    "llm:request:debug",
    "llm:request:raw",
    "llm:response:debug",
    "llm:response:raw",
)
"""Names that older providers still send; `llm:request` and `llm:response` carry the same under `raw`."""
