"""One turn of a session, from the prompt to what is written of it."""

from __future__ import annotations

import sys
from contextlib import (
    AbstractContextManager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
)
from functools import partial
from typing import Final

from amplifier.app.base_plans import PlanOptions
from amplifier.app.sessions import OpenSession, open_session
from amplifier.cli._approval import Consent
from amplifier.cli._interrupts import Interrupts, run_interruptible
from amplifier.cli._logs import configure_logs
from amplifier.cli._output import Output, TextAnswer, TurnWriter, make_writer
from amplifier.cli._session_selection import (
    Chosen,
    Wanted,
    choose_session,
    tell_opening,
)
from amplifier.cli._stdin import GivenPrompt
from amplifier.cli._terminal import MessageLines, OutputClosedError

__all__ = ["TURNS", "answer", "play_turn"]

NEW: Final = Wanted()
ASKS: Final = Consent()
TURNS: Final = frozenset({"answers", "children", "tools"})
"""What a command shows of a turn where it writes it as text; of children, what the tool that runs them reports."""


def answer(
    prompt: GivenPrompt,
    options: PlanOptions,
    *,
    form: str,
    backend: str,
    debug: bool,
    consent: Consent = ASKS,
    wanted: Wanted = NEW,
) -> None:
    """Run one turn in a session and write it to standard output.

    What modules print goes to standard error: standard output carries only the answer. What `consent`
    leaves open is asked at the terminal.
    """
    output = Output.standard()
    # Made before the session: a program that reads JSON gets its error as JSON, too.
    writer = make_writer(form, output, wanted.resume or "")
    try:
        with _one_screen(writer), redirect_stdout(sys.stderr):
            configure_logs(debug=debug)
            chosen = choose_session(options, wanted)
            if form != "text":
                writer = make_writer(form, output, chosen.record.session_id)
            if form == "text":
                shown = TURNS
            else:
                shown = frozenset[str]()
            run_interruptible(
                partial(
                    _answer, prompt, chosen, options.first_tool, writer, consent, shown
                ),
                backend,
            )
    # Nobody is left to read how it failed.
    except OutputClosedError:
        raise
    except Exception as error:
        writer.fail(error)
        raise


def _one_screen(writer: TurnWriter) -> AbstractContextManager[object]:
    """Let what goes to standard error begin on a line of its own, where the answer is at the same terminal."""
    if isinstance(writer, TextAnswer) and sys.stdout.isatty() and sys.stderr.isatty():
        return redirect_stderr(writer.beside(sys.stderr))
    return nullcontext()


async def _answer(
    prompt: GivenPrompt,
    chosen: Chosen,
    first_tool: str | None,
    writer: TurnWriter,
    consent: Consent,
    shown: frozenset[str],
    interrupts: Interrupts,
) -> None:
    opening = open_session(
        chosen.composition,
        record=chosen.record,
        store=chosen.store,
        first_tool=first_tool,
        display=MessageLines(),
        approval=consent.approval(),
        accepted=consent.accepted,
        shown=shown,
    )
    async with opening as opened:
        tell_opening(opened)
        if isinstance(writer, TextAnswer):
            # what its rules cost, only text needs
            from amplifier_kit.redaction import redactor_of

            writer.redactor = redactor_of(opened.session.coordinator)
        await play_turn(opened, prompt, writer, interrupts)


async def play_turn(
    opened: OpenSession, prompt: GivenPrompt, writer: TurnWriter, interrupts: Interrupts
) -> None:
    """Run one turn and write its events as they come; Ctrl-C stops it.

    Raises:
        TurnCancelled: it was stopped before it had an answer.
        Exception: whatever ended the turn.
    """
    with interrupts.turn(opened.session):
        async with opened.stream(prompt.text, typed=prompt.typed) as events:
            async for event in events:
                writer.write(event)
