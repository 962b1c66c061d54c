"""Stored sessions as commands name and show them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Final

import click

from amplifier.cli._app_dirs import find_app_dirs, find_secrets
from amplifier.cli._options import OptionGroup, flag, session_choices, store_options
from amplifier.cli._terminal import notice, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from amplifier.app.store.choice import StoreChoice
    from amplifier.app.store.shared import SharedSessions
    from amplifier.app.store.store import ProjectSessions
    from amplifier.app.store.stored import StoredSession
    from amplifier_sdk.jsontypes import JSONObject
    from amplifier_sdk.messages import MessageDict

__all__ = [
    "about",
    "all_option",
    "chosen_store",
    "cleaner",
    "file_stores",
    "find",
    "find_broken",
    "label",
    "moved_reported",
    "project_sessions",
    "projects_option",
    "report_moved",
    "require_locks",
    "shared_sessions",
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

_SESSIONS: Final = "amplifier.sessions"

projects_option: Final = flag(
    "--all-projects", help="Look at the sessions of every project."
)
"""Adds `--all-projects`, for what is done to files alone."""

all_option: Final = OptionGroup(projects_option, store_options)
"""Adds `--all-projects`, `--store` and `--namespace`."""


def file_stores(*, all_projects: bool) -> list[ProjectSessions]:
    """Return the files of this project, or those of all."""
    from amplifier.app.store.store import ProjectSessions

    dirs = find_app_dirs()
    if all_projects:
        return ProjectSessions.every(dirs)
    return [ProjectSessions.of(dirs)]


def chosen_store() -> StoreChoice:
    """Return where the person said that sessions stand; the person's secrets are in the environment afterwards."""
    from amplifier.app.store.choice import StoreChoice

    find_secrets().enter()
    chosen = session_choices(click.get_current_context())
    return StoreChoice(store=chosen.store, namespace=chosen.namespace)


def project_sessions() -> ProjectSessions:
    """Return the sessions of this project, in its files or where else the person wants them."""
    found = chosen_store().sessions(find_app_dirs())
    # copies of sessions go with the object, and a command may hold their paths alone
    click.get_current_context().meta.setdefault(_SESSIONS, []).append(found)
    return found


def shared_sessions() -> SharedSessions | None:
    """Return the sessions of this project where a store has them; `None` where they are files."""
    from amplifier.app.store.shared import SharedSessions

    found = project_sessions()
    return found if isinstance(found, SharedSessions) else None


def stores(*, all_projects: bool) -> list[ProjectSessions]:
    """Return the store of this project, or those of all; of one that several machines share who its sessions are.

    Raises:
        click.UsageError: all projects are asked for, and a store has those of this one.
    """
    shared = shared_sessions()
    if shared is None:
        return file_stores(all_projects=all_projects)
    if all_projects:
        raise click.UsageError(
            "--all-projects is about files; in a store --namespace names a project"
        )
    shared.read_records()
    return [shared]


def find(name: str, *, all_projects: bool) -> tuple[ProjectSessions, StoredSession]:
    """Find a session by its id, the beginning of it, or its name, and the store that it is in.

    Raises:
        ConfigError: there is none, or several; names them.
    """
    from amplifier.app.store.selection import find_session
    from amplifier.app.store.shared import SharedSessions
    from amplifier.app.store.store import ProjectSessions

    known = stores(all_projects=all_projects)
    if isinstance(known[0], SharedSessions):
        return known[0], known[0].find(name)
    roots = [store.sessions for store in known]
    with moved_reported():
        session = find_session(roots, name)
    return ProjectSessions(session.folder.parent.parent), session


def find_broken(name: str, *, all_projects: bool) -> tuple[ProjectSessions, str]:
    """Find a session of files as `find` does, also one that is damaged; return its id.

    Raises:
        ConfigError: there is none, or several; names them.
    """
    from amplifier.app.store.selection import find_outline
    from amplifier.app.store.store import ProjectSessions

    roots = [store.sessions for store in file_stores(all_projects=all_projects)]
    with moved_reported():
        found = find_outline(roots, name)
    return ProjectSessions(found.folder.parent.parent), found.session_id


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
    from amplifier.app.store.moved import moved_projects

    for project in moved_projects(find_app_dirs()):
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
    from amplifier.app.sessions import selection

    selection.require_locks()


def about(session: StoredSession) -> JSONObject:
    """Return who a session is and how it stands as JSON data, with every key, and without what a child is made of.

    The folder of one that several machines share has what modules store of it on this one, and is `None` where that is
    nothing.
    """
    import attrs  # with the runtime: help and wrong usage need none

    from amplifier.app.store.shared import is_copy, local_folder
    from amplifier.app.store.states import state_of

    written = session.record.to_dict()
    names = [field.name for field in attrs.fields(type(session.record))]
    data: JSONObject = {
        name: written.get(name) for name in names if name not in _LEFT_OUT
    }
    state = state_of(session.folder)
    folder: Path | None = session.folder
    if is_copy(session.folder):
        root = find_app_dirs().state / "sessions"
        folder = local_folder(root, session.record.session_id)
    return {
        **data,
        "prompt": shown_text(session.record.prompt),
        "state": state,
        "folder": None if folder is None else str(folder),
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
