"""The tool that reads what a view does not show: for a model, and for any module by the capability's name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.results import ToolResult

if TYPE_CHECKING:
    from amplifier_kit.compaction.contexts import CompactingContext

__all__ = ["CAPABILITY", "NAME", "LeftOut"]

CAPABILITY: Final = "context.left_out"
"""The capability under which the tool is found."""

NAME: Final = "read_left_out"
"""The tool's name for a model."""

MOST_CHARACTERS: Final = 20_000
"""How much the tool returns at once; it says where to go on."""


class LeftOut:
    """Reads messages of the history by their numbers, whether they are shown or not.

    Args:
        context: whose history it is.
    """

    __slots__ = ("_context",)

    name: Final = NAME
    description: Final = (
        "Read earlier messages of this conversation that are not shown any more. "
        "The notice in the conversation names their numbers."
    )
    input_schema: Final[Mapping[str, JSONValue]] = {
        "type": "object",
        "properties": {
            "first": {
                "type": "integer",
                "minimum": 0,
                "description": "number of the first message",
            },
            "last": {
                "type": "integer",
                "minimum": 0,
                "description": "number of the last message; default the first",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": "characters to skip; default 0",
            },
        },
        "required": ["first"],
        "additionalProperties": False,
    }

    def __init__(self, context: CompactingContext) -> None:
        self._context = context

    @property
    def ranges(self) -> Sequence[tuple[int, int]]:
        """The numbers of the messages that no view shows, as ranges (first, last), both included."""
        return self._context.left_out

    def read(self, first: int, last: int | None = None) -> list[MessageDict]:
        """Return stored messages, whole.

        Args:
            first: the number of the first one; the history counts from 0.
            last: the number of the last one; default the first.
        """
        return self._context.log.view()[
            max(first, 0) : (first if last is None else last) + 1
        ]

    async def execute(self, input: JSONObject, /) -> ToolResult:
        """Return the messages as JSON lines, a page at a time."""
        first, last, offset = (
            _number(input.get(key)) for key in ("first", "last", "offset")
        )
        start = first or 0
        messages = self.read(start, last)
        if not messages:
            if last is not None and last < start:
                return ToolResult.failure(
                    f"'last' is the number {last}, which is before 'first', the number {start}"
                )
            known = len(self._context.log)
            return ToolResult.failure(
                f"No message has the number {start}: the numbers go from 0 to {known - 1}"
            )
        lines = (
            json.dumps({"number": start + at, **message}, default=str)
            for at, message in enumerate(messages)
        )
        text = "\n".join(lines)
        page = text[offset or 0 : (offset or 0) + MOST_CHARACTERS]
        rest = len(text) - (offset or 0) - len(page)
        more = ""
        if rest > 0:
            more = f"\n[{rest:,} more characters: continue with offset {(offset or 0) + len(page)}]"
        return ToolResult(output=page + more)


def _number(value: JSONValue) -> int | None:
    if isinstance(value, int):
        return value
    return None
