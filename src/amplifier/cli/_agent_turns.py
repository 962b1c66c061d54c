"""One turn of an `Agent` of the person's own, from the prompt to what is written of it."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Never

import click

from amplifier.agent.agent import Agent
from amplifier.app.sessions.given_prompts import GivenPrompt
from amplifier.cli._approval import Consent
from amplifier.cli._interrupts import Interrupts, run_interruptible
from amplifier.cli._logs import configure_logs
from amplifier.cli._output import Output, TextAnswer, TurnWriter, make_writer
from amplifier.cli._terminal import MessageLines, OutputClosedError
from amplifier_kit.event_json import with_value
from amplifier_sdk.assessments import ACCEPTED
from amplifier_sdk.streaming import TurnFinished

__all__ = ["answer_by_agent"]


def answer_by_agent(
    prompt: GivenPrompt,
    place: str,
    *,
    form: str,
    backend: str,
    debug: bool,
    consent: Consent,
) -> None:
    """Run one turn of an agent and write it to standard output; what `consent` leaves open is asked at the terminal.

    Args:
        prompt: what the person asks.
        place: where the agent is, as `package.module:name`.
        form: how the turn is written.
        backend: the event loop.
        debug: whether tracebacks are shown.
        consent: what is allowed without a question.

    Raises:
        click.UsageError: there is no agent in that place.
        Exception: whatever ended the turn.
    """
    writer = make_writer(form, Output.standard(), "")
    try:
        with redirect_stdout(sys.stderr):
            configure_logs(debug=debug)
            agent = find_agent(place)
            run_interruptible(partial(_answer, agent, prompt, writer, consent), backend)
    except (OutputClosedError, click.UsageError):
        raise
    except Exception as error:
        writer.fail(error)
        raise


def find_agent(place: str) -> Agent[Never, object]:
    """Import an agent, from what is installed or else from the working directory.

    Raises:
        click.UsageError: there is none in that place.
        Exception: whatever the module raises when it is imported.
    """
    module_name, colon, name = place.partition(":")
    if not (module_name and colon and name):
        raise click.UsageError(f"--agent expects MODULE:NAME; got {place!r}")
    # last: what stands in the working directory takes no other module's place
    folder = str(Path.cwd())
    sys.path.append(folder)
    try:
        found: object = import_module(module_name)
    except ModuleNotFoundError as error:
        sys.path.remove(folder)
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise  # a module that this one imports
        raise click.UsageError(
            f"--agent: there is no module {module_name!r} here or among what is installed"
        ) from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Agent):
        raise click.UsageError(f"--agent: {name!r} in {module_name!r} is no Agent")
    return found


async def _answer(
    agent: Agent[Never, object],
    prompt: GivenPrompt,
    writer: TurnWriter,
    consent: Consent,
    interrupts: Interrupts,
) -> None:
    is_checked = agent.output_schema is not None
    if isinstance(writer, TextAnswer):
        writer.is_checked = is_checked
    opening = agent.session(
        approval_system=consent.approval(), display_system=MessageLines()
    )
    opening.session.coordinator.register_capability(ACCEPTED, consent.accepted)
    async with opening:
        with interrupts.turn(opening.session):
            async with opening.stream(prompt.shown) as events:
                async for event in events:
                    if is_checked and isinstance(event, TurnFinished):
                        writer.write(with_value(event, events.result.output))
                    else:
                        writer.write(event)
