"""The tools that a request offers, how the model is to choose among them, and names and ids as the API takes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final

from amplifier_kit.open_data import as_list
from amplifier_module_provider_anthropic.config import AnthropicConfig
from amplifier_module_provider_anthropic.losses import Losses
from amplifier_module_provider_anthropic.models import Model
from amplifier_sdk.chat import ChatRequest, ToolChoice, ToolSpec
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["call_id", "tool_choice", "tool_name", "tool_names", "write_tools"]

_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME: Final = 128
_LONGEST_ID: Final = 256

_CHOICES: Final = frozenset({"auto", "any", "none"})


def write_tools(
    specs: Sequence[ToolSpec], config: AnthropicConfig, messages: Sequence[JSONObject]
) -> list[JSONObject]:
    """Write the tools: the API's own, then the session's, in their order.

    What a tool's `extras` say goes along, but marks for the cache. Where a request offers no tool any more and its
    messages have calls, the tools that were called are written without their schemas: the API wants to know them.
    """
    own: list[JSONObject] = [dict(tool) for tool in config.server_tools]
    return own + ([_tool(spec) for spec in specs] if specs else _called(messages))


def _called(messages: Sequence[JSONObject]) -> list[JSONObject]:
    names = dict.fromkeys(
        name
        for message in messages
        for block in as_list(message["content"])
        if isinstance(name := _called_name(block), str)
    )
    return [{"name": name, "input_schema": {"type": "object"}} for name in names]


def _called_name(block: JSONValue) -> JSONValue:
    if isinstance(block, Mapping) and block.get("type") == "tool_use":
        return block.get("name")
    return None


def _tool(spec: ToolSpec) -> JSONObject:
    tool: JSONObject = {"name": tool_name(spec.name)}
    if spec.description:
        tool["description"] = spec.description
    if "type" in spec.parameters:
        tool["input_schema"] = spec.parameters
    else:
        # The API wants the type; a tool without parameters may leave it out.
        tool["input_schema"] = {"type": "object", **spec.parameters}
    extras = {
        key: value for key, value in spec.extras.items() if key != "cache_control"
    }
    return {**extras, **tool}


def tool_choice(
    request: ChatRequest, config: AnthropicConfig, model: Model, losses: Losses
) -> JSONObject | None:
    """Return the request's choice among its tools; `None` leaves it to the model."""
    if not request.tools:
        return None
    choice = _choice(request.tool_choice)
    if (
        choice is not None
        and choice["type"] in ("any", "tool")
        and not model.takes_forced_tools
    ):
        losses.add(
            "a forced tool call",
            "the model's own choice",
            "this model cannot be forced",
        )
        choice = {**_without(choice, "name"), "type": "auto"}
    if config.disable_parallel_tool_use and (
        choice is None or choice["type"] != "none"
    ):
        # The option is a part of the choice, so there must be one.
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    return choice


def _choice(choice: ToolChoice | None) -> JSONObject | None:
    if choice is None:
        return None
    if isinstance(choice, str):
        return {
            "type": "any"
            if choice == "required"
            else choice
            if choice in _CHOICES
            else "auto"
        }
    function = choice.get("function")
    named = choice
    if isinstance(function, Mapping):
        named = function
    name = named.get("name")
    if isinstance(name, str):
        return {**_without(choice, "function"), "type": "tool", "name": tool_name(name)}
    if choice.get("type") in _CHOICES:
        return dict(choice)
    return {"type": "auto"}


def _without(values: Mapping[str, JSONValue], name: str) -> JSONObject:
    return {key: value for key, value in values.items() if key != name}


def tool_name(name: str) -> str:
    """Return the name under which a tool is offered; one that the API takes is returned as it is."""
    return _taken(name, _LONGEST_NAME)


def call_id(id: str) -> str:
    """Return the id under which a call of the history is sent; the API's own ids are returned as they are."""
    return _taken(id, _LONGEST_ID)


def tool_names(names: Iterable[str]) -> dict[str, str]:
    """Return the tools' own names by the names under which they are offered, where the two differ."""
    return {offered: name for name in names if (offered := tool_name(name)) != name}


def _taken(text: str, longest: int) -> str:
    if text and len(text) <= longest and not _FOREIGN.search(text):
        return text
    # What was replaced or cut off still distinguishes two texts, and the same text is always written the same.
    mark = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_FOREIGN.sub('_', text)[: longest - 9]}-{mark}"
