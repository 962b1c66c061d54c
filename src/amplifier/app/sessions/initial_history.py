"""What a session that was opened begins with: its stored history, and the instruction of its profile."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from anyio import CancelScope, to_thread

from amplifier.app.instructions.files import load_instructions
from amplifier.app.store.interrupted import InterruptedTurn
from amplifier.app.store.states import resumable
from amplifier.app.text.context_blocks import is_context_block
from amplifier.kernel.capabilities import INSTRUCTIONS
from amplifier.kernel.sessions.history import replace_history
from amplifier_kit.redaction import clean_message, redactor_of
from amplifier_sdk.contracts import ContextManager
from amplifier_sdk.history import open_calls
from amplifier_sdk.messages import MessageDict
from amplifier_sdk.redaction import REDACTOR

if TYPE_CHECKING:
    from amplifier.app.sessions.opened import OpenSession
    from amplifier.app.store.store import ProjectSessions
    from amplifier.app.store.writer import SessionWriter

__all__ = ["instruct", "restore"]


async def restore(opened: OpenSession, store: ProjectSessions | None) -> None:
    """Go on where the stored session ended; a context that keeps its own history knows better.

    A turn that was left until a person answers stays so, until another one begins.
    """
    writer = opened.writer
    if writer is None or store is None:
        return
    coordinator = opened.session.coordinator
    if coordinator.get_capability(REDACTOR) is not None:
        writer.clean_with(partial(clean_message, redactor=redactor_of(coordinator)))
    if opened.turn is not None and opened.turn.is_begun:
        # the turn is continued: it adds to the history what it did
        await replace_history(coordinator.context, writer.transcript.messages)
        opened.mentions.restore(writer.transcript.messages)
        return
    if writer.interrupted is not None:
        writer.say_in_doubt(resumable(opened.cut_off, writer.record.session_id))
    opened.interrupted = turn = writer.interrupted
    if opened.left:
        # whoever answers continues it, unless a prompt comes first
        writer.journal.before_turn.append(partial(_end_left, opened, writer))
    else:
        opened.interrupted = await writer.settle()
    context = coordinator.context
    own = [
        message
        for message in await context.get_messages()
        if message.get("role") != "system"
    ]
    # Its own history may be newer, and compacted; only what the journal adds is given
    # to it. But a session of a store that machines share may have been elsewhere since.
    is_elsewhere = writer.journal.replica is not None and own != writer.messages
    if writer.messages and (not own or is_elsewhere):
        await replace_history(context, writer.messages)
    elif turn is not None:
        await _answer(context, turn)
    opened.mentions.restore(own or writer.messages)


async def _end_left(opened: OpenSession, writer: SessionWriter) -> None:
    with CancelScope(shield=True):
        await writer.settle()
    opened.left = ()


async def instruct(opened: OpenSession) -> None:
    """Put a system message at the head of the history: the files of instructions, and what the profile says.

    Both are as they are now, and that of an earlier time makes way for it. One that says where it comes from stays,
    such as the memory that a context begins with.
    """
    composition, coordinator = opened.composition, opened.session.coordinator
    if composition.reads_instructions:
        opened.instructions = await to_thread.run_sync(
            load_instructions,
            composition.dirs,
            composition.project,
            composition.settings.read().instructions,
        )
        coordinator.register_capability(INSTRUCTIONS, opened.instructions.text())
        opened.mentions.begin_with(opened.instructions)
    text = await _system_text(opened)
    context = coordinator.context
    stored = list(await context.get_messages())
    # Metadata marks what a module put there, and the profile does not own.
    is_earlier = (
        bool(stored)
        and stored[0].get("role") == "system"
        and not stored[0].get("metadata")
    )
    if text:
        system: MessageDict = {"role": "system", "content": text}
        if not stored:
            await context.add_message(system)
        elif stored[0] != system:
            await replace_history(context, [system, *stored[is_earlier:]])
    elif is_earlier and is_context_block(stored[0].get("content")):
        # They were trusted then and are not now.
        await replace_history(context, stored[1:])


async def _system_text(opened: OpenSession) -> str:
    profile, text = opened.composition.profile, opened.composition.instruction
    if opened.composition.system is not None:
        given = (opened.instructions.text(), opened.composition.system)
        return "\n\n".join(part for part in given if part)
    if profile is None or text is None:
        # of a plan file; it is as final as the rest, so that mentions mean nothing in it
        written = opened.session.plan.instruction
        return "\n\n".join(filter(None, (opened.instructions.text(), written)))
    return await opened.mentions.instruction(text, profile.folder, opened.instructions)


async def _answer(context: ContextManager, turn: InterruptedTurn) -> None:
    """Give a context with a history of its own what the journal knows of its open end."""
    results = {
        message["tool_call_id"]: message
        for message in turn.messages
        if message.get("role") == "tool"
    }
    for call in open_calls(await context.get_messages()):
        if call.id in results:
            await context.add_message(results[call.id])
    last, end = (await context.get_messages())[-1:], turn.messages[-1]
    is_open = any(message.get("role") in ("user", "tool") for message in last)
    if is_open and end.get("role") == "assistant":
        await context.add_message(end)
