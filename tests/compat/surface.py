"""What modules and applications of the original name: modules, members, fields and keywords, as they were counted."""

from __future__ import annotations

from typing import Final

__all__ = ["FIELDS", "INSTANCES", "KEYWORDS", "NAMES", "SPECIFIED"]

NAMES: Final[dict[str, str]] = {
    "amplifier_core": """
        AbortError AccessDeniedError AmplifierSession ApprovalProvider ApprovalRequest
        ApprovalResponse AuthenticationError CancellationState CancellationToken
        ChatRequest ChatResponse ConfigField ConfigurationError ContentBlock
        ContentBlockType ContentFilterError ContextInjection ContextLengthError
        ContextManager Degradation EventRecorder HookHandler HookRegistry HookResult
        ImageBlock InvalidRequestError InvalidToolCallError LLMError LLMTimeoutError
        Message MockContextManager MockCoordinator MockTool ModelInfo ModuleCoordinator
        ModuleInfo ModuleLoader ModuleValidationError NetworkError NotFoundError
        Orchestrator Pricing Provider ProviderInfo ProviderUnavailableError
        QuotaExceededError RateLimitError ReasoningBlock RedactedThinkingBlock
        ResponseFormat ResponseFormatJson ResponseFormatJsonSchema ResponseFormatText
        RetryConfig ScriptedOrchestrator SessionStatus StreamError TestCoordinator
        TextBlock TextContent ThinkingBlock ThinkingContent Tool ToolCall ToolCallBlock
        ToolCallContent ToolResult ToolResultBlock ToolResultContent ToolSpec Usage
        __file__ classify_error_message create_test_coordinator llm_errors
        retry_with_backoff wait_for
    """,
    "amplifier_core.approval": """
        ApprovalSystem ApprovalTimeoutError
    """,
    "amplifier_core.cancellation": """
        CancellationState CancellationToken
    """,
    "amplifier_core.capabilities": """
        ALL_WELL_KNOWN_CAPABILITIES AUDIO BATCH CODE_EXECUTION COMPUTER_USE
        DEEP_RESEARCH EMBEDDINGS FAST IMAGE_GENERATION JSON_MODE LOCAL LONG_CONTEXT
        STREAMING THINKING TOOLS VISION WEB_SEARCH
    """,
    "amplifier_core.content_models": """
        ContentBlock ContentBlockType TextContent ThinkingContent ToolCallContent
        ToolResultContent
    """,
    "amplifier_core.coordinator": """
        ModuleCoordinator
    """,
    "amplifier_core.display": """
        DisplaySystem
    """,
    "amplifier_core.events": """
        ALL_EVENTS APPROVAL_DENIED APPROVAL_GRANTED APPROVAL_REQUIRED ARTIFACT_READ
        ARTIFACT_WRITE CANCEL_COMPLETED CANCEL_REQUESTED CONTENT_BLOCK_DELTA
        CONTENT_BLOCK_END CONTENT_BLOCK_START CONTEXT_COMPACTION CONTEXT_INCLUDE
        CONTEXT_POST_COMPACT CONTEXT_PRE_COMPACT EXECUTION_END EXECUTION_START
        LLM_REQUEST LLM_RESPONSE MODULE_LOAD_FAILED MODULE_ON_SESSION_READY_FAILED
        ORCHESTRATOR_COMPLETE PLAN_END PLAN_START POLICY_VIOLATION PROMPT_COMPLETE
        PROMPT_SUBMIT PROVIDER_ERROR PROVIDER_REQUEST PROVIDER_RESOLVE PROVIDER_RESPONSE
        PROVIDER_RETRY PROVIDER_THROTTLE PROVIDER_TOOL_SEQUENCE_REPAIRED SESSION_END
        SESSION_FORK SESSION_RESUME SESSION_START THINKING_DELTA THINKING_FINAL
        TOOL_ERROR TOOL_POST TOOL_PRE USER_NOTIFICATION
    """,
    "amplifier_core.hooks": """
        ContextInjection HookRegistry HookResult
    """,
    "amplifier_core.interfaces": """
        ApprovalProvider ApprovalRequest ApprovalResponse ChatRequest ChatResponse
        ContextManager HookHandler HookResult ModelInfo Orchestrator Provider
        ProviderInfo Tool ToolCall ToolResult
    """,
    "amplifier_core.llm_errors": """
        AbortError AccessDeniedError AuthenticationError ConfigurationError
        ContentFilterError ContextLengthError InvalidRequestError InvalidToolCallError
        LLMError LLMTimeoutError NetworkError NotFoundError ProviderUnavailableError
        QuotaExceededError RateLimitError StreamError
    """,
    "amplifier_core.loader": """
        ModuleInfo ModuleLoader ModuleValidationError
    """,
    "amplifier_core.message_models": """
        ChatRequest ChatResponse ContentBlockUnion Degradation ImageBlock Message
        ReasoningBlock RedactedThinkingBlock ResponseFormatJson ResponseFormatJsonSchema
        ResponseFormatText TextBlock ThinkingBlock ToolCall ToolCallBlock
        ToolResultBlock ToolSpec Usage
    """,
    "amplifier_core.models": """
        ConfigField ContextInjection HookResult ModelInfo ModuleInfo Pricing
        ProviderInfo SessionStatus ToolResult
    """,
    "amplifier_core.module_sources": """
        FileSystemModuleSource ModuleLoadError ModuleNotFoundError ModuleSource
        ModuleSourceResolver
    """,
    "amplifier_core.session": """
        AmplifierSession ModuleLoader
    """,
    "amplifier_core.testing": """
        EventRecorder HookResult MockContextManager MockCoordinator MockTool
        ScriptedOrchestrator ToolResult create_test_coordinator wait_for
    """,
    "amplifier_core.utils": """
        RetryConfig SENSITIVE_KEYS classify_error_message redact_secrets
        retry_with_backoff truncate_values
    """,
    "amplifier_core.utils.retry": """
        LLMError RetryConfig classify_error_message retry_with_backoff
    """,
    "amplifier_core.utils.truncate": """
        redact_secrets
    """,
    "amplifier_core.validation": """
        ContextValidator HookValidator MountPlanValidationResult MountPlanValidator
        OrchestratorValidator ProviderValidator ToolValidator ValidationCheck
        ValidationResult
    """,
    "amplifier_core.validation.behavioral": """
        ContextBehaviorTests HookBehaviorTests OrchestratorBehaviorTests
        ProviderBehaviorTests ToolBehaviorTests
    """,
    "amplifier_core.validation.structural": """
        ContextStructuralTests HookStructuralTests OrchestratorStructuralTests
        ProviderStructuralTests ToolStructuralTests
    """,
}
"""The names of each module path."""

