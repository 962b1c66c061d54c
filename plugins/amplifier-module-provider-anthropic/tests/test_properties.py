"""Whatever a history holds, the request keeps the API's rules and begins as the one before it began."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from amplifier_module_provider_anthropic import AnthropicConfig
from amplifier_module_provider_anthropic.requests import write_request
from amplifier_sdk.chat import ChatRequest, ToolSpec
from amplifier_sdk.content import (
    ContentBlock,
    ReasoningBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VendorBlock,
)
from amplifier_sdk.errors import InvalidRequestError
from amplifier_sdk.history import sendable
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message

MODELS: Final = ("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-4-5", "smollm2")
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")

texts = st.sampled_from(["", " ", "\n", "Hello.", "Grüße 🙂", "\ud800", "\x00"])
ids = st.sampled_from(["a", "b", "call:1", "", "x" * 300])
names = st.sampled_from(["add", "files.read", "", "größe"])
blocks: st.SearchStrategy[ContentBlock] = st.one_of(
    st.builds(lambda text: TextBlock(text=text), texts),
    st.builds(lambda text: ThinkingBlock(thinking=text, signature=text or None), texts),
    st.builds(lambda text: RedactedThinkingBlock(data=text), texts),
    st.just(ReasoningBlock(summary=["s"])),
    st.just(
        VendorBlock(
            type="server_tool_use",
            extras={"id": "s", "cache_control": {"type": "ephemeral"}},
        )
    ),
    st.builds(lambda id, name: ToolCallBlock(id=id, name=name), ids, names),
)
messages = st.lists(
    st.one_of(
        st.builds(
            lambda role, text: Message(role=role, content=text),
            st.sampled_from(["system", "user"]),
            texts,
        ),
        st.builds(lambda text: Message(role="developer", content=text), texts),
        st.builds(
            lambda found: Message(role="assistant", content=found),
            st.lists(blocks, max_size=4),
        ),
        st.builds(
            lambda id, text: Message(role="tool", tool_call_id=id, content=text),
            ids,
            texts,
        ),
    ),
    max_size=8,
)


def _list(value: JSONValue) -> list[JSONObject]:
    assert isinstance(value, list)
    return value


def _marks(value: JSONValue) -> int:
    return json.dumps(value).count('"cache_control"')


def _broken_rules(body: JSONObject) -> Iterator[str]:
    """Yield the rules of the API that a body breaks; written from its documentation, not from the module."""
    said = _list(body["messages"])
    if said[0]["role"] != "user":
        yield "the first message is not the user's"
    if _marks(body) > 4:
        yield "more than four marks"
    open_calls: list[JSONValue] = []
    for message in said:
        content = _list(message["content"])
        if not content:
            yield "a message without content"
        for block in content:
            yield from _broken_in_block(block)
        if (
            message["role"] == "assistant"
            and content
            and content[-1]["type"] in ("thinking", "redacted_thinking")
        ):
            yield "an answer that ends with a thought"
        yield from _broken_between(message, content, open_calls)
        open_calls = [block["id"] for block in content if block["type"] == "tool_use"]
    if open_calls:
        yield "calls that are not answered"
    roles = "".join(str(message["role"])[0] for message in said)
    if re.search("^s|as|ss|su", roles):
        yield "a system message that is not between a user's and an answer"


def _broken_in_block(block: JSONObject) -> Iterator[str]:
    if block["type"] == "text" and not str(block["text"]).strip():
        yield "an empty text"
    if block["type"] in ("thinking", "redacted_thinking") and "cache_control" in block:
        yield "a thought marked"
    if block["type"] == "tool_use" and not NAME.fullmatch(f"{block['name']}"):
        yield "a name that no tool can have"


def _broken_between(
    message: JSONObject, content: list[JSONObject], open_calls: list[JSONValue]
) -> Iterator[str]:
    answered = [
        block["tool_use_id"] for block in content if block["type"] == "tool_result"
    ]
    if sorted(map(str, answered)) != sorted(map(str, open_calls)):
        yield "results that are not those of the calls right before"
    if answered and message["role"] == "assistant":
        yield "results in an answer"
    if [block["type"] for block in content[: len(answered)]] != ["tool_result"] * len(
        answered
    ):
        yield "results that do not come first"


def _request(history: list[Message]) -> ChatRequest:
    tools = [ToolSpec(name=name, parameters={}) for name in ("add", "files.read")]
    return ChatRequest(messages=sendable(history).messages, tools=tools)


@settings(max_examples=150)
@given(messages, st.sampled_from(MODELS))
def test_any_history_becomes_a_request_that_keeps_the_rules(
    history: list[Message], model: str
) -> None:
    try:
        body = write_request(_request(history), model, AnthropicConfig()).body
    except InvalidRequestError:
        assert not any(
            message.role != "system" and _says_something(message) for message in history
        )
        return

    assert list(_broken_rules(body)) == []


def _says_something(message: Message) -> bool:
    return message.role != "tool" and any(
        isinstance(block, (ToolCallBlock, VendorBlock))
        or (isinstance(block, TextBlock) and block.text.strip() != "")
        for block in message.blocks
    )


def _unmarked(value: JSONValue) -> JSONValue:
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    if isinstance(value, dict):
        return {
            key: _unmarked(item)
            for key, item in value.items()
            if key != "cache_control"
        }
    return value


@settings(max_examples=80)
@given(st.lists(st.tuples(texts, st.booleans()), min_size=1, max_size=6), texts)
def test_a_longer_history_begins_as_the_shorter_one(
    turns: list[tuple[str, bool]], more: str
) -> None:
    history = [Message(role="user", content="Begin.")]
    for number, (text, calls) in enumerate(turns):
        call = (ToolCallBlock(id=f"c{number}", name="add"),) if calls else ()
        history.append(Message(role="assistant", content=(TextBlock(text=text), *call)))
        if calls:
            history.append(
                Message(role="tool", tool_call_id=f"c{number}", content=text)
            )
        history.append(Message(role="user", content=text))
    shorter = write_request(_request(history), MODELS[0], AnthropicConfig()).body
    again = write_request(_request(history), MODELS[0], AnthropicConfig()).body
    longer = write_request(
        _request(
            [
                *history,
                Message(role="assistant", content="x"),
                Message(role="user", content=more),
            ]
        ),
        MODELS[0],
        AnthropicConfig(),
    ).body

    assert json.dumps(shorter) == json.dumps(again)
    before, after = (
        _list(_unmarked(shorter["messages"])),
        _list(_unmarked(longer["messages"])),
    )
    assert json.dumps(after[: len(before)]) == json.dumps(before)
    assert _unmarked(shorter["tools"]) == _unmarked(longer["tools"])
