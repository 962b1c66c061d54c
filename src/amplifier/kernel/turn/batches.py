"""Which calls of one answer run beside each other, and which one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from amplifier.kernel.turn.proxies import unwrapped
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.contracts import Tool
from amplifier_sdk.effects import read_only_of

__all__ = ["batches", "lanes"]


def batches(
    calls: Sequence[ToolCall], tools: Mapping[str, Tool]
) -> Iterator[Sequence[ToolCall]]:
    """Split calls where an exclusive tool stands: it is a batch of its own."""
    batch: list[ToolCall] = []
    for call in calls:
        tool = tools.get(call.name)
        if tool is None or getattr(tool, "exclusive", False) is not True:
            batch.append(call)
            continue
        if batch:
            yield batch
        yield [call]
        batch = []
    if batch:
        yield batch


def lanes(calls: Sequence[ToolCall], tools: Mapping[str, Tool]) -> list[list[int]]:
    """Group the calls of a batch, by index, into lanes that run beside each other, each in order.

    Those of tools that say that they change something share one lane; any other call has a lane of its own.
    """
    found: list[list[int]] = []
    changing: list[int] = []
    for index, call in enumerate(calls):
        tool = tools.get(call.name)
        if tool is None or read_only_of(unwrapped(tool)) is not False:
            found.append([index])
            continue
        if not changing:
            found.append(changing)
        changing.append(index)
    return found