INSTANCES: Final[dict[str, str]] = {
    "coordinator": """
        hooks mount get_capability register_capability get register_contributor config
        session_id cancellation session_state session mount_points process_hook_result
        collect_contributions display_system parent_id unmount approval_system loader
        register_cleanup channels injection_budget_per_turn injection_size_limit
        reset_turn to_dict cleanup request_cancel
    """,
    "hooks": """
        emit register list_handlers on unregister set_default_fields emit_and_collect
        SESSION_START SESSION_END PROMPT_SUBMIT TOOL_PRE TOOL_POST CONTEXT_PRE_COMPACT
        ORCHESTRATOR_COMPLETE USER_NOTIFICATION
    """,
    "session": """
        execute coordinator config cleanup initialize session_id loader parent_id
        is_resumed initialized status __aenter__ __aexit__
    """,
    "token": """
        is_immediate is_cancelled is_graceful state trigger_callbacks on_cancel
        register_tool_complete register_tool_start request_graceful request_immediate
        request_cancellation reset running_tool_names running_tools register_child
        unregister_child
    """,
    "loader": "discover load initialize cleanup",
}
"""What is asked of instances."""

SPECIFIED: Final[dict[str, str]] = {
    "ModuleCoordinator": """
        hooks mount get_capability register_capability get register_contributor config
        session_id cancellation session_state session mount_points process_hook_result
        collect_contributions display_system parent_id unmount approval_system loader
        register_cleanup
    """,
    "AmplifierSession": """
        execute coordinator config cleanup initialize session_id parent_id is_resumed
        initialized
    """,
    "CancellationToken": "state is_cancelled is_immediate is_graceful running_tools",
    "HookRegistry": "emit register list_handlers on unregister",
}
"""What doubles that are specified by a class must have of it."""

