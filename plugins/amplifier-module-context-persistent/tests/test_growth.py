"""A long conversation costs no more for each message than a short one."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from amplifier import ModuleCoordinator
from amplifier_kit.files.appendlog import AppendLog
from amplifier_module_context_persistent import PersistentContext, mount
from amplifier_sdk import MessageDict
from amplifier_sdk.stores import LogEntry

if TYPE_CHECKING:
    from _typeshed import TraceFunction

MANY: Final = 10_000
FEW: Final = 20
MORE: Final = 1.2
"""How many more steps a message may take; one that walked the history would take hundreds of times as many."""


def said(number: int) -> MessageDict:
    return {
        "role": "assistant" if number % 2 else "user",
        "content": f"message {number} ".ljust(80, "."),
    }


async def opened(path: Path) -> PersistentContext:
    return await mount(
        ModuleCoordinator(session_id="one"), {"transcript_path": str(path)}
    )


async def steps(context: PersistentContext) -> int:
    """Count the calls and lines of Python that some messages take in this thread, with a view after each."""
    await context.add_message(said(0))
    # what is done once for a history is done
    await context.get_messages_for_request(100 * MANY)
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> TraceFunction:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for number in range(FEW):
            await context.add_message(said(number))
            await context.get_messages_for_request(100 * MANY)
    finally:
        sys.settrace(before)
    return count


async def test_a_message_costs_the_same_after_ten_thousand(tmp_path: Path) -> None:
    log = await AppendLog.open(tmp_path / "long.jsonl", holds="context-messages")
    await log.replace(
        LogEntry(kind="message", data=said(number), at=1.0) for number in range(MANY)
    )
    await log.aclose()
    short, long = (
        await opened(tmp_path / "short.jsonl"),
        await opened(tmp_path / "long.jsonl"),
    )

    first, last = await steps(short), await steps(long)

    assert len(await long.get_messages()) == MANY + FEW + 1
    assert last < MORE * first
    await short.aclose()
    await long.aclose()
