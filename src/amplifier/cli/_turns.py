"""One turn of a session, from the prompt to what is written of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
)
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.sessions.given_prompts import GivenPrompt
from amplifier.app.sessions.opened import OpenSession, open_session
from amplifier.app.sessions.selection import SelectedSession, SessionSelector
from amplifier.cli._approval import Consent
from amplifier.cli._interrupts import Interrupts, run_interruptible
from amplifier.cli._logs import configure_logs
from amplifier.cli._output import Output, TextAnswer, TurnWriter, make_writer
from amplifier.cli._people import plain
from amplifier.cli._question_texts import report_question
from amplifier.cli._session_selection import choose_session, report_opening
from amplifier.cli._silence import SilenceReport
from amplifier.cli._terminal import MessageLines, OutputClosedError, notice, one_line
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.events import PROVIDER_RETRY, ProviderRetry
from amplifier_sdk.jsontypes import JSONValue

if TYPE_CHECKING:
    from pathlib import Path

    from amplifier.app.sessions.later_turns import LaterTurn

__all__ = ["TURNS", "answer", "read_schema"]

NEW: Final = SessionSelector()
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
    wanted: SessionSelector = NEW,
    schema: Mapping[str, JSONValue] | None = None,
    later: LaterTurn | None = None,
) -> None:
    """Run one turn in a session and write it to standard output.

    What modules print goes to standard error: standard output carries only the answer. What `consent`
    leaves open is asked at the terminal, or with `later` stored: the turn is that one. With
    `schema`, a JSON Schema, the answer is JSON that fits.
    """
    output = Output.standard()
    # Made before the session: a program that reads JSON gets its error as JSON, too.
    writer = make_writer(
        form, output, wanted.resume or "", is_checked=schema is not None
    )
    try:
        with _one_screen(writer), redirect_stdout(sys.stderr):
            configure_logs(debug=debug)
            chosen = choose_session(options, wanted)
            if later is not None and chosen.store is None:
                problem = "the settings say that sessions are not stored; use --keep"
                raise ConfigError([Problem("--ask-later", problem)], subject="session")
            if form != "text":
                writer = make_writer(form, output, chosen.record.session_id)
            turn = _Turn(
                prompt, chosen, options.first_tool, writer, consent, schema, later
            )
            run_interruptible(turn.run, backend)
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


@attrs.frozen(eq=False)
class _Turn:
    """A turn of a session, and where it is written."""

    prompt: GivenPrompt
    chosen: SelectedSession
    first_tool: str | None
    writer: TurnWriter
    consent: Consent
    schema: Mapping[str, JSONValue] | None
    later: LaterTurn | None

    async def run(self, interrupts: Interrupts) -> None:
        """Open the session and run the turn in it."""
        later, writer = self.later, self.writer
        async with AsyncExitStack() as stack:
            opened = await stack.enter_async_context(self._opening())
            report_opening(opened)
            coordinator = opened.session.coordinator
            coordinator.hooks.register(PROVIDER_RETRY, _report_retry, name="retries")
            if isinstance(writer, TextAnswer):
                # what its rules cost, only text needs
                from amplifier_kit.redaction import redactor_of

                writer.redactor = redactor_of(coordinator)
                # a question would have shown them
                writer.shows_diffs = self.consent.edits or self.consent.everything
            if later is not None:
                if later.is_over(opened):
                    notice("The turn is over already.")
                    return
                await stack.enter_async_context(later.under_way(opened))
            await self._play(opened, interrupts)

    def _opening(self) -> AbstractAsyncContextManager[OpenSession]:
        shown = frozenset[str]()
        if isinstance(self.writer, TextAnswer):
            shown = TURNS
        opening = partial(
            open_session,
            self.chosen.composition,
            record=self.chosen.record,
            store=self.chosen.store,
            first_tool=self.first_tool,
            display=MessageLines(),
            accepted=self.consent.accepted,
            shown=shown,
        )
        if self.later is None:
            return opening(approval=self.consent.approval())
        asks = self.later.asks(report_question)
        return opening(turn_id=self.later.turn_id, asks=asks)

    async def _play(self, opened: OpenSession, interrupts: Interrupts) -> None:
        """Run the turn and write its events as they come; Ctrl-C stops it."""
        session, prompt = opened.session, self.prompt
        silence = SilenceReport(interrupts.group, session.session_id)
        stream = opened.stream(prompt.shown, typed=prompt.typed, schema=self.schema)
        with (
            interrupts.turn(session),
            silence.listening(session.coordinator.hooks),
        ):
            async with stream as events:
                async for event in events:
                    silence.break_off()
                    self.writer.write(event)


def _report_retry(_: str, data: ProviderRetry) -> None:
    """Report a wait, which would be silence otherwise."""
    why = one_line(plain(data["error_message"]), 300)
    notice(
        f"{one_line(data['provider'])}: {why}; retrying in {data['delay']:.0f} s,"
        f" {data['attempt']} of {data['max_retries']}"
    )


def read_schema(file: Path) -> Mapping[str, JSONValue]:
    """Read the schema of an answer.

    Raises:
        ConfigError: the file holds no JSON Schema.
    """
    # few answers have to be of a form
    from amplifier_kit.files.documents import read_document
    from amplifier_sdk.output_schema import OutputSchema

    subject = f"file {str(file)!r}"
    wanted = read_document(file)
    if not isinstance(wanted, dict):
        problem = f"expected a JSON Schema; got {type(wanted).__name__}"
        raise ConfigError([Problem("", problem)], subject=subject)
    try:
        OutputSchema.of(wanted)
    except ValueError as error:
        raise ConfigError([Problem("", str(error))], subject=subject) from error
    return wanted
