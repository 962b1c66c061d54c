"""The session that a command works in, with what the person should know of it on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from amplifier.app.directories import Places
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.selection import (
    SelectedSession,
    SessionSelector,
    opening_notices,
    select_session,
)
from amplifier.cli._question_texts import waiting_line
from amplifier.cli._sessions import moved_reported
from amplifier.cli._terminal import notice
from amplifier_sdk.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplifier.app.sessions.opened import OpenSession
    from amplifier.app.store.choice import StoreChoice
    from amplifier_sdk.stores import StoredQuestion

__all__ = ["choose_session", "require_nothing_waits", "tell_opening"]


def choose_session(options: PlanOptions, selector: SessionSelector) -> SelectedSession:
    """Find or begin a session of the working directory, as `select_session` does, and report its notices.

    Raises:
        ConfigError: there is no such session, or what it is made of has problems.
        AmplifierError: sessions cannot be stored here.
    """
    with moved_reported():
        selected = select_session(options, selector, Places.find())
    for line in selected.notices:
        notice(line)
    return selected


def require_nothing_waits(chosen: SelectedSession, choice: StoreChoice) -> None:
    """Refuse to open a session for a chat while a turn of it waits for an answer, which would end the turn.

    Args:
        chosen: the session.
        choice: where it stands.

    Raises:
        ConfigError: such a turn waits; the message says what it asks, and how that is answered.
    """
    if chosen.store is None:
        return
    session_id = chosen.record.session_id
    asked = anyio.run(_open_questions, session_id, choice)
    if asked:
        ends = f"and 'amplifier resume {session_id[:8]} PROMPT' ends it"
        problems = [Problem("", f"{waiting_line(each)}, {ends}") for each in asked]
        raise ConfigError(problems, subject=f"session {session_id!r}")


async def _open_questions(
    session_id: str, choice: StoreChoice
) -> Sequence[StoredQuestion]:
    # few sessions have such a turn
    from amplifier.app.sessions.later_turns import LaterTurn

    store = await choice.opened(Places.find())
    try:
        later = await LaterTurn.of_session(store, session_id)
        if later is None:
            return ()
        return await later.open_questions(store, session_id)
    finally:
        await store.aclose()


def tell_opening(opened: OpenSession, *, needs_provider: bool = True) -> None:
    """Report the modules that the session has not, and what became of a turn that was interrupted."""
    for line in opening_notices(opened, needs_provider=needs_provider):
        notice(line)
