"""Handlers of the original, as the session's registry calls them.

Each gets a JSON copy of the data, of which nothing else is part, and answers with the original's result, a dict of
its fields or nothing. What it answers is read here, so a wrong answer is its own failure.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Final, TypeAlias, cast

import attrs

from amplifier.compat.plain import plain_copy
from amplifier.compat.results import native_hook_result
from amplifier_sdk.events import TOOL_POST
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import HookResult, ToolResult

__all__ = ["Handler", "OriginalHandler"]

_RESULTS: Final = frozenset({"result", "tool_result"})

Handler: TypeAlias = Callable[[str, dict[str, object]], Awaitable[object] | object]
"""A handler of the original: it gets the event's name and data."""


class OriginalHandler:
    """One handler of the original."""

    __slots__ = ("handler",)

    def __init__(self, handler: Handler) -> None:
        if not callable(handler):
            raise TypeError(f"A handler must be callable; got {handler!r:.200}")
        self.handler: Handler = handler

    async def __call__(
        self, event: str, data: Mapping[str, object], /
    ) -> HookResult | None:
        """Call the handler with a copy of the data and read its answer."""
        answer = self.handler(str(event), cast("dict[str, object]", plain_copy(data)))
        if isawaitable(answer):
            answer = await answer
        if answer is None or answer == {}:
            return None
        result = native_hook_result(answer)
        if result.action != "modify" or result.data is None:
            return result
        # the copy of a value that the handler sends back as it got it is no change of it
        changes = {
            key: value
            for key, value in result.data.items()
            if key not in data or plain_copy(value) != plain_copy(data[key])
        }
        if event == TOOL_POST:
            changes = {key: _result(key, value) for key, value in changes.items()}
        return attrs.evolve(result, data=changes)


def _result(key: str, value: object) -> object:
    """Return what the model gets in place of a result, which a handler may give as its output alone."""
    if key not in _RESULTS or isinstance(value, (Mapping, ToolResult)) or value is None:
        return value
    return ToolResult(output=cast("JSONValue", plain_copy(value)))
