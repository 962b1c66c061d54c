"""Stored sessions as commands name and show them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

import click

from amplifier.cli._terminal import notice, one_line

if TYPE_CHECKING:
    from amplifier.app.store.store import SessionStore
    from amplifier.app.store.stored import StoredSession
    from amplifier_sdk.jsontypes import JSONObject
    from amplifier_sdk.messages import MessageDict

__all__ = [
    "about",
    "all_option",
    "cleaner",
    "find",
    "find_broken",
    "label",
    "moved_reported",
    "report_moved",
    "require_locks",
    "shown_text",
    "stores",
    "when",
]

_LEFT_OUT: Final = (
    "owed",
    "plan",
    "provider_preferences",
    "request",
    "has_composition",
    "is_renewed",
    "further",
)

P = ParamSpec("P")
R = TypeVar("R")


def all_option(command: Callable[P, R]) -> Callable[P, R]:
    """Add `--all-projects`."""
    return click.option(
        "--all-projects", is_flag=True, help="Look at the sessions of every project."
    )(command)


def stores(*, all_projects: bool) -> list[SessionStore]:
    """Return the store of this project, or those of all."""
    # with the runtime: help and wrong usage need none
    from amplifier.app.directories import Places
    from amplifier.app.store.store import SessionStore

    places = Places.find()
    if all_projects:
        return SessionStore.every(places)
    return [SessionStore.of(places)]


def find(name: str, *, all_projects: bool) -> tuple[SessionStore, StoredSession]:
    """Find a session by its id, the beginning of it, or its name, and the store that it is in.

    Raises:
        ConfigError: there is none, or several; names them.
    """
    # with the runtime: help and wrong usage need none
    from amplifier.app.store.selection import find_session
    from amplifier.app.store.store import SessionStore

    roots = [store.sessions for store in stores(all_projects=all_projects)]
    with moved_reported():
        session = find_session(roots, name)
    return SessionStore(session.folder.parent.parent), session


def find_broken(name: str, *, all_projects: bool) -> tuple[SessionStore, str]:
    """Find a session as `find` does, also one that is damaged; return its id.

    Raises:
        ConfigError: there is none, or several; names them.
    """
    from amplifier.app.store.selection import find_outline
    from amplifier.app.store.store import SessionStore

    roots = [store.sessions for store in stores(all_projects=all_projects)]
    with moved_reported():
        found = find_outline(roots, name)
    return SessionStore(found.folder.parent.parent), found.session_id


@contextmanager
def moved_reported() -> Iterator[None]:
    """Report where else a session may be that is not found in the block."""
    from amplifier.app.store.selection import NoSuchSessionError

    try:
        yield
    except NoSuchSessionError:
        report_moved()
        raise


def report_moved() -> None:
    """Report the sessions that this project may have under an earlier path, and what brings them here."""
    from amplifier.app.directories import Places
    from amplifier.app.store.moved import moved_projects

    for project in moved_projects(Places.find()):
        root = str(project.root)
        notice(
            f"There are sessions of {one_line(root, 300)}, which is gone: "
            f"{project.session_count}. If that was this project, "
            f"'amplifier session move {one_line(quote(root), 300)}' brings them here."
        )


def require_locks() -> None:
    """Refuse to store or change sessions where they cannot be locked.

    Raises:
        AmplifierError: the package that locks is missing.
    """
    # with the runtime: help and wrong usage need none
    from amplifier.app import session_selection

    session_selection.require_locks()


def about(session: StoredSession) -> JSONObject:
    """Return who a session is and how it stands as JSON data, with every key, and without what a child is made of."""
    import attrs  # with the runtime: help and wrong usage need none

    from amplifier.app.store.states import state_of

    written = session.record.to_dict()
    names = [field.name for field in attrs.fields(type(session.record))]
    data: JSONObject = {
        name: written.get(name) for name in names if name not in _LEFT_OUT
    }
    state = state_of(session.folder)
    return {
        **data,
        "prompt": shown_text(session.record.prompt),
        "state": state,
        "folder": str(session.folder),
    }


def label(session: StoredSession, width: int = 60) -> str:
    """Return how a person knows a session: its name, else how it began."""
    return one_line(session.record.name or shown_text(session.record.prompt), width)


def when(seconds: float) -> str:
    """Write a time as clocks here show it."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def cleaner() -> Callable[[MessageDict], MessageDict]:
    """Return what takes secrets out of a message before it is shown."""
    from amplifier_kit.redaction import SinkRedactor, StrictRedactor, clean_message

    return partial(clean_message, redactor=SinkRedactor(StrictRedactor()))


def shown_text(text: str) -> str:
    """Take the secrets out of a text before it is shown."""
    from amplifier_kit.redaction import SinkRedactor, StrictRedactor

    return SinkRedactor(StrictRedactor()).redact_text(text)
