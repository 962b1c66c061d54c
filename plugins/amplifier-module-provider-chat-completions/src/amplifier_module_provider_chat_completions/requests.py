"""Requests in the words of the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from amplifier_kit.vendors import Outgoing, cache_key_of
from amplifier_module_provider_chat_completions.config import ChatCompletionsConfig
from amplifier_module_provider_chat_completions.conversation import write_messages
from amplifier_sdk.chat import ChatRequest, Degradation, ToolSpec
from amplifier_sdk.errors import InvalidRequestError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["write_request"]

_FORMAT_NAME: Final = "answer"


def write_request(
    request: ChatRequest,
    model: str,
    config: ChatCompletionsConfig,
    *,
    limit_field: str,
    takes_cache_key: bool = False,
) -> Outgoing:
    """Write a request.

    Args:
        request: what is asked.
        model: whom.
        config: what the server wants.
        limit_field: how the longest answer is called.
        takes_cache_key: whether the server knows `prompt_cache_key`; others may refuse a request that has it.

    Raises:
        InvalidRequestError: it holds what the protocol cannot say.
    """
    messages, left_out = write_messages(
        request.messages, sends_reasoning=config.send_reasoning
    )
    body: JSONObject = {"model": model, "messages": messages, "stream": True}
    if config.stream_usage:
        body["stream_options"] = {"include_usage": True}
    _add_tools(body, request, config)
    optional: JSONObject = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        limit_field: request.max_output_tokens,
        "stop": list(request.stop) if request.stop else None,
        "reasoning_effort": request.reasoning_effort,
        "response_format": None
        if request.response_format is None
        else _format(request.response_format),
    }
    if takes_cache_key:
        optional["prompt_cache_key"] = cache_key_of(request.conversation_id)
    body.update((name, value) for name, value in optional.items() if value is not None)
    return Outgoing(
        path="chat/completions", body=body, degradation=_degradation(left_out)
    )


def _add_tools(
    body: JSONObject, request: ChatRequest, config: ChatCompletionsConfig
) -> None:
    if not request.tools:
        return
    body["tools"] = [_tool(spec) for spec in request.tools]
    if request.tool_choice is not None:
        name = request.forced_tool
        if name is None:
            body["tool_choice"] = request.tool_choice
        else:
            body["tool_choice"] = {"type": "function", "function": {"name": name}}
    if config.parallel_tool_calls is not None:
        body["parallel_tool_calls"] = config.parallel_tool_calls


def _tool(spec: ToolSpec) -> JSONObject:
    function: JSONObject = {"name": spec.name, "parameters": spec.parameters}
    if spec.description is not None:
        function["description"] = spec.description
    # The extras first: they must not rename the tool.
    return {"type": "function", "function": {**spec.extras, **function}}


def _format(wanted: Mapping[str, JSONValue]) -> JSONValue:
    """Write the format that an answer shall have; `None` for plain text."""
    match wanted.get("type"):
        case "text" | None:
            return None
        case "json" | "json_object":
            return {"type": "json_object"}
        case "json_schema":
            schema = wanted.get("schema")
            if not isinstance(schema, Mapping):
                raise InvalidRequestError(
                    "`response_format` of type 'json_schema' needs a `schema`, an object"
                )
            named: JSONObject = {
                "name": wanted.get("name") or _FORMAT_NAME,
                "schema": schema,
            }
            named.update(
                (key, wanted[key])
                for key in ("strict", "description")
                if wanted.get(key) is not None
            )
            return {"type": "json_schema", "json_schema": named}
        case other:
            raise InvalidRequestError(
                f"`response_format` is of type 'text', 'json' or 'json_schema'; got {other!r}"
            )


def _degradation(left_out: Sequence[str]) -> Degradation | None:
    if not left_out:
        return None
    kinds = ", ".join(dict.fromkeys(left_out))
    return Degradation(
        requested=kinds,
        actual="left out",
        reason="The chat protocol has no words for it.",
    )
