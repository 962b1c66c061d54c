"""`amplifier logs`: what happened in sessions, as lines that are read or searched."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._logfiles import choose_logs, report_damage
from amplifier.cli._options import flag
from amplifier.cli._shell_completion import sessions
from amplifier.cli._terminal import inert_json, say

if TYPE_CHECKING:
    from amplifier.app.logs.library import LogLibrary, SessionLogFiles
    from amplifier.app.logs.merge import Logs
    from amplifier.app.logs.selection import LineFilter
    from amplifier_kit.logs.records import LogRecord

__all__ = ["logs"]

_FOLLOWED = 10


@click.command()
@click.option(
    "-s",
    "--session",
    "names",
    multiple=True,
    metavar="ID",
    help="A session; may be given several times.",
    shell_complete=sessions,
)
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="A log, wherever it stands.",
)
@flag("--tree", help="The sessions that these made as well.")
@flag("-f", "--follow", help="Show new records until Ctrl-C.")
@click.option(
    "-e",
    "--event",
    "events",
    multiple=True,
    metavar="GLOB",
    help="Only these events, such as 'tool:*'.",
)
@click.option(
    "--level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="debug",
    help="The least.",
)
@click.option(
    "--filter",
    "terms",
    multiple=True,
    metavar="TERM",
    help="Only lines with this text, or key=value.",
)
@click.option(
    "--since", metavar="TIME", help="From 10m ago on, or from 2026-01-31T08:00 on."
)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help="Only the last N; 10 with --follow.",
)
@flag("--stats", help="Counts, tokens, cost and time instead of lines.")
@click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="For people, or a JSON value a line.",
)
@click.option("--json", "output", flag_value="json", help="Short for --output json.")
def logs(
    names: tuple[str, ...],
    files: tuple[Path, ...],
    tree: bool,
    follow: bool,
    events: tuple[str, ...],
    level: str,
    terms: tuple[str, ...],
    since: str | None,
    limit: int | None,
    stats: bool,
    output: str,
) -> None:
    """Show what happened in a session; default the latest one of this project.

    ID is a session's id, the beginning of it, or its name.
    """
    from amplifier.app.logs.library import LogLibrary
    from amplifier.app.logs.merge import Logs
    from amplifier.app.logs.selection import LineFilter, parse_since

    if follow and stats:
        raise click.UsageError(
            "--follow goes on for ever, so that --stats would never come."
        )
    selection = LineFilter(
        events=events,
        level=level,  # type: ignore[arg-type]  # click checked that it is a level
        terms=terms,
        since=None if since is None else parse_since(since),
    )
    library = LogLibrary(find_app_dirs())
    chosen = choose_logs(library, names, files, tree=tree)
    with Logs.take([log.path for log in chosen]) as taken:
        if stats:
            _show_statistics(taken, selection, limit, as_json=output == "json")
        else:
            writer = _Writer(
                has_sessions=len(chosen) > 1 or tree, as_json=output == "json"
            )
            if follow and limit is None and since is None:
                limit = _FOLLOWED
            for record in taken.select(selection, limit):
                writer.write(record)
            if follow:
                report_damage(taken.damaged)
                _follow(taken, selection, writer, library if tree else None, chosen)
                return
        taken.count_torn()
        report_damage(taken.damaged)


class _Writer:
    def __init__(self, *, has_sessions: bool, as_json: bool) -> None:
        from amplifier.cli._loglines import LogLines

        if as_json:
            self._lines = None
        else:
            self._lines = LogLines.standard(has_sessions=has_sessions)

    def write(self, record: LogRecord) -> None:
        if self._lines is not None:
            say(self._lines.line(record))
            return
        from amplifier_kit.logs.records import encode_record

        say(inert_json(encode_record(record).decode().rstrip("\n")))


def _follow(
    taken: Logs,
    selection: LineFilter,
    writer: _Writer,
    library: LogLibrary | None,
    chosen: Sequence[SessionLogFiles],
) -> None:
    """Write what comes until somebody interrupts; with a library also of the sessions that are made meanwhile."""
    import anyio

    from amplifier.app.logs.follower import follow

    begun = taken.followed()

    def find() -> list[SessionLogFiles]:
        if library is not None:
            return [member for log in chosen for member in library.family(log)]
        return []

    async def write() -> None:
        async with aclosing(follow(find, begun=begun)) as looks:
            async for lines in looks:
                for line in lines:
                    if line.record is None:
                        report_damage(1)
                    elif selection.wants(line):
                        writer.write(line.record)

    try:
        anyio.run(write)
    finally:
        for log in begun:
            log.close()


def _show_statistics(
    taken: Logs, selection: LineFilter, limit: int | None, *, as_json: bool
) -> None:
    import json

    from amplifier.app.logs.statistics import LogStatistics
    from amplifier.cli._loglines import statistics_lines

    statistics = LogStatistics()
    for record in taken.select(selection, limit):
        statistics.add(record)
    if as_json:
        say(json.dumps({**statistics.to_dict(), "damaged": taken.damaged}))
        return
    for line in statistics_lines(statistics):
        say(line)
