"""A request in Ollama's words: the body of `POST /api/chat`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from amplifier_kit.vendors import Outgoing
from amplifier_module_provider_ollama.config import OllamaConfig
from amplifier_module_provider_ollama.messages import MessageWriter
from amplifier_module_provider_ollama.models import UNKNOWN, Abilities
from amplifier_sdk.chat import (
    ChatRequest,
    Degradation,
    ResponseFormat,
    ToolChoice,
    ToolSpec,
)
from amplifier_sdk.errors import InvalidRequestError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["write_request"]


def write_request(
    request: ChatRequest,
    model: str,
    config: OllamaConfig,
    abilities: Abilities = UNKNOWN,
) -> Outgoing:
    """Write a request.

    Args:
        request: what is asked.
        model: whom.
        config: the defaults for what the request leaves open.
        abilities: what the model can do; only a `reasoning_effort` needs it.

    Raises:
        InvalidRequestError: the request asks for a format or a tool that there is not.
    """
    # what the API cannot do is reported, so that no caller takes it for done
    losses: list[Degradation] = []
    body: JSONObject = {
        "model": model,
        "messages": MessageWriter().write(request.messages),
        "stream": True,
    }
    tools = _offered(request.tools or (), request.tool_choice, losses)
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
    if (wanted := _format(request.response_format)) is not None:
        body["format"] = wanted
    think = config.think
    if request.reasoning_effort is not None:
        think = _effort(request.reasoning_effort, abilities, losses)
    if think is not None:
        body["think"] = think
    if config.keep_alive is not None:
        body["keep_alive"] = config.keep_alive
    body["truncate"] = config.truncate
    body["options"] = _options(request, config)
    return Outgoing(path="api/chat", body=body, degradation=Degradation.of_all(losses))


def _options(request: ChatRequest, config: OllamaConfig) -> JSONObject:
    settings: JSONObject = {
        "num_ctx": config.num_ctx or None,
        "num_predict": config.longest_answer
        if request.max_output_tokens is None
        else request.max_output_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "stop": list(request.stop) if request.stop else None,
    }
    return {
        # first, so that what a request asks for takes precedence
        **config.options,
        **{name: value for name, value in settings.items() if value is not None},
    }


def _offered(
    tools: Sequence[ToolSpec], choice: ToolChoice | None, losses: list[Degradation]
) -> Sequence[ToolSpec]:
    """Return the tools that the model may use; nothing in the API makes it use one."""
    match choice:
        case None | "auto":
            return tools
        case "none":
            return ()
        case "required":
            losses.append(
                Degradation(
                    requested="tool_choice: required",
                    actual="auto",
                    reason="Ollama cannot force a tool call",
                )
            )
            return tools
        case {"name": str(name)}:
            forced = [tool for tool in tools if tool.name == name]
            if not forced:
                known = ", ".join(tool.name for tool in tools) or "none"
                raise InvalidRequestError(
                    f"tool_choice names {name!r}, which is not among the tools: {known}"
                )
            losses.append(
                Degradation(
                    requested=f"tool_choice: {name}",
                    actual="auto, with this tool alone",
                    reason="Ollama cannot force a tool call",
                )
            )
            return forced
        case _:
            raise InvalidRequestError(
                f"tool_choice is 'auto', 'none', 'required' or {{'type': 'tool', 'name': NAME}}; got {choice!r}"
            )


def _tool(tool: ToolSpec) -> JSONObject:
    function: JSONObject = {"name": tool.name, "parameters": tool.parameters}
    if tool.description is not None:
        function["description"] = tool.description
    return {"type": "function", "function": function}


def _format(wanted: ResponseFormat | None) -> JSONValue:
    match wanted:
        case None | {"type": "text"}:
            return None
        case {"type": "json"}:
            return "json"
        case {"type": "json_schema", "schema": Mapping() as schema}:
            return schema
        case _:
            raise InvalidRequestError(
                f"response_format is of type 'text', 'json', or 'json_schema' with its 'schema'; got {dict(wanted)!r}"
            )


def _effort(
    effort: str, abilities: Abilities, losses: list[Degradation]
) -> bool | str | None:
    """Return the request's `think`; `None` leaves it out."""
    think = abilities.think_for(effort)
    # who wants no thinking loses nothing where there is none
    if think is None and effort != "none":
        losses.append(
            Degradation(
                requested=f"reasoning_effort: {effort}",
                actual="no thinking",
                reason="the model does not think apart",
            )
        )
    # a switch is not the level that was asked for
    elif think is True:
        losses.append(
            Degradation(
                requested=f"reasoning_effort: {effort}",
                actual="thinking",
                reason="the model's thinking has no such level",
            )
        )
    return think
