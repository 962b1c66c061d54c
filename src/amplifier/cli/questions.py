"""`amplifier questions` and `amplifier answer`: what sessions wait for a person to decide."""

from __future__ import annotations

import getpass
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import click

from amplifier.cli._options import debug_option, store_options
from amplifier.cli._sessions import chosen_store
from amplifier.cli._tables import columns, output_option, say_json
from amplifier.cli._terminal import notice, one_line, say

if TYPE_CHECKING:
    from amplifier_sdk.jsontypes import JSONValue
    from amplifier_sdk.stores import SessionStore, StoredQuestion

__all__ = ["answer", "questions"]

T = TypeVar("T")

_WAITS: Final = "waits"


@click.group(invoke_without_command=True)
@store_options
@debug_option
@click.pass_context
def questions(ctx: click.Context) -> None:
    """Show what sessions of this project wait for you to decide; `amplifier answer` decides it.

    Without a verb, list them.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(_list)


@questions.command("list")
@click.option("--all", "is_all", is_flag=True, help="Also those that take no answer.")
@store_options
@output_option
@debug_option
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
        (each.question_id, _state(each), each.session_id[:8], one_line(each.prompt, 80))
        for each in found
    ]
    for line in columns(rows):
        say(line)


@questions.command("show")
@click.argument("question_id", metavar="ID")
@store_options
@output_option
@debug_option
def _show(question_id: str, output: str) -> None:
    """Show all of a question: the call, its arguments, and what was answered."""
    from amplifier_sdk.legible import escaped

    found = next(
        (each for each in _questions() if each.question_id == question_id), None
    )
    if found is None:
        raise click.ClickException(f"There is no question {question_id!r}")
    if output == "json":
        say_json(_as_json(found))
        return
    # what a model wrote must not obey the terminal
    say(escaped(found.prompt))
    for line in _call_lines(found.details):
        say(escaped(line, kept=""))
    say(f"session    {found.session_id}")
    say(f"options    {', '.join(found.options)}")
    say(f"state      {_state(found)}")


@click.command()
@click.argument("question_id", metavar="ID")
@click.argument("decision", metavar="ANSWER")
@store_options
@debug_option
def answer(question_id: str, decision: str) -> None:
    """Answer question ID with ANSWER, one of its options: `allow` or `deny`.

    The first answer counts, and allows one call as it was shown; the same answer again changes nothing. The session
    acts on it when it is resumed.
    """
    by = getpass.getuser()
    answered = _with_store(lambda store: store.answer(question_id, decision, by=by))
    say(f"{answered.question_id}: {answered.answer}, by {answered.answered_by}")


def _questions() -> tuple[StoredQuestion, ...]:
    return _with_store(lambda store: store.questions())


def _with_store(use: Callable[[SessionStore], Awaitable[T]]) -> T:
    """Open the store that the person chose for one use."""
    import anyio  # with the runtime: help and wrong usage need none

    from amplifier.app.directories import Places

    choice = chosen_store()

    async def used() -> T:
        store = await choice.opened(Places.find())
        try:
            return await use(store)
        finally:
            await store.aclose()

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
