"""`amplifier session diagnose` and `repair`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import click

from amplifier.cli._sessions import (
    file_stores,
    find_broken,
    projects_option,
    require_locks,
    shown_text,
)
from amplifier.cli._shell_completion import sessions
from amplifier.cli._tables import output_option, say_json
from amplifier.cli._terminal import notice, one_line, say

if TYPE_CHECKING:
    from amplifier.app.store.repair import Diagnosis

__all__ = ["diagnose", "repair"]


@click.command()
@click.argument("name", metavar="[SESSION]", required=False, shell_complete=sessions)
@projects_option
@output_option
@click.pass_context
def diagnose(
    ctx: click.Context, name: str | None, all_projects: bool, output: str
) -> None:
    """Say what is wrong with SESSION, or with all of them; exit with 1 when something is."""
    from amplifier.app.store.repair import diagnose as diagnose_session
    from amplifier.app.store.repair import diagnose_all

    if name is None:
        found = [
            each
            for store in file_stores(all_projects=all_projects)
            for each in diagnose_all(store)
        ]
    else:
        found = [diagnose_session(*find_broken(name, all_projects=all_projects))]
    unsound = [each for each in found if not each.is_sound]
    if output == "json":
        say_json([each.to_dict() for each in found])
    else:
        for each in unsound:
            _say(each)
        if not unsound:
            notice("Nothing is wrong.")
    ctx.exit(1 if unsound else 0)


@click.command()
@click.argument("name", metavar="SESSION", shell_complete=sessions)
@projects_option
@output_option
def repair(name: str, all_projects: bool, output: str) -> None:
    """Make SESSION whole as far as can be, and say what was wrong.

    What is damaged is moved into a file beside it, the turn that was interrupted is closed, and the history becomes
    one that providers accept.
    """
    import anyio  # with the runtime: help and wrong usage need none

    from amplifier.app.store.repair import repair as repair_session

    require_locks()
    store, session_id = find_broken(name, all_projects=all_projects)
    found = anyio.run(partial(repair_session, store, session_id))
    if output == "json":
        say_json(found.to_dict())
    elif found.is_sound:
        notice("Nothing was wrong.")
    else:
        _say(found)
        notice("It is repaired.")


def _say(found: Diagnosis) -> None:
    say(f"{one_line(found.session_id)}:")
    for line in _problems(found):
        say(f"  {one_line(line, 300)}")


def _problems(found: Diagnosis) -> Iterator[str]:
    from amplifier.app.sessions.selection import call_notices

    if found.record is not None:
        yield f"its record: {found.record}"
    for file, problem in found.damage:
        yield f"{file}: {problem}"
    turn = found.interrupted
    if turn is not None:
        yield f"The last turn was interrupted: {shown_text(turn.prompt)}"
        yield from call_notices(turn)
    yield from map(str, found.findings)
