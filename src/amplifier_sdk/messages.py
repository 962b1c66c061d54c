"""One message of a conversation, and its stored form.

Context managers store messages as JSON objects, exactly as they came. Providers read them as `Message`
values. `Message.from_dict` accepts every shape that the module contracts show: a string, a list of blocks or `None`
as content, the role `function` for tool results, and tool calls beside the content in either spelling.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, get_args

import attrs

from amplifier_sdk.content import (
    ContentBlock,
    TextBlock,
    ToolCallBlock,
    block_from_dict,
    block_to_dict,
)
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.values import NO_EXTRAS, Value

__all__ = ["Message", "MessageDict", "Role"]

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
"""Who speaks. The role `function` of older histories reads as `tool`."""

MessageDict: TypeAlias = JSONObject
"""A message as context managers store it: plain JSON data."""

_ROLES: Final[frozenset[str]] = frozenset(get_args(Role))
_READ: Final = frozenset({"role", "content", "tool_calls"})


def _content(value: str | Sequence[ContentBlock]) -> str | tuple[ContentBlock, ...]:
    if isinstance(value, str):
        return value
    return tuple(value)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Message(Value):
    """One message: a role and either a text or content blocks.

    `tool_call_id` pairs a tool's message with its call; `extras` keeps fields that nobody here knows.
    """

    role: Role
    content: str | tuple[ContentBlock, ...] = attrs.field(
        default="", converter=_content
    )
    name: str | None = None
    tool_call_id: str | None = None
    metadata: Mapping[str, JSONValue] | None = None
    extras: Mapping[str, JSONValue] = NO_EXTRAS

    @property
    def text(self) -> str:
        """The message's text: the content itself, or its text blocks joined."""
        if isinstance(self.content, str):
            return self.content
        return "".join(
            block.text for block in self.content if isinstance(block, TextBlock)
        )

    @property
    def blocks(self) -> tuple[ContentBlock, ...]:
        """The content as blocks; a string is one text block, an empty string none."""
        if isinstance(self.content, str):
            if self.content:
                return (TextBlock(text=self.content),)
            return ()
        return self.content

    def to_dict(self) -> MessageDict:
        """Write the message as plain JSON data; fields that are `None` are left out."""
        content: JSONValue
        if isinstance(self.content, str):
            content = self.content
        else:
            content = [block_to_dict(block) for block in self.content]
        data: MessageDict = {"role": self.role, "content": content}
        if self.name is not None:
            data["name"] = self.name
        if self.tool_call_id is not None:
            data["tool_call_id"] = self.tool_call_id
        if self.metadata is not None:
            data["metadata"] = self.metadata
        for name, value in self.extras.items():
            data.setdefault(name, value)  # what the message itself says wins
        return data

    def model_dump(self) -> MessageDict:
        """Write the message as plain JSON data, under the name that the module contracts use."""
        return self.to_dict()

    @classmethod
    def from_dict(cls, data: Mapping[str, JSONValue]) -> Message:
        """Read a stored message.

        Raises:
            ValueError: the role or the content is not one that a message can have.
        """
        name, call_id, metadata = (
            data.get("name"),
            data.get("tool_call_id"),
            data.get("metadata"),
        )
        # A field that is not of our type is somebody else's: it stays as it is.
        extras = {
            key: value
            for key, value in data.items()
            if key not in _READ and not _is_own(key, value)
        }
        return cls(
            role=_role(data.get("role")),
            content=_with_calls(
                _read_content(data.get("content")), data.get("tool_calls")
            ),
            name=name if isinstance(name, str) else None,
            tool_call_id=call_id if isinstance(call_id, str) else None,
            metadata=metadata if isinstance(metadata, Mapping) else None,
            extras=extras or NO_EXTRAS,
        )


def _is_own(key: str, value: JSONValue) -> bool:
    match key:
        case "name" | "tool_call_id":
            return value is None or isinstance(value, str)
        case "metadata":
            return value is None or isinstance(value, Mapping)
        case _:
            return False


def _role(value: JSONValue) -> Role:
    match value:
        case "function":
            return "tool"
        case "system" | "developer" | "user" | "assistant" | "tool":
            return value
        case _:
            raise ValueError(
                f"A message's role is one of {', '.join(sorted(_ROLES))}; got {value!r}"
            )


def _read_content(value: JSONValue) -> str | tuple[ContentBlock, ...]:
    match value:
        case None:
            return ()
        case str():
            return value
        case Sequence():
            return tuple(_read_block(item) for item in value)
        case _:
            raise ValueError(
                f"A message's content is a string, a list of blocks or null; got {value!r:.200}"
            )


def _read_block(value: JSONValue) -> ContentBlock:
    match value:
        case str():
            return TextBlock(text=value)
        case Mapping():
            return block_from_dict(value)
        case _:
            raise ValueError(f"A content block is an object; got {value!r:.200}")


def _with_calls(
    content: str | tuple[ContentBlock, ...], calls: JSONValue
) -> str | tuple[ContentBlock, ...]:
    """Turn calls that stand beside the content into blocks, unless the content has them already."""
    if not isinstance(calls, Sequence) or isinstance(calls, str) or not calls:
        return content
    blocks = (
        ((TextBlock(text=content),) if content else ())
        if isinstance(content, str)
        else content
    )
    present = {block.id for block in blocks if isinstance(block, ToolCallBlock)}
    added = [
        call
        for call in map(_read_call, calls)
        if call.id not in present and (call.id or not present)
    ]
    return (*blocks, *added)


def _read_call(value: JSONValue) -> ToolCallBlock:
    """Read `{id, name, arguments}`, `{id, tool, arguments}` or the nested `function` form."""
    if not isinstance(value, Mapping):
        raise ValueError(f"A tool call is an object; got {value!r:.200}")
    function = value.get("function")
    body = value
    if isinstance(function, Mapping):
        body = function
    name = body.get("name") or body.get("tool")
    return ToolCallBlock(
        id=str(value.get("id") or ""),
        name=str(name or ""),
        input=_read_input(body.get("arguments", body.get("input"))),
    )


def _read_input(arguments: JSONValue) -> Mapping[str, JSONValue]:
    """Return a stored call's arguments; vendors send nothing, or empty text, for none."""
    value: JSONValue = arguments or {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    # A call in a stored history was answered already; what cannot be read stays where a reader sees it.
    if isinstance(value, Mapping):
        return value
    return {"raw_arguments": arguments}
