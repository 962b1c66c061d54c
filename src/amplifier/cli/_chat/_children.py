"""The child sessions of a chat: those that are open, and those that have ended and are stored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import attrs
from anyio import to_thread

from amplifier.app.commands.status_commands import rows
from amplifier.app.commands.talk import Talk
from amplifier.app.settings.schema import DisplaySettings
from amplifier.app.store.reader import read_history, words_of
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import StoredSession
from amplifier.kernel.sessions.session import AmplifierSession
from amplifier_kit.commands import CommandAnswer, CommandError
from amplifier_kit.redaction import redactor_of
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.messages import MessageDict

__all__ = ["ChildSessions"]

_MAX_STORED: Final = 20


@attrs.frozen(eq=False)
class ChildSessions:
    """The children of one session, in the order in which they are listed.

    Args:
        talk: the session's conversation.
        display: what is shown of their messages.
    """

    talk: Talk
    display: DisplaySettings

    async def listing(self) -> CommandAnswer:
        """List the children: those that are open, then those that have ended, the latest first; else nothing."""
        opened, stored = self._open, await self._stored()
        known = {each.record.session_id: each for each in stored}
        table = []
        for child in opened:
            found = known.get(child.session_id)
            named = _agent(child.session_id, found)
            table.append((named, _state(child), await _task(child)))
        for ended in _ended(opened, stored):
            named = _agent(ended.record.session_id, ended)
            table.append((named, "done", ended.record.prompt or ""))
        if not table:
            return CommandAnswer(text="")
        numbered = [(str(number), *row) for number, row in enumerate(table, 1)]
        lines = rows(numbered, self.talk.columns)
        more = "/agents N shows what one says, /agents stop N stops it."
        return CommandAnswer(text="\n".join([*lines, more]))

    async def stop(self, number: int) -> CommandAnswer:
        """Stop one that works, by its number in the list; what it has written stays.

        Raises:
            CommandError: none that works has this number.
        """
        opened = self._open
        if not 0 < number <= len(opened):
            raise CommandError(f"Agents at work: {len(opened)}")
        child = opened[number - 1]
        await child.coordinator.request_cancel(immediate=True)
        return CommandAnswer(text=f"{_agent(child.session_id, None)} is stopped.")

    async def show(self, number: int) -> CommandAnswer:
        """Show what one of them says, by its number in the list.

        Raises:
            CommandError: there is no such child, or it cannot be read.
        """
        opened = self._open
        if 0 < number <= len(opened):
            child = opened[number - 1]
            messages: Sequence[MessageDict]
            messages = await _messages(child)
            redactor = redactor_of(child.coordinator)
        else:
            ended = _ended(opened, await self._stored())
            if not len(opened) < number <= len(opened) + len(ended):
                count = len(opened) + len(ended)
                raise CommandError(f"Agents in the list: {count}")
            messages = await _read(ended[number - len(opened) - 1])
            redactor = redactor_of(self.talk.opened.session.coordinator)
        # what messages say takes longer to load than most commands need
        from amplifier.app.text.message_visibility import visible_texts

        text = "\n\n".join(visible_texts(messages, self.display.visibility))
        return CommandAnswer(text=redactor.redact_text(text) or "It has said nothing.")

    @property
    def _open(self) -> Sequence[AmplifierSession]:
        return self.talk.opened.session.family.open_children

    async def _stored(self) -> list[StoredSession]:
        """Read the records of the session's own children, the latest first."""
        store = ProjectSessions.of(self.talk.opened.composition.dirs)
        own = self.talk.opened.session.session_id
        try:
            (family,) = await to_thread.run_sync(partial(store.families, [own]))
        except OSError as error:
            raise CommandError(f"They cannot be read: {error.strerror}") from error
        found = [each for each in family if each.record.parent_id == own]
        return sorted(found, key=lambda each: each.record.latest, reverse=True)


def _ended(
    opened: Sequence[AmplifierSession], stored: Sequence[StoredSession]
) -> Sequence[StoredSession]:
    running = {child.session_id for child in opened}
    ended = [each for each in stored if each.record.session_id not in running]
    return ended[:_MAX_STORED]


async def _read(session: StoredSession) -> Sequence[MessageDict]:
    try:
        history = await to_thread.run_sync(read_history, session.folder)
    except (AmplifierError, OSError) as error:
        raise CommandError(f"It cannot be read: {error}") from error
    return history.messages


def _agent(session_id: str, stored: StoredSession | None) -> str:
    """Return the agent's name, which is a part of its session's id as well, else the id."""
    if stored is not None and stored.record.agent_name:
        return stored.record.agent_name
    _, mark, name = session_id.rpartition("_")
    return name if mark else session_id[:8]


def _state(child: AmplifierSession) -> str:
    if child.family.is_detached:
        return "background"
    return "works" if child.is_busy else "waits"


async def _messages(child: AmplifierSession) -> Sequence[MessageDict]:
    """Return what an open child has said; nothing while its modules are being mounted."""
    if not child.initialized:
        return ()
    return await child.coordinator.context.get_messages()


async def _task(child: AmplifierSession) -> str:
    """Return what a child was asked, without secrets."""
    said = await _messages(child)
    asked = [words_of(each) for each in said if each.get("role") == "user"]
    return redactor_of(child.coordinator).redact_text(asked[0]) if asked else ""
