"""A session's history between its turns: what vendors would refuse in it is repaired before the next one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier.kernel.reports import report
from amplifier_sdk.contracts import ContextManager, RepairableContext
from amplifier_sdk.events import (
    PROVIDER_TOOL_SEQUENCE_REPAIRED,
    ProviderToolSequenceRepaired,
)
from amplifier_sdk.history import open_calls
from amplifier_sdk.messages import MessageDict

if TYPE_CHECKING:
    from amplifier_sdk.history import HistoryFinding, Repair

__all__ = ["SessionHistory", "instruct", "replace_history"]

_INSTRUCTIONS: Final = ("system", "developer")


@attrs.define(eq=False, repr=False)
class SessionHistory:
    """Checks the history before a turn, unless it is as long as the last turn left it.

    A turn that failed or was cancelled left nothing behind that the next one relies on.
    """

    coordinator: ModuleCoordinator
    _context: ContextManager | None = None
    _length: int = 0

    async def mend(self) -> None:
        """Repair the history if it is another than the last turn's; a session's first turn checks any.

        The repair is stored, logged and announced.

        Raises:
            Exception: whatever the context raised.
        """
        context = self.coordinator.context
        messages = await context.get_messages()
        # forgotten first: a turn that fails from here on must be checked again
        known, self._context = self._context, None
        if (known is context and len(messages) == self._length) or _is_new(messages):
            return
        # few sessions are resumed, and it is not small
        from amplifier_sdk.history import repair

        mended = repair(messages)
        if mended.findings:
            await self._store(context, mended)

    async def note(self) -> None:
        """Store what handlers injected last, and remember how the turn left the history.

        One with open calls is checked again.
        """
        decisions, context = self.coordinator.decisions, self.coordinator.context
        if decisions.waiting:
            await decisions.store_waiting()
        messages = await context.get_messages()
        if not open_calls(messages):
            self._context, self._length = context, len(messages)

    async def _store(self, context: ContextManager, mended: Repair) -> None:
        await replace_history(context, mended.messages, mended.findings)
        # a context need not take what it is given, and the report has to say so
        stored = list(await context.get_messages()) == list(mended.messages)
        session_id, findings = self.coordinator.session_id, mended.findings
        report(
            "history.repaired",
            session_id=session_id,
            stored=stored,
            findings=list(map(str, findings)),
        )
        payload = ProviderToolSequenceRepaired(
            provider=None,
            repair_count=len(findings),
            repairs=[finding.to_dict() for finding in findings],
            stored=stored,
        )
        event = PROVIDER_TOOL_SEQUENCE_REPAIRED
        await self.coordinator.process_hook_result(
            await self.coordinator.hooks.emit(event, payload), event
        )


async def replace_history(
    context: ContextManager,
    messages: Sequence[MessageDict],
    findings: Sequence[HistoryFinding] = (),
) -> None:
    """Put another history in the place of a context's own, also where that takes none by `set_messages`.

    Args:
        context: the context.
        messages: all of the other history.
        findings: what was wrong with its own.
    """
    if not isinstance(context, RepairableContext):
        await context.set_messages(messages)
        return
    # it is not small, and few histories are replaced
    from amplifier_sdk.history import Repair

    await context.repair_messages(Repair(messages=messages, findings=tuple(findings)))


async def instruct(context: ContextManager, instruction: str) -> None:
    """Let the conversation begin with an instruction; a context that has one already keeps it."""
    system: MessageDict = {"role": "system", "content": instruction}
    stored = list(await context.get_messages())
    if not stored:
        await context.add_message(system)
    # metadata marks what a module put there, such as the memory that a context begins with
    elif stored[0].get("role") != "system" or stored[0].get("metadata"):
        await replace_history(context, [system, *stored])


def _is_new(messages: Sequence[MessageDict]) -> bool:
    """Whether nobody has said anything yet: there are instructions at most."""
    return all(message.get("role") in _INSTRUCTIONS for message in messages)
