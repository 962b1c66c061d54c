"""The stored sessions among which a person chooses: searched as they type, each with a look at its end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Self

import attrs

from amplifier.app.store.reader import read_history
from amplifier.app.store.search import search_sessions
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import StoredSession
from amplifier.app.text.message_visibility import visible_texts
from amplifier_kit.terminal import one_line, visible
from amplifier_sdk.errors import AmplifierError

__all__ = ["SessionChoices"]

_MAX_SESSIONS: Final = 500
_SEARCHED_BYTES: Final = 20_000_000
_PREVIEW_MESSAGES: Final = 6


@attrs.define(eq=False)
class SessionChoices:
    """The sessions of a project, the latest first; its methods block.

    Args:
        sessions: those that may be chosen.
    """

    sessions: Sequence[StoredSession]

    @classmethod
    def of(cls, store: ProjectSessions, *, without: str = "") -> Self:
        """Read what a store holds.

        Args:
            store: the project's.
            without: the id of a session that is open already.
        """
        every = sorted(store.all(), key=lambda each: each.record.latest, reverse=True)
        chosen = [
            session
            for session in every
            if session.record.session_id != without and session.record.command is None
        ]
        return cls(chosen[:_MAX_SESSIONS])

    def matching(self, text: str) -> Sequence[StoredSession]:
        """Return the sessions in which a text stands: in their names, prompts and tags, or in what was said."""
        if not text.strip():
            return self.sessions
        found = search_sessions(
            self.sessions,
            text.strip(),
            limit=len(self.sessions),
            max_bytes=_SEARCHED_BYTES,
        )
        return [hit.session for hit in found.hits]

    def row(self, session: StoredSession, width: int) -> str:
        """Describe a session in a line."""
        record = session.record
        when = datetime.fromtimestamp(record.latest).astimezone()
        turns = "1 turn" if record.turn_count == 1 else f"{record.turn_count} turns"
        called = record.name or record.prompt or "nothing said"
        return one_line(f"{when:%d %b %H:%M}  {turns:>9}  {called}", width)

    def preview(self, session: StoredSession) -> str:
        """Return the end of a session as text, in which no control character is left."""
        try:
            messages = read_history(session.folder).messages
        except (AmplifierError, OSError) as error:
            return one_line(str(error), 500)
        return visible(
            "\n\n".join(visible_texts(messages[-_PREVIEW_MESSAGES:], "user"))
        )
