"""`amplifier trace`: a page that shows what happened in a session."""

from __future__ import annotations

from pathlib import Path

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._logfiles import choose_logs, report_damage
from amplifier.cli._options import flag
from amplifier.cli._shell_completion import sessions
from amplifier.cli._terminal import notice, say

__all__ = ["trace"]


@click.command()
@click.argument("session", required=False, metavar="[ID]", shell_complete=sessions)
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A log, wherever it stands.",
)
@click.option(
    "-o",
    "--to",
    "out",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="Where the page goes, - for standard output; default trace.html beside the log.",
)
@flag("--open", "opens", help="Open the page in the browser.")
def trace(
    session: str | None, file: Path | None, out: Path | None, opens: bool
) -> None:
    """Write a page that shows a session, with those it made; default the latest of this project.

    ID is its id, the beginning of it, or its name. The page is one file and asks no host for anything. Its path goes
    to standard output.
    """
    from amplifier.app.logs.library import LogLibrary
    from amplifier.app.traces.page import PAGE_FILE, read_trace, render_page, write_page

    to_stdout = out is not None and str(out) == "-"
    if session is not None and file is not None:
        raise click.UsageError("Name a session or --file, not both.")
    if opens and to_stdout:
        raise click.UsageError("--open needs a file, and --to - writes none.")
    names, files = (
        [session] if session is not None else [],
        [file] if file is not None else [],
    )
    logs = choose_logs(LogLibrary(find_app_dirs()), names, files, tree=True)
    found = read_trace(logs)
    report_damage(found.damaged)
    if not found.records:
        notice("There is no record in the log.")
    if to_stdout:
        say(render_page(found).rstrip("\n"))
        return
    path = (out or logs[0].path.with_name(PAGE_FILE)).absolute()
    write_page(found, path)
    say(str(path))
    if opens and click.launch(path.as_uri()):
        notice("No browser could be opened; open the file yourself.")
