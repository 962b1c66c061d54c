"""`amplifier session export` and `import`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._options import flag, store_options
from amplifier.cli._sessions import (
    about,
    all_option,
    cleaner,
    find,
    project_sessions,
    report_moved,
    require_locks,
)
from amplifier.cli._shell_completion import sessions
from amplifier.cli._tables import output_option, say_json
from amplifier.cli._terminal import notice, one_line, say

if TYPE_CHECKING:
    from amplifier.app.store.export import Form
    from amplifier.app.store.migration import Migration

__all__ = ["export", "import_", "move"]


@click.command()
@click.argument("session", metavar="SESSION", shell_complete=sessions)
@click.option(
    "--output",
    "form",
    type=click.Choice(["json", "markdown", "html"]),
    help="JSON can be imported; Markdown and HTML are for people. Default by the file's name, else json.",
)
@click.option(
    "-o",
    "--to",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it there.",
)
@flag("--as-is", help="Leave secrets in.")
@all_option
def export(
    session: str, form: str | None, file: Path | None, as_is: bool, all_projects: bool
) -> None:
    """Write SESSION to standard output or to a file, without the secrets in it."""
    from amplifier.app.store.export import export as export_session
    from amplifier.app.store.reader import read_history
    from amplifier_kit.files.atomic import write_private

    _, found = find(session, all_projects=all_projects)
    chosen = cast("Form", form or _form_of(file))
    if as_is:
        clean = None
    else:
        clean = cleaner()
    text = export_session(found.record, read_history(found.folder), chosen, clean=clean)
    if file is None:
        say(text.removesuffix("\n"))
        return
    write_private(file, text.encode())
    notice(f"written: {file}")


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@store_options
@output_option
def import_(file: Path, output: str) -> None:
    """Store the session that `session export` wrote into FILE as JSON; print its id.

    FILE may also be the `transcript.jsonl` of a session of the original.

    What it is made of is not taken from the file: it gets the profile and the settings of this project.
    Secrets are taken out of all that is stored.
    """
    import anyio  # with the runtime: help and wrong usage need none

    from amplifier.app.store.imported import import_session

    require_locks()
    store = project_sessions()  # the person's own secrets are looked for as well
    working_dir = str(find_app_dirs().working_dir)
    made = anyio.run(partial(import_session, store, file, working_dir=working_dir))
    if output == "json":
        say_json(about(made))
    else:
        say(one_line(made.record.session_id))


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option(
    "--to-store", "target", metavar="STORE", help="Move the project's sessions there."
)
@click.option(
    "--from-store", "source", metavar="STORE", help="Where they are. [default: files]"
)
@click.option(
    "--session",
    "only",
    metavar="ID",
    multiple=True,
    help="Only this session, with all that came of it; can be repeated.",
)
@click.option(
    "--namespace",
    metavar="NAME",
    help="Whose sessions they are in a database. [default: the project's folder name]",
)
@output_option
def move(
    folder: Path | None,
    target: str | None,
    source: str | None,
    only: tuple[str, ...],
    namespace: str | None,
    output: str,
) -> None:
    """Move the sessions of the project that was in FOLDER to this one, or those of this one to another STORE.

    Sessions belong to a project by its path. When its folder was renamed or moved, they are
    found again after `move FOLDER`.

    A STORE is `files`, or the URL of a database, such as postgresql://user@host/database.
    """
    if (folder is None) == (target is None):
        raise click.UsageError("Name either FOLDER, or a store with --to-store.")
    if folder is not None:
        if source is not None or only or namespace is not None:
            raise click.UsageError(
                "--from-store, --session and --namespace go with --to-store."
            )
        _move_from_folder(folder, output)
    elif target is not None:
        _move_to_store(source or "files", target, only, namespace, output)


def _move_to_store(
    source: str, target: str, only: tuple[str, ...], namespace: str | None, output: str
) -> None:
    import anyio  # with the runtime: help and wrong usage need none

    from amplifier.app.store.choice import migrate_named

    require_locks()
    dirs = find_app_dirs()
    done = anyio.run(
        partial(
            migrate_named,
            dirs,
            source=source,
            target=target,
            only=only,
            namespace=namespace or dirs.root.name,
        )
    )
    if output == "json":
        say_json({**_lists(done), "refused": {**done.refused}})
    else:
        _report_moved(done, "another one has its id there")
        for session_id, reason in done.refused.items():
            notice(f"it stays: {one_line(session_id)}: {one_line(reason, 300)}")
    if done.open or done.taken or done.refused:
        raise click.exceptions.Exit(1)


def _move_from_folder(folder: Path, output: str) -> None:
    from amplifier.app.store.moved import move_sessions, project_at
    from amplifier_sdk.errors import ConfigError, Problem

    require_locks()
    dirs = find_app_dirs()
    source = project_at(folder, dirs)
    if source.state == dirs.state:
        raise ConfigError.of(str(folder), "it is this project", subject="move")
    moved = move_sessions(source, dirs)
    if not (moved.moved or moved.open or moved.taken):
        report_moved()
        problem = Problem(str(folder), "no session of a project in this folder")
        raise ConfigError([problem], subject="move")
    if output == "json":
        say_json(_lists(moved))
    else:
        _report_moved(moved, "this project has one of that id")


def _lists(done: Migration) -> dict[str, list[str]]:
    return {"moved": [*done.moved], "open": [*done.open], "taken": [*done.taken]}


def _report_moved(done: Migration, why_taken: str) -> None:
    for session_id in done.moved:
        say(one_line(session_id))
    for session_id in done.open:
        notice(f"it is open, and stays: {one_line(session_id)}")
    for session_id in done.taken:
        notice(f"{why_taken}, so it stays: {one_line(session_id)}")


def _form_of(file: Path | None) -> str:
    if file is None:
        suffix = ""
    else:
        suffix = file.suffix.lower()
    return {
        ".md": "markdown",
        ".markdown": "markdown",
        ".html": "html",
        ".htm": "html",
    }.get(suffix, "json")
