"""`amplifier questions` and `amplifier answer`: what sessions wait for a person to decide."""

from __future__ import annotations

import getpass
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import click

from amplifier.cli._options import (
    answer_options,
    flag,
    is_debug,
    session_choices,
    store_options,
)
from amplifier.cli._question_texts import SHOWN_ID, answer_from
from amplifier.cli._sessions import chosen_store
from amplifier.cli._tables import columns, output_option, say_json
from amplifier.cli._terminal import notice, one_line, say

if TYPE_CHECKING:
    from amplifier.app.sessions.later_turns import LaterTurn
    from amplifier_sdk.jsontypes import JSONValue
    from amplifier_sdk.stores import SessionStore, StoredQuestion

__all__ = ["answer", "questions"]

T = TypeVar("T")

_WAITS: Final = "waits"
_MIN: Final = 6
"""Characters by which a question may be named."""


@click.group(invoke_without_command=True)
@store_options
@click.pass_context
def questions(ctx: click.Context) -> None:
    """Show what sessions of this project wait for you to decide; `amplifier answer` decides it.

    Without a verb, list them.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(_list)


@questions.command("list")
@flag("--all", "is_all", help="Also those that take no answer.")
@store_options
@output_option
def _list(is_all: bool, output: str) -> None:
    """List the questions that wait for an answer."""
    found = [each for each in _questions() if is_all or _state(each) == _WAITS]
    if output == "json":
        say_json([_as_json(each) for each in found])
        return
    if not found:
        notice("No question waits for an answer.")
        return
    rows = [
        (
            each.question_id[:SHOWN_ID],
            _state(each),
            each.session_id[:8],
            one_line(each.prompt, 80),
        )
        for each in found
    ]
    for line in columns(rows):
        say(line)


@questions.command("show")
@click.argument("question_id", metavar="ID")
@store_options
@output_option
def _show(question_id: str, output: str) -> None:
    """Show all of a question: the call, its arguments, and what was answered."""
    from amplifier_sdk.legible import escaped

    found = _named(_questions(), question_id)
    if output == "json":
        say_json(_as_json(found))
        return
    # what a model wrote must not obey the terminal
    say(escaped(found.prompt))
    for line in _call_lines(found.details):
        say(escaped(line, allowed=""))
    say(f"session    {found.session_id}")
    if found.schema is None:
        say(escaped(f"options    {', '.join(found.options)}", allowed=""))
    else:
        schema = json.dumps(dict(found.schema), ensure_ascii=False)
        say(escaped(f"answer     {schema}", allowed=""))
    say(f"state      {_state(found)}")


@click.command()
@click.argument("question_id", metavar="ID")
@click.argument("answer", metavar="ANSWER", required=False)
@flag("--decline", help="Do not answer what a tool asks.")
@flag("--no-run", help="Only store the answer; do not continue the turn.")
@answer_options
@click.pass_context
def answer(
    ctx: click.Context,
    question_id: str,
    answer: str | None,
    decline: bool,
    no_run: bool,
) -> None:
    """Answer question ID with ANSWER: `allow` or `deny`, one of its options, or what a tool asks for.

    The first answer counts, and allows one call as it was shown; the same answer again changes nothing. Then the turn
    continues here, unless it asks more that waits, or a server has it. ID may be the beginning of one.
    """
    if (answer is None) is not decline:
        raise click.UsageError("give ANSWER, or --decline")
    answered, later = _with_stores(
        lambda stores: _answered(stores, question_id, answer)
    )
    shown = answered.question_id[:SHOWN_ID]
    notice(f"{shown}: {one_line(str(answered.answer), 200)}, by {answered.answered_by}")
    if later is not None and not no_run:
        _continue(ctx, answered.session_id, later)


async def _answered(
    stores: Sequence[SessionStore], question_id: str, text: str | None
) -> tuple[StoredQuestion, LaterTurn | None]:
    """Answer a question; return it, and the turn that now waits for nothing more and is to be continued here."""
    from amplifier.app.questions.stored_approvals import HELD
    from amplifier.app.sessions.later_turns import LaterTurn

    known = await _known(stores)
    found = _named([*known.values()], question_id)
    store = await _store_of(stores, found)
    answer = answer_from(found, text)
    answered = await store.answer(found.question_id, answer, by=getpass.getuser())
    later = await LaterTurn.asking(store, answered)
    if later is None or answered.details.get(HELD):
        return answered, None  # whoever runs it reads the answer
    for each in await later.open_questions(store, answered.session_id):
        message = one_line(each.prompt, 200)
        notice(f"question {each.question_id[:SHOWN_ID]} waits as well: {message}")
        return answered, None
    return answered, later


def _named(known: Sequence[StoredQuestion], name: str) -> StoredQuestion:
    """Return the question of an id, or of its beginning.

    Raises:
        click.ClickException: there is none, or several.
    """
    found = [each for each in known if each.question_id == name] or [
        each
        for each in known
        if len(name) >= _MIN and each.question_id.startswith(name)
    ]
    if not found:
        raise click.ClickException(f"There is no question {name!r:.80}")
    if len(found) > 1:
        raise click.ClickException(f"Several questions begin with {name!r:.80}")
    return found[0]


def _continue(ctx: click.Context, session_id: str, later: LaterTurn) -> None:
    """Continue the turn of a session, as `run` would."""
    # with the runtime: help and wrong usage need none
    from amplifier.app.plans.base_plans import PlanOptions
    from amplifier.app.sessions.given_prompts import GivenPrompt
    from amplifier.app.sessions.selection import SessionSelector
    from amplifier.cli._approval import Consent
    from amplifier.cli._turns import answer as play
    from amplifier_kit.files.locks import LockedError
    from amplifier_sdk.assessments import EDITS
    from amplifier_sdk.errors import LeaseHeldError

    choices = session_choices(ctx)
    try:
        play(
            GivenPrompt.of(later.prompt, later.typed),
            PlanOptions(),
            form=choices.output,
            backend=choices.backend,
            debug=is_debug(ctx),
            consent=Consent(edits=EDITS in later.accepted),
            wanted=SessionSelector(resume=session_id, choice=chosen_store()),
            schema=later.schema,
            later=later,
        )
    except (LockedError, LeaseHeldError) as error:
        notice(f"{error}. The answer is stored: give it again to continue the turn")


def _questions() -> tuple[StoredQuestion, ...]:
    return tuple(_with_stores(_known).values())


async def _known(stores: Sequence[SessionStore]) -> Mapping[str, StoredQuestion]:
    """Return what is asked a person, by id; the first store knows best what became of a question."""
    found: dict[str, StoredQuestion] = {}
    for store in stores:
        for each in await store.questions():
            if "key" in each.details:  # a server also has what cancels a turn
                found.setdefault(each.question_id, each)
    return found


async def _store_of(
    stores: Sequence[SessionStore], question: StoredQuestion
) -> SessionStore:
    for store in stores:
        asked = await store.questions(question.session_id)
        if any(each.question_id == question.question_id for each in asked):
            return store
    raise AssertionError  # one of them had it


def _with_stores(use: Callable[[Sequence[SessionStore]], Awaitable[T]]) -> T:
    """Open the store that the person chose for one use; before a project's files, those of its server."""
    import anyio  # with the runtime: help and wrong usage need none

    from amplifier.app.directories import AppDirs
    from amplifier.app.store.choice import FILES
    from amplifier.app.store.file_store import FileSessionStore
    from amplifier.server.stores import DEFAULT_TENANT, ServerStores

    choice, dirs = chosen_store(), AppDirs.find()

    async def used() -> T:
        opened = await choice.opened(dirs)
        stores, served = [opened], ServerStores(FILES, dirs)
        try:
            if isinstance(opened, FileSessionStore):
                stores.insert(0, (await served.tenant(DEFAULT_TENANT)).store)
            return await use(stores)
        finally:
            await served.aclose()
            await opened.aclose()

    return anyio.run(used)


def _call_lines(details: Mapping[str, JSONValue]) -> Iterator[str]:
    """Describe the call that is asked about; nothing where no tool is."""
    agents = details.get("agents")
    if isinstance(agents, Sequence) and agents:
        yield f"agent      {' > '.join(map(str, agents))}"
    if "tool" not in details:
        return
    arguments = json.dumps(details.get("arguments"), ensure_ascii=False)
    yield f"tool       {details['tool']}"
    yield f"arguments  {arguments}"
    yield f"sha256     {details.get('arguments_sha256')}"
    roles = details.get("roles")
    if isinstance(roles, Sequence) and roles:
        yield f"answered by {' or '.join(map(str, roles))}"


def _state(asked: StoredQuestion) -> str:
    if asked.answer is not None:
        return f"{asked.answer}, by {asked.answered_by}"
    if asked.is_void:
        return "void"
    if asked.expires is not None and asked.expires <= time.time():
        return "expired"
    return _WAITS


def _as_json(asked: StoredQuestion) -> object:
    from amplifier_sdk.convert import to_json

    return to_json(asked)