FIELDS: Final[dict[str, str]] = {
    "ToolResult": "success output error content",
    "HookResult": """
        action data reason context_injection context_injection_role ephemeral
        approval_prompt approval_options approval_timeout approval_default
        suppress_output user_message user_message_level user_message_source
        append_to_last_tool_result context_injections
    """,
    "ContextInjection": """
        content role ephemeral append_to_last_tool_result hook_name event
    """,
    "ChatRequest": """
        messages tools response_format temperature top_p max_output_tokens
        conversation_id stream metadata model tool_choice stop reasoning_effort timeout
    """,
    "ChatResponse": "content tool_calls usage degradation finish_reason metadata",
    "Message": "role content name tool_call_id metadata",
    "Usage": """
        input_tokens output_tokens total_tokens reasoning_tokens cache_read_tokens
        cache_write_tokens cost_usd
    """,
    "Degradation": "requested actual reason",
    "ToolCall": "id name arguments",
    "ToolSpec": "name parameters description",
    "TextBlock": "type text visibility",
    "ThinkingBlock": "type thinking signature content visibility",
    "RedactedThinkingBlock": "type data visibility",
    "ToolCallBlock": "type id name input visibility",
    "ToolResultBlock": "type tool_call_id output visibility",
    "ImageBlock": "type source visibility",
    "ReasoningBlock": "type content summary visibility",
    "ProviderInfo": """
        id display_name credential_env_vars capabilities defaults config_fields
    """,
    "ModelInfo": """
        id display_name context_window max_output_tokens capabilities defaults pricing
    """,
    "Pricing": """
        input_per_million output_per_million cache_read_per_million
        cache_write_per_million currency
    """,
    "ConfigField": """
        id display_name field_type prompt env_var choices required default show_when
        requires_model
    """,
    "ModuleInfo": "id name version type mount_point description config_schema",
    "ApprovalRequest": "tool_name action details risk_level timeout",
    "ApprovalResponse": "approved reason remember",
    "SessionStatus": """
        session_id started_at ended_at status total_messages tool_invocations
        tool_successes tool_failures total_input_tokens total_output_tokens cost_usd
        last_activity last_error
    """,
}
"""The fields of each model, no more and no less."""

KEYWORDS: Final[dict[str, dict[str, object]]] = {
    "ToolResult": {"success": False, "error": {"message": "m"}, "metadata": {}},
    "HookResult": {"action": "continue", "metadata": {}, "data": {"a": 1}},
    "ChatRequest": {"messages": [], "reasoning_effort": "low", "metadata": {}},
    "ChatResponse": {"content": [], "id": "r", "stop_reason": "x", "model": "m"},
    "Message": {"role": "tool", "content": "c", "tool_name": "t", "name": "n"},
    "Usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    "ThinkingBlock": {"thinking": "t", "signature": "s", "content": []},
    "ToolCallBlock": {"id": "i", "name": "n", "input": {}, "type": "tool_call"},
    "TextContent": {"text": "t", "raw": {}},
    "ToolCallContent": {"id": "i", "name": "n", "arguments": {}, "raw": {}},
    "RetryConfig": {"max_retries": 1, "initial_delay": 0.1, "jitter": False},
    "RateLimitError": {"provider": "p", "retry_after": 3.0, "status_code": 429},
}
"""Keywords that constructors are called with, unknown ones among them."""
