"""The session that a command works in, with what the person should know of it on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.selection import (
    SelectedSession,
    SessionSelector,
    opening_notices,
    select_session,
)
from amplifier.cli._logs import configure_logs
from amplifier.cli._options import is_debug, session_choices
from amplifier.cli._sessions import moved_reported
from amplifier.cli._terminal import notice

if TYPE_CHECKING:
    from amplifier.app.sessions.opened import OpenSession

__all__ = ["choose_session", "chosen_session", "report_opening"]


def choose_session(options: PlanOptions, selector: SessionSelector) -> SelectedSession:
    """Find or begin a session of the working directory, as `select_session` does, and report its notices.

    Raises:
        ConfigError: there is no such session, or what it is made of has problems.
        AmplifierError: sessions cannot be stored here.
    """
    with moved_reported():
        selected = select_session(options, selector, AppDirs.find())
    for line in selected.notices:
        notice(line)
    return selected


def chosen_session(ctx: click.Context, *, keep: bool | None) -> SelectedSession:
    """Begin the session that the options of a command describe, with its log on standard error; raises likewise.

    Args:
        ctx: the command's.
        keep: whether it is stored; `None` for what the settings say.
    """
    configure_logs(debug=is_debug(ctx))
    options = session_choices(ctx).plan_options()
    return choose_session(options, SessionSelector(keep=keep))


def report_opening(opened: OpenSession, *, needs_provider: bool = True) -> None:
    """Report the modules that the session has not, and what became of a turn that was interrupted."""
    for line in opening_notices(opened, needs_provider=needs_provider):
        notice(line)
