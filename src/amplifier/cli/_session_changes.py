"""`amplifier session rename`, `tag`, `fork`, `delete` and `cleanup`."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from amplifier.cli._options import flag, yes_option
from amplifier.cli._sessions import (
    about,
    all_option,
    find,
    label,
    require_locks,
    stores,
)
from amplifier.cli._shell_completion import sessions
from amplifier.cli._tables import output_option, say_json
from amplifier.cli._terminal import notice, one_line, say

if TYPE_CHECKING:
    from amplifier.app.store.store import ProjectSessions
    from amplifier.app.store.stored import StoredSession

__all__ = ["cleanup", "fork", "remove", "rename", "tag"]

_SECONDS: Final = {"h": 3600, "d": 86_400, "w": 604_800}


def _age(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """Read hours, days or weeks, such as `12h`, `30d` or `4w`, as seconds; days where no unit stands."""
    found = re.fullmatch(r"(\d{1,6})([hdw]?)", value)
    if found is None:
        raise click.BadParameter(
            f"{value!r} is no age: 12h, 30d and 4w are", ctx, param
        )
    return float(int(found[1]) * _SECONDS[found[2] or "d"])


@click.command()
@click.argument("session", metavar="SESSION", shell_complete=sessions)
@click.argument("name", required=False)
@all_option
def rename(session: str, name: str | None, all_projects: bool) -> None:
    """Call SESSION by NAME; without NAME it has none any more."""
    store, found = find(session, all_projects=all_projects)
    _store_changes(store, found, name=name or None)
    if name:
        notice(f"It is called {one_line(name)}")
    else:
        notice(f"{one_line(found.record.session_id)} has no name")


@click.command()
@click.argument("session", metavar="SESSION", shell_complete=sessions)
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option("-r", "--remove", metavar="WORD", multiple=True, help="Take a tag away.")
@all_option
def tag(
    session: str, words: tuple[str, ...], remove: tuple[str, ...], all_projects: bool
) -> None:
    """Give SESSION tags, or take some away, and print those that it has."""
    store, found = find(session, all_projects=all_projects)
    tags = tuple(
        word
        for word in dict.fromkeys((*found.record.tags, *words))
        if word not in remove
    )
    if tags != found.record.tags:
        _store_changes(store, found, tags=tags)
    for word in tags:
        say(one_line(word))


@click.command()
@click.argument("session", metavar="SESSION", shell_complete=sessions)
@click.option(
    "--turn",
    type=click.IntRange(min=0),
    metavar="N",
    help="Take the first N turns; default all.",
)
@click.option(
    "--message",
    type=click.IntRange(min=0),
    metavar="N",
    help="Take the first N messages instead.",
)
@click.option("--name", metavar="NAME", help="What the new session is called.")
@all_option
@output_option
def fork(
    session: str,
    turn: int | None,
    message: int | None,
    name: str | None,
    all_projects: bool,
    output: str,
) -> None:
    """Fork SESSION at one of its turns or messages; SESSION stays as it is. Print the new id."""
    import anyio  # with the runtime: help and wrong usage need none

    from amplifier.app.store.fork import fork_session

    if turn is not None and message is not None:
        raise click.UsageError("--turn or --message, not both.")
    require_locks()
    store, found = find(session, all_projects=all_projects)
    made = anyio.run(
        partial(fork_session, store, found, at_turn=turn, at_message=message, name=name)
    )
    if output == "json":
        say_json(about(made))
    else:
        say(made.record.session_id)


@click.command()
@click.argument(
    "sessions", nargs=-1, required=True, metavar="SESSION...", shell_complete=sessions
)
@yes_option
@all_option
def remove(sessions: tuple[str, ...], yes: bool, all_projects: bool) -> None:
    """Delete each SESSION and all that came of it."""
    require_locks()
    chosen: dict[ProjectSessions, dict[str, None]] = {}  # each session once, in order
    for name in sessions:
        store, session = find(name, all_projects=all_projects)
        chosen.setdefault(store, {})[session.record.session_id] = None
    for store, session_ids in chosen.items():
        # Who came of whom stands in the records of all; they are read once.
        for family in store.families([*session_ids]):
            # What came of one of them may have been deleted with it.
            left = [session for session in family if session.folder.exists()]
            if left and (yes or _is_wanted(left)):
                for deleted in store.delete_family(left):
                    notice(f"deleted: {one_line(deleted)}")


def _is_wanted(family: Sequence[StoredSession]) -> bool:
    session, came = family[-1], len(family) - 1
    known = f"{one_line(session.record.session_id)} ({label(session)})"
    rest = f" and {came} that came of it" if came else ""
    return click.confirm(f"Delete {known}{rest}?", default=False, err=True)


@click.command()
@click.option(
    "--older-than", callback=_age, required=True, metavar="AGE", help="12h, 30d or 4w."
)
@yes_option
@flag("--dry-run", help="Say what would be deleted, and delete nothing.")
@all_option
@output_option
def cleanup(
    older_than: float, yes: bool, dry_run: bool, all_projects: bool, output: str
) -> None:
    """Delete sessions in which nothing has happened for a time, with all that came of them.

    Sessions that have a name stay, and those that are open. What modules left of sessions that were not stored, such as
    backups and logs, is deleted as well.
    """
    require_locks()
    before = time.time() - older_than
    places = stores(all_projects=all_projects)
    doomed = [
        session.record.session_id for store in places for session in store.older(before)
    ]
    doomed += [folder.name for store in places for folder in store.left_behind(before)]
    if dry_run or not doomed:
        _report_cleanup(doomed, [], output, done=False)
        return
    if not yes and not click.confirm(
        f"Delete {len(doomed)} sessions?", default=False, err=True
    ):
        return
    results = [store.cleanup(before) for store in places]
    deleted = [session_id for result in results for session_id in result.deleted]
    _report_cleanup(
        deleted,
        [session_id for result in results for session_id in result.open],
        output,
        done=True,
    )


def _report_cleanup(
    sessions: list[str], stayed: list[str], output: str, *, done: bool
) -> None:
    if output == "json":
        say_json(
            {
                "deleted": sessions if done else [],
                "would_delete": [] if done else sessions,
                "open": stayed,
            }
        )
        return
    for session_id in sessions:
        say(one_line(session_id))
    for session_id in stayed:
        notice(f"it is open, and stays: {one_line(session_id)}")
    if not sessions:
        notice("There is no such session.")


def _store_changes(
    store: ProjectSessions, found: StoredSession, **changes: object
) -> None:
    """Change the record of a session that nobody has open."""
    import anyio  # with the runtime: help and wrong usage need none
    import attrs

    async def change() -> None:
        async with store.open(found.record) as writer:
            await writer.write(attrs.evolve(writer.record, **changes))  # type: ignore[arg-type]  # fields by their names

    require_locks()
    anyio.run(change)
