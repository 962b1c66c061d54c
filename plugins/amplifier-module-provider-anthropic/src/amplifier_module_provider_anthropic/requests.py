"""One request as the API takes it, with marks where the API keeps what it read: at the ends of what the next one has.

A mark behind the tools, one behind the system's text, one behind each of the last two messages of the user: what is
before the older one was read with the last request, what is before the newer one will be read with the next. Marks
are no part of what is compared, so that moving them does not change the beginning. Tools that the API loads later are
no part of the beginning, and it refuses a mark on one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from amplifier_kit.vendors import Outgoing
from amplifier_module_provider_anthropic.config import AnthropicConfig
from amplifier_module_provider_anthropic.formats import (
    JSON_INSTRUCTION,
    output_format,
    wants_json,
)
from amplifier_module_provider_anthropic.losses import Losses
from amplifier_module_provider_anthropic.messages import (
    has_thoughts,
    write_conversation,
)
from amplifier_module_provider_anthropic.models import Effort, Model, model_of
from amplifier_module_provider_anthropic.sampling import sampling
from amplifier_module_provider_anthropic.thinking import decide_thinking
from amplifier_module_provider_anthropic.tools import tool_choice, write_tools
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.errors import InvalidRequestError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["MAX_MARKS", "VERSION", "mark", "write_request"]

MAX_MARKS: Final = 4
"""How many marks the API takes."""
_MARKED: Final = frozenset({"text", "image", "tool_use", "tool_result", "document"})

VERSION: Final = "2026-10-21"
"""The version of the API that requests are written in."""

_VERSION_WITH_SAMPLING: Final = "2023-06-01"
"""The version of the API that still takes sampling parameters, for the models that have them."""

_SAMPLING: Final = frozenset({"temperature", "top_p", "top_k"})
_LONG_CONTEXT: Final = "context-1m-2025-08-07"
_THINKING_BINDING: Final = "thinking-binding-controls-2026-08-01"


def write_request(
    request: ChatRequest,
    model: str,
    config: AnthropicConfig,
    *,
    path: str = "v1/messages",
) -> Outgoing:
    """Write a request; the same request is always written the same.

    Raises:
        InvalidRequestError: no message says anything.
    """
    losses = Losses()
    body = _body(request, model, config, losses)
    # Newer versions of the API refuse sampling parameters, also of models that have
    # them.
    has_sampling = not _SAMPLING.isdisjoint((*body, *config.extra_request_params))
    headers = {}
    if has_sampling:
        headers = {"anthropic-version": _VERSION_WITH_SAMPLING}
    if betas := _betas(model, config, body.get("thinking")):
        headers["anthropic-beta"] = ",".join(betas)
    return Outgoing(
        path=path, body=body, headers=headers, degradation=losses.degradation()
    )


def _body(
    request: ChatRequest, model: str, config: AnthropicConfig, losses: Losses
) -> JSONObject:
    known = model_of(model, config.models)
    choice = tool_choice(request, config, known, losses)
    is_forced = choice is not None and choice["type"] in ("any", "tool")
    thought = decide_thinking(
        request, config, known, is_forced=is_forced, losses=losses
    )
    # Only with earlier thoughts: the beta header would otherwise be sent with every
    # request.
    if known.binds_thinking and has_thoughts(request.messages):
        thought = thought.binding(config.changed_history)
    # A model that binds its thoughts may refuse them where thinking is turned off.
    prompt = _prompt(
        request,
        config,
        known,
        with_thoughts=not (known.binds_thinking and thought.is_off),
    )
    body: JSONObject = {"model": model, "max_tokens": thought.max_tokens, **prompt}
    if choice is not None:
        body["tool_choice"] = choice
    if thought.thinking is not None:
        body["thinking"] = thought.thinking
    if output := _output_config(thought.effort, output_format(request, losses)):
        body["output_config"] = output
    body |= sampling(request, config, known, is_thinking=thought.is_on, losses=losses)
    if stop := _stop_sequences(request.stop, losses):
        body["stop_sequences"] = stop
    user = (request.metadata or {}).get("user_id")
    if isinstance(user, str):
        body["metadata"] = {"user_id": user}
    return body | {"stream": True}


def _output_config(effort: Effort | None, form: JSONObject | None) -> JSONObject:
    said: JSONObject = {"effort": effort, "format": form}
    return {key: value for key, value in said.items() if value is not None}


def _prompt(
    request: ChatRequest, config: AnthropicConfig, model: Model, *, with_thoughts: bool
) -> JSONObject:
    """Write what the model reads, in the order in which it reads it: tools, system, messages."""
    written = write_conversation(
        request.messages,
        with_thoughts=with_thoughts,
        with_late_system=model.takes_late_system,
    )
    texts, messages = written.system, written.messages
    if wants_json(request):
        texts.append(JSON_INSTRUCTION)
    system: list[JSONObject] = [{"type": "text", "text": text} for text in texts]
    if not messages:
        raise InvalidRequestError(
            "The request has no message with content; give at least one message of a user"
        )
    tools = write_tools(request.tools or (), config, messages)
    if config.enable_prompt_caching:
        taken = sum(
            "cache_control" in given
            for given in (config.extra_request_params, *config.server_tools)
        )
        mark(tools, system, messages, ttl=config.cache_ttl, max_marks=MAX_MARKS - taken)
    prompt: JSONObject = {}
    if tools:
        prompt["tools"] = tools
    # These are tools that were called before and are offered no more.
    if len(tools) > len(config.server_tools) and not request.tools:
        prompt["tool_choice"] = {"type": "none"}
    if system:
        if config.enable_prompt_caching:
            prompt["system"] = system
        else:
            # One text, which every compatible server takes; only marks need blocks.
            prompt["system"] = "\n\n".join(texts)
    return prompt | {"messages": messages}


def _betas(model: str, config: AnthropicConfig, thinking: JSONValue) -> list[str]:
    needed = []
    if config.enable_1m_context and model_of(model, config.models).has_long_context:
        needed.append(_LONG_CONTEXT)
    if isinstance(thinking, Mapping) and "block_binding" in thinking:
        needed.append(_THINKING_BINDING)
    return [
        *config.beta_headers,
        *(beta for beta in needed if beta not in config.beta_headers),
    ]


def _stop_sequences(stop: Sequence[str] | None, losses: Losses) -> list[str]:
    """Return the stops that the API takes: those with more than white space."""
    taken = [text for text in stop or () if text.strip()]
    if len(taken) < len(stop or ()):
        losses.add("a stop of white space", "no such stop", "the API takes none")
    return taken


def mark(
    tools: Sequence[JSONObject],
    system: Sequence[JSONObject],
    messages: Sequence[JSONObject],
    *,
    ttl: Literal["5m", "1h"],
    max_marks: int = MAX_MARKS,
) -> None:
    """Mark blocks of a request that was just written, in place, at most `max_marks` of them."""
    sign: JSONObject = {"type": "ephemeral"}
    if ttl != "5m":
        sign["ttl"] = ttl
    loaded = [tool for tool in tools if tool.get("defer_loading") is not True]
    # Tools and system first: they are what all requests of a session share.
    ends = [blocks[-1] for blocks in (loaded, system) if blocks]
    ends += _ends(messages, max_marks - len(ends))
    for block in ends[:max_marks]:
        block["cache_control"] = sign


def _ends(messages: Sequence[JSONObject], count: int) -> Iterator[JSONObject]:
    """Yield the last blocks of the user's last messages that can be marked, two messages at most."""
    # Two, as the module's head explains: one to be read from, one to be written.
    left = min(count, 2)
    for message in reversed(messages):
        if left <= 0:
            return
        if (
            message["role"] == "user"
            and (block := _last_marked(message["content"])) is not None
        ):
            left -= 1
            yield block


def _last_marked(content: JSONValue) -> JSONObject | None:
    blocks = content if isinstance(content, list) else []
    return next(
        (block for block in reversed(blocks) if block.get("type") in _MARKED), None
    )
