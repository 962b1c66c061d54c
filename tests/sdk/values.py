"""Strategies for the values that cross the contracts."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, get_args

from hypothesis import strategies as st

from amplifier_sdk.chat import ToolCall, Usage
from amplifier_sdk.content import (
    ContentBlock,
    ImageBlock,
    ReasoningBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    VendorBlock,
    Visibility,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import Message, Role

__all__ = ["blocks", "json_objects", "json_values", "messages", "tool_calls", "usages"]

TEXT: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VENDOR_KEYS: Final = st.sampled_from(["cache_control", "citations", "vendor_id", "x"])
VISIBILITY: Final[st.SearchStrategy[Visibility | None]] = st.none() | st.sampled_from(
    get_args(Visibility)
)


def json_values() -> st.SearchStrategy[JSONValue]:
    scalars: st.SearchStrategy[JSONValue] = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | TEXT
    )
    return st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
        ),
        max_leaves=5,
    )


def json_objects() -> st.SearchStrategy[JSONObject]:
    return st.dictionaries(TEXT, json_values(), max_size=3)


def extras() -> st.SearchStrategy[JSONObject]:
    return st.dictionaries(VENDOR_KEYS, json_values(), max_size=2)


def blocks() -> st.SearchStrategy[ContentBlock]:
    items = st.lists(json_values(), max_size=2)
    return st.one_of(
        st.builds(TextBlock, text=TEXT, visibility=VISIBILITY, extras=extras()),
        st.builds(
            ThinkingBlock,
            thinking=TEXT,
            signature=st.none() | TEXT,
            visibility=VISIBILITY,
            extras=extras(),
        ),
        st.builds(
            RedactedThinkingBlock, data=TEXT, visibility=VISIBILITY, extras=extras()
        ),
        st.builds(
            ReasoningBlock,
            content=items,
            summary=items,
            visibility=VISIBILITY,
            extras=extras(),
        ),
        st.builds(
            ToolCallBlock,
            id=TEXT,
            name=TEXT,
            input=json_objects(),
            visibility=VISIBILITY,
            extras=extras(),
        ),
        st.builds(
            ToolResultBlock,
            tool_call_id=TEXT,
            output=json_values(),
            visibility=VISIBILITY,
            extras=extras(),
        ),
        st.builds(
            ImageBlock, source=json_objects(), visibility=VISIBILITY, extras=extras()
        ),
        st.builds(
            VendorBlock,
            type=TEXT.map(lambda name: f"vendor_{name}"),
            visibility=VISIBILITY,
            extras=extras(),
        ),
    )


def messages() -> st.SearchStrategy[Message]:
    roles: st.SearchStrategy[Role] = st.sampled_from(get_args(Role))
    return st.builds(
        Message,
        role=roles,
        content=TEXT | st.lists(blocks(), max_size=3),
        name=st.none() | TEXT,
        tool_call_id=st.none() | TEXT,
        metadata=st.none() | json_objects(),
        extras=extras(),
    )


def tool_calls() -> st.SearchStrategy[ToolCall]:
    return st.builds(
        ToolCall,
        id=TEXT,
        name=TEXT,
        arguments=json_objects(),
        raw_arguments=st.none() | TEXT,
        problem=st.none() | TEXT,
        extras=extras(),
    )


def usages() -> st.SearchStrategy[Usage]:
    tokens = st.integers(0, 10**9)
    return st.builds(
        Usage,
        input_tokens=tokens,
        output_tokens=tokens,
        total_tokens=tokens,
        reasoning_tokens=st.none() | tokens,
        cache_read_tokens=st.none() | tokens,
        cache_write_tokens=st.none() | tokens,
        cost_usd=st.none() | st.decimals(0, 1000, places=6).map(Decimal),
        extras=extras(),
    )
