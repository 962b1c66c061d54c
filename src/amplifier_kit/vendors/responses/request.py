"""One request as the API's JSON, and what of it cannot be given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from amplifier_kit.vendors.request import Outgoing, cache_key_of
from amplifier_kit.vendors.responses._fields import text
from amplifier_kit.vendors.responses.answers import CONTINUATIONS, RESPONSE_ID, STATUS
from amplifier_kit.vendors.responses.config import ResponsesConfig
from amplifier_kit.vendors.responses.items import (
    instructions_of,
    items_of,
    without_instructions,
)
from amplifier_kit.vendors.responses.models import ModelFacts
from amplifier_kit.vendors.responses.names import wire_name
from amplifier_sdk.chat import (
    ChatRequest,
    Degradation,
    ResponseFormat,
    ToolChoice,
    ToolSpec,
)
from amplifier_sdk.errors import InvalidRequestError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message

__all__ = [
    "FULL_HISTORY",
    "WITHOUT_REASONING",
    "ResponseChain",
    "chain",
    "write_request",
]

FULL_HISTORY: Final = "openai:full_history"
"""The mark in a request's extras that it goes on from no stored answer."""

WITHOUT_REASONING: Final = "openai:without_reasoning"
"""The mark in a request's extras that reasoning of earlier answers stays out."""


@attrs.frozen
class ResponseChain:
    """A stored answer and the messages that are new since."""

    response_id: str
    messages: Sequence[Message]


def chain(request: ChatRequest, config: ResponsesConfig) -> ResponseChain | None:
    """Return the stored answer that a request goes on from, or `None` when it carries its whole history.

    An answer that was cut, continued or given by another vendor is none; nor is one with nothing new behind it.
    """
    if not config.enable_response_chaining or request.extras.get(FULL_HISTORY):
        return None
    messages = request.messages
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.role != "assistant":
            continue
        facts = message.metadata or {}
        identity = text(facts, RESPONSE_ID)
        is_whole = facts.get(STATUS) == "completed" and CONTINUATIONS not in facts
        is_last = place == len(messages) - 1
        if identity is None or not is_whole or is_last:
            return None
        return ResponseChain(identity, messages[place + 1 :])
    return None


def write_request(
    request: ChatRequest, model: str, facts: ModelFacts, config: ResponsesConfig
) -> Outgoing:
    """Write a request.

    Args:
        request: what is asked, its blanks filled in from the configuration.
        model: the name under which the vendor knows the model.
        facts: what is known of the model.
        config: the provider's options.

    Raises:
        InvalidRequestError: a part of the request is none that can be written; the text says which.
    """
    missing: list[tuple[str, str]] = []
    going_on = chain(request, config)
    body: JSONObject = {"model": model, "stream": True, "store": config.is_stored}
    body |= _conversation(request, going_on, config)
    body |= _tools(request.tools or (), request.tool_choice, config)
    form = _present(format=_format(request.response_format), verbosity=config.verbosity)
    body |= _present(text=form or None)
    effort = request.reasoning_effort or config.reasoning_effort
    if effort and facts.is_known and not facts.is_reasoning:
        missing.append(("reasoning_effort", "this model does not reason"))
        effort = None
    # an unknown model reasons where the person asks for it
    is_reasoning = facts.is_reasoning or effort is not None
    body |= _reasoning(effort, config) if is_reasoning else {}
    body |= _sampling(
        request, missing, is_fixed=facts.is_reasoning and effort != "none"
    )
    body |= _present(
        max_output_tokens=request.max_output_tokens,
        truncation=config.truncation,
        service_tier=config.service_tier,
        prompt_cache_key=config.prompt_cache_key
        or cache_key_of(request.conversation_id),
        prompt_cache_retention=config.prompt_cache_retention,
    )
    if request.stop:
        missing.append(("stop", "the Responses API has no stop sequences"))
    return Outgoing(path="responses", body=body, degradation=_degradation(missing))


def _conversation(
    request: ChatRequest, going_on: ResponseChain | None, config: ResponsesConfig
) -> JSONObject:
    instructions = _present(instructions=instructions_of(request.messages))
    # the stored answer has the history, but not the instructions
    # only what is new is sent: the vendor has the rest under the answer's id
    if going_on is not None:
        new = items_of(going_on.messages, is_stored=True)
        return {
            **instructions,
            "previous_response_id": going_on.response_id,
            "input": list(new),
        }
    with_reasoning = not request.extras.get(WITHOUT_REASONING)
    messages = without_instructions(request.messages)
    return {
        **instructions,
        "input": list(
            items_of(
                messages, is_stored=config.is_stored, with_reasoning=with_reasoning
            )
        ),
    }


def _tools(
    tools: Sequence[ToolSpec], choice: ToolChoice | None, config: ResponsesConfig
) -> JSONObject:
    offered = [*map(_tool, tools), *config.server_tools]
    if not offered:
        return {}
    return {
        "tools": offered,
        **_present(
            tool_choice=_choice(choice), parallel_tool_calls=config.parallel_tool_calls
        ),
    }


def _tool(tool: ToolSpec) -> JSONObject:
    """Write a tool; its schema is taken as it is, without the API's `strict` unless its extras ask for that."""
    return {
        "type": "function",
        "name": wire_name(tool.name),
        **_present(description=tool.description),
        # the API takes no schema without them
        "parameters": {"type": "object", "properties": {}, **tool.parameters},
        "strict": tool.extras.get("strict") is True,
    }


def _choice(choice: ToolChoice | None) -> JSONValue:
    match choice:
        case None | "auto" | "none" | "required":
            return choice
        case {"name": str(name)}:
            return {"type": "function", "name": wire_name(name)}
        case _:
            raise InvalidRequestError(
                f"tool_choice is 'auto', 'none', 'required' or {{'type': 'tool', 'name': …}}; got {choice!r}"
            )


def _format(wanted: ResponseFormat | None) -> JSONValue:
    match wanted:
        case None | {"type": "text"}:
            return None
        case {"type": "json"}:
            return {"type": "json_object"}
        case {"type": "json_schema", "schema": Mapping() as schema}:
            name = wanted.get("name") or "answer"
            extras = _present(
                description=wanted.get("description"), strict=wanted.get("strict")
            )
            return {"type": "json_schema", "name": name, "schema": schema, **extras}
        case _:
            raise InvalidRequestError(
                f"response_format is of type 'text', 'json', or 'json_schema' with its 'schema'; got {dict(wanted)!r}"
            )


def _reasoning(effort: str | None, config: ResponsesConfig) -> JSONObject:
    settings = _present(
        effort=effort, summary=None if effort == "none" else config.reasoning_summary
    )
    # Encrypted reasoning goes back with the next request, stored or not.
    return {
        **({"reasoning": settings} if settings else {}),
        "include": ["reasoning.encrypted_content"],
    }


def _sampling(
    request: ChatRequest, missing: list[tuple[str, str]], *, is_fixed: bool
) -> JSONObject:
    wanted = _present(temperature=request.temperature, top_p=request.top_p)
    if not is_fixed:
        return wanted
    missing += [(name, "a model that reasons takes none") for name in wanted]
    return {}


def _degradation(missing: Sequence[tuple[str, str]]) -> Degradation | None:
    if not missing:
        return None
    names = ", ".join(name for name, _ in missing)
    reasons = dict.fromkeys(reason for _, reason in missing)
    return Degradation(
        requested=names, actual=f"an answer without {names}", reason="; ".join(reasons)
    )


def _present(**values: JSONValue) -> JSONObject:
    """Leave out what is `None`."""
    return {name: value for name, value in values.items() if value is not None}
