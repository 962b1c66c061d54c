"""`amplifier session`: the stored sessions, what was said in them, and what can be done with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from amplifier.cli._options import flag
from amplifier.cli._session_changes import cleanup, fork, remove, rename, tag
from amplifier.cli._session_files import export, import_, move
from amplifier.cli._session_repair import diagnose, repair
from amplifier.cli._sessions import (
    about,
    all_option,
    cleaner,
    find,
    label,
    report_moved,
    shared_sessions,
    shown_text,
    stores,
    when,
)
from amplifier.cli._shell_completion import sessions
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import notice, one_line, say, visible

if TYPE_CHECKING:
    from amplifier.app.store.families import Branch
    from amplifier.app.store.stored import StoredSession
    from amplifier_sdk.jsontypes import JSONObject

__all__ = ["session"]

_LIMIT = click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many sessions at most.",
)
_TIMES = ("created", "updated")


@click.group()
def session() -> None:
    """Find, show, change, copy, move and repair stored sessions.

    SESSION is an id, the beginning of one, or a name.
    """


for _command in (
    *(cleanup, diagnose, export, fork, import_, move, remove, rename, repair, tag),
):
    session.add_command(_command)


@session.command("list")
@_LIMIT
@flag("--children", help="List those that other sessions made as well.")
@click.option("--tag", metavar="WORD", help="Only sessions with this tag.")
@all_option
@output_option
def _list(
    limit: int, children: bool, tag: str | None, all_projects: bool, output: str
) -> None:
    """List the sessions, the latest first."""
    from amplifier.app.store.overview import latest_sessions

    roots = [store.sessions for store in stores(all_projects=all_projects)]
    found = latest_sessions(roots, limit, children=children, tag=tag)
    if output == "json":
        say_json([about(session) for session in found.sessions])
    elif found.sessions:
        _say_table(found.sessions, with_project=all_projects)
    else:
        notice("There is no session.")
        report_moved()
    if found.count > limit:
        notice(f"{found.count - limit} more; --limit {found.count} shows them.")
    for folder, problem in found.damaged:
        notice(
            f"warning: {one_line(str(folder), 300)} is damaged. {one_line(problem, 300)}"
        )


@session.command("show")
@click.argument("name", metavar="SESSION", shell_complete=sessions)
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="How many messages, in text.",
)
@flag("-d", "--detail", help="Show what modules put into the history as well.")
@all_option
@output_option
def _show(name: str, limit: int, detail: bool, all_projects: bool, output: str) -> None:
    """Show who SESSION is and what was said in it, without secrets."""
    from amplifier.app.store.reader import conversation, read_history, words_of

    _, found = find(name, all_projects=all_projects)
    clean = cleaner()
    history = read_history(found.folder)
    known = about(found)
    is_open = known["state"] == "open"
    damage = history.problems(is_open=is_open)
    if output == "json":
        lines = [
            line for line in history.lines if detail or conversation([line.message])
        ]
        said = [{"turn": line.turn, "message": clean(line.message)} for line in lines]
        say_json(
            {
                **known,
                "interrupted": history.interrupted is not None,
                "damage": [{"file": file, "problem": why} for file, why in damage],
                "messages": said,
            }
        )
        return
    for field, value in known.items():
        if value:
            if field in _TIMES and isinstance(value, float):
                text = when(value)
            elif isinstance(value, list):
                text = one_line(", ".join(map(str, value)), 300)
            else:
                text = one_line(str(value), 300)
            say(f"{field}: {text}")
    if detail:
        messages = history.messages
    else:
        messages = conversation(history.messages)
    for message in messages[len(messages) - min(limit, len(messages)) :]:
        say("")
        who = " ".join(
            filter(None, (str(message.get("role")), str(message.get("name") or "")))
        )
        say(f"{one_line(who)}:")
        say(visible(words_of(clean(message))))
    if history.interrupted is not None:
        notice("Its last turn runs." if is_open else "Its last turn was interrupted.")
    _report_damage(found, damage)


def _report_damage(session: StoredSession, damage: Sequence[tuple[str, str]]) -> None:
    for file, problem in damage:
        notice(f"warning: {file} is damaged. {one_line(problem, 300)}")
    if damage:
        name = one_line(session.record.session_id)
        notice(f"'amplifier session repair {name}' moves it aside.")


@session.command("search")
@click.argument("text")
@_LIMIT
@all_option
@output_option
def _search(text: str, limit: int, all_projects: bool, output: str) -> None:
    """Find the sessions in which TEXT stands: in ids, names, tags, prompts, or in what was said.

    Exit with 1 when there is none.
    """
    from amplifier.app.store.search import search_folders

    shared = shared_sessions()
    if shared is not None:
        shared.read_matches(text, limit)
        roots = [shared.sessions]
    else:
        roots = [store.sessions for store in stores(all_projects=all_projects)]
    found = search_folders(roots, text, limit=limit)
    if output == "json":
        say_json(
            [
                {
                    "session_id": hit.session.record.session_id,
                    "name": hit.session.record.name,
                    "place": hit.place,
                    "message": hit.message or None,
                    "excerpt": shown_text(hit.excerpt),
                }
                for hit in found.hits
            ]
        )
    elif found.hits:
        rows = [
            (
                one_line(hit.session.record.session_id),
                when(hit.session.record.latest),
                f"message {hit.message}" if hit.message else hit.place,
                one_line(shown_text(hit.excerpt), 160),
            )
            for hit in found.hits
        ]
        say_table(("ID", "UPDATED", "IN", "TEXT"), rows)
    if found.unread:
        notice(
            f"Not searched, since too large or damaged: {one_line(', '.join(found.unread), 300)}"
        )
    if not found.hits:
        notice("Nothing was found.")
        raise click.exceptions.Exit(1)


@session.command("tree")
@click.argument("name", metavar="[SESSION]", required=False, shell_complete=sessions)
@_LIMIT
@all_option
@output_option
def _tree(name: str | None, limit: int, all_projects: bool, output: str) -> None:
    """Show SESSION, or the latest ones, with the sessions that they made."""
    from amplifier.app.store.families import family_of, grow

    sessions = [
        session
        for store in stores(all_projects=all_projects)
        for session in store.all(children=True)
    ]
    if name is not None:
        _, chosen = find(name, all_projects=all_projects)
        sessions = family_of(chosen.record.session_id, sessions)
    trees = grow(sessions)
    if output == "json":
        say_json([_branch_to_dict(tree) for tree in trees[:limit]])
        return
    for tree in trees[:limit]:
        for line in _draw(tree):
            say(line)
    if len(trees) > limit:
        notice(f"{len(trees) - limit} more; --limit {len(trees)} shows them.")
    if not trees:
        notice("There is no session.")


def _say_table(sessions: Sequence[StoredSession], *, with_project: bool) -> None:
    project = ("PROJECT",) if with_project else ()
    rows = []
    for session in sessions:
        record = session.record
        where = (one_line(record.working_dir, 40),) if with_project else ()
        name, turns = one_line(record.session_id), str(record.turn_count)
        rows.append((name, when(record.latest), turns, *where, _known(session)))
    say_table(("ID", "UPDATED", "TURNS", *project, "NAME OR PROMPT"), rows)


def _known(session: StoredSession) -> str:
    """Return how a person knows a session, after how it stands where that is worth a word."""
    from amplifier.app.store.states import state_of

    state = state_of(session.folder)
    if state == "idle":
        return label(session)
    return f"({state}) {label(session)}"


def _branch_to_dict(tree: Branch) -> JSONObject:
    return {
        **about(tree.session),
        "children": [_branch_to_dict(branch) for branch in tree.branches],
    }


def _draw(tree: Branch) -> Iterator[str]:
    """Draw a tree; it may be deeper than Python calls."""
    waiting = [(tree, "", "")]
    while waiting:
        branch, first, rest = waiting.pop()
        record = branch.session.record
        if record.agent_name:
            who = f" [{one_line(record.agent_name)}]"
        else:
            who = ""
        origin = record.forked_from
        if origin is not None:
            forked = f" (from {one_line(str(origin.get('session_id')))})"
        else:
            forked = ""
        yield f"{first}{one_line(record.session_id)}{who}{forked}  {_known(branch.session)}".rstrip()
        last = len(branch.branches) - 1
        for at, child in reversed(list(enumerate(branch.branches))):
            if at == last:
                waiting.append((child, f"{rest}└─ ", f"{rest}   "))
            else:
                waiting.append((child, f"{rest}├─ ", f"{rest}│  "))
