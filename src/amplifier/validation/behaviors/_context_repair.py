"""A context whose history is repaired keeps the repaired one; only those that take repairs are asked."""

from __future__ import annotations

from typing import Final

from amplifier.validation.behaviors._context_storage import fill, holds
from amplifier.validation.behaviors._messages import exchange
from amplifier.validation.behaviors._stage import Stage, open_stage, skip_unless
from amplifier.validation.behaviors.behavior import Suite, require
from amplifier.validation.behaviors.subject import Subject
from amplifier_sdk.contracts import RepairableContext
from amplifier_sdk.history import Repair, repair
from amplifier_sdk.messages import MessageDict

CONTEXT: Final = Suite("context")

_ORPHAN: Final[MessageDict] = {"role": "tool", "tool_call_id": "call_nobody_made", "name": "look", "content": "found"}


async def _repaired(stage: Stage) -> Repair:
    """Break the history of a context that takes repairs, and give it the repair."""
    context = stage.context
    skip_unless(isinstance(context, RepairableContext), "it has no repair_messages; set_messages is called instead")
    assert isinstance(context, RepairableContext)
    await fill(context, [*exchange(1), _ORPHAN, *exchange(2)])
    mended = repair(list(await context.get_messages()))
    await context.repair_messages(mended)
    return mended


@CONTEXT.behavior(fix="Make repair.messages the history in repair_messages, whatever set_messages does.")
async def takes_a_repair(subject: Subject) -> None:
    """After repair_messages, if it has one, the history is exactly the repaired one."""
    async with open_stage(subject) as stage:
        mended = await _repaired(stage)
        await holds(stage.context, mended.messages)


@CONTEXT.behavior(fix="Append to the history that repair_messages gave, and show views of it.")
async def goes_on_from_a_repair(subject: Subject) -> None:
    """Messages that are added after a repair stand behind it, and views show the repaired history."""
    async with open_stage(subject) as stage:
        mended = await _repaired(stage)
        await fill(stage.context, exchange(3))
        await holds(stage.context, [*mended.messages, *exchange(3)])
        view = list(await stage.context.get_messages_for_request(token_budget=1_000_000))
    require(_ORPHAN not in view, "A view shows what the repair took away")
