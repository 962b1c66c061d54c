"""The canonical events with the data they carry, as the kernel, loops and modules send them: `payloads.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from amplifier_sdk.chat import ChatResponse, Usage
from amplifier_sdk.content import TextBlock
from amplifier_sdk.convert import from_json
from amplifier_sdk.results import ToolResult
from amplifier_sdk.streaming import TextDelta

_USAGE: Final = Usage(input_tokens=3, output_tokens=2, total_tokens=5)
_RESULT: Final = ToolResult(output={"lines": 3})
_VALUES: Final[Mapping[str, object]] = {
    "response": ChatResponse(
        content=[TextBlock(text="Hello.")], usage=_USAGE, finish_reason="stop"
    ),
    "usage": _USAGE,
    "delta": TextDelta(text="Hello."),
    "result": _RESULT,
    "tool_result": _RESULT,
}
"""What is no JSON: these stand where a payload of the file has null under such a key."""


@attrs.frozen
class _File:
    payloads: Mapping[str, Mapping[str, object]]
    required: Mapping[str, frozenset[str]]
    optional: frozenset[str]
    nullable: frozenset[str]


_FILE: Final = from_json(
    json.loads(Path(__file__).with_name("payloads.json").read_text("utf-8")), _File
)

# With values that each sender really sends: a handler may read any of them.
PAYLOADS: Final[Mapping[str, Mapping[str, object]]] = {
    event: {
        **data,
        **{key: _VALUES[key] for key in _VALUES if data.get(key, 1) is None},
    }
    for event, data in _FILE.payloads.items()
}
"""What each canonical event may carry; the kernel adds the ids of `EventFields`."""

REQUIRED: Final = _FILE.required
"""The keys that whoever reads a canonical event relies on."""

OPTIONAL: Final = _FILE.optional
"""The keys that any event may come without: ids outside a turn, and what not every sender knows."""

NULLABLE: Final = _FILE.nullable
"""The keys whose value may be null."""


def copied(value: object) -> object:
    """Copy the mappings and lists of an event's data; other values are shared, as the kernel shares them."""
    if isinstance(value, dict):
        return {key: copied(part) for key, part in value.items()}
    if isinstance(value, list):
        return [copied(part) for part in value]
    return value


def payload(data: Mapping[str, object]) -> dict[str, object]:
    """Copy an event's data for one handler."""
    return {key: copied(part) for key, part in data.items()}
