"""The names of the conventions for generative AI, and those of our own that stand beside them.

Source: https://github.com/open-telemetry/semantic-conventions-genai, spans and metrics. No package has these names:
those in `opentelemetry-semantic-conventions` are deprecated there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = [
    "AGENT_NAME",
    "CONVERSATION_ID",
    "COST",
    "ERROR_TYPE",
    "FINISH_REASONS",
    "HTTP_STATUS",
    "INPUT_MESSAGES",
    "ITERATION",
    "OPERATION",
    "OUTPUT_MESSAGES",
    "PARALLEL_GROUP",
    "PARENT_SESSION",
    "PROVIDER",
    "PROVIDERS",
    "REQUEST_MODEL",
    "REQUEST_STREAM",
    "RESPONSE_ID",
    "RESPONSE_MODEL",
    "SPAN_ID",
    "STATUS",
    "TIME_TO_FIRST_CHUNK",
    "TOKEN_TYPE",
    "TOOL_ARGUMENTS",
    "TOOL_CALL_ID",
    "TOOL_NAME",
    "TOOL_RESULT",
    "TOOL_TYPE",
    "TURN_ID",
    "USAGE",
]

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105  # a kind of token, no secret
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
ERROR_TYPE: Final = "error.type"
HTTP_STATUS: Final = "http.response.status_code"

USAGE: Final[Mapping[str, str]] = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_creation.input_tokens",
}
"""The attributes of what a request used, by the fields of `amplifier_sdk.Usage`."""

TURN_ID: Final = "amplifier.turn_id"
SPAN_ID: Final = "amplifier.span_id"
ITERATION: Final = "amplifier.iteration"
STATUS: Final = "amplifier.status"
COST: Final = "amplifier.cost_usd"
PARENT_SESSION: Final = "amplifier.parent_session_id"
PARALLEL_GROUP: Final = "amplifier.parallel_group_id"

PROVIDERS: Final[Mapping[str, str]] = {"azure-openai": "azure.ai.openai"}
"""What the conventions call providers, where that is another name than the mounted one."""
