"""One turn of a session, from the prompt to what is written of it."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import partial
from uuid import uuid4

from amplifier.app.composition import Composition, compose
from amplifier.app.places import Places
from amplifier.app.plans import PlanOptions
from amplifier.app.sessions import OpenSession, open_session
from amplifier.app.settings.secrets import SecretStore
from amplifier.cli._approval import AllowAll, TerminalApproval
from amplifier.cli._interrupts import Interrupts, run_interruptible
from amplifier.cli._logs import configure_logs
from amplifier.cli._output import Output, TurnWriter, make_writer
from amplifier.cli._terminal import MessageLines, OutputClosedError, notice, one_line
from amplifier_sdk.contracts import ApprovalSystem

__all__ = ["answer", "compose_here", "play_turn", "tell_failures"]


def answer(prompt: str, options: PlanOptions, *, form: str, backend: str, debug: bool, allow: bool = False) -> None:
    """Run one turn in a session of its own and write it to standard output.

    What modules print goes to standard error: standard output carries only the answer. With `allow` whatever
    hooks ask the person is allowed.
    """
    session_id = str(uuid4())
    writer = make_writer(form, Output.standard(), session_id)
    configure_logs(debug=debug)
    try:
        with redirect_stdout(sys.stderr):
            composition = compose_here(options)
            approval = AllowAll() if allow else TerminalApproval()
            turn = partial(_answer, prompt, composition, options.first_tool, session_id, writer, approval)
            run_interruptible(turn, backend)
    except OutputClosedError:
        raise
    except Exception as error:
        writer.fail(error)
        raise


def compose_here(options: PlanOptions) -> Composition:
    """Put a session together for the working directory; the person's secrets are in the environment afterwards.

    What a project brings and nobody trusted is told and left out.

    Raises:
        ConfigError: as `compose`.
    """
    places = Places.find()
    SecretStore.of(places).enter()
    composition = compose(options, places)
    for decision in composition.project.withheld:
        notice(f"warning: going on without the {decision.kind} of this folder. {one_line(decision.reason, 300)}")
    if composition.project.withheld:
        notice("'amplifier trust' shows what they are and asks.")
    return composition


async def _answer(
    prompt: str,
    composition: Composition,
    first_tool: str | None,
    session_id: str,
    writer: TurnWriter,
    approval: ApprovalSystem,
    interrupts: Interrupts,
) -> None:
    opened = open_session(
        composition,
        session_id=session_id,
        first_tool=first_tool,
        display=MessageLines(),
        approval=approval,
    )
    async with opened as session:
        tell_failures(session)
        await play_turn(session, prompt, writer, interrupts)


def tell_failures(opened: OpenSession) -> None:
    """Tell which modules of the plan the session goes on without."""
    for failure in opened.session.failures:
        notice(f"warning: going on without a module. {one_line(str(failure), 1000)}")


async def play_turn(opened: OpenSession, prompt: str, writer: TurnWriter, interrupts: Interrupts) -> None:
    """Run one turn, with what the prompt mentions, and write its events as they come; Ctrl-C stops it.

    Raises:
        TurnCancelled: it was stopped before it had an answer.
        Exception: whatever ended the turn.
    """
    with interrupts.turn(opened.session):
        await opened.add_mentioned(prompt)
        async with opened.session.stream(prompt) as events:
            async for event in events:
                writer.write(event)
