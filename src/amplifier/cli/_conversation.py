"""The chat: lines typed at a terminal become turns of one session, one after the other.

A prompt is shown between turns only. What is typed while an answer comes waits in the terminal, which
keeps whole lines, and is read by the prompts that follow; a hook's question drops it.
"""

from __future__ import annotations

import re
import sys
import traceback
from contextlib import redirect_stdout
from functools import partial
from typing import Final

from amplifier.app.plans import PlanOptions
from amplifier.app.sessions import OpenSession, open_session
from amplifier.cli._approval import TerminalApproval
from amplifier.cli._exits import describe
from amplifier.cli._interrupts import Interrupts, run_interruptible
from amplifier.cli._logs import configure_logs
from amplifier.cli._opening import Chosen, Wanted, choose_session, tell_opening
from amplifier.cli._output import Output, TextAnswer
from amplifier.cli._prompt import LinePrompt
from amplifier.cli._terminal import MessageLines, complain, notice, visible
from amplifier.cli._turns import play_turn
from amplifier_sdk.errors import TurnCancelled, did_you_mean

__all__ = ["converse"]

COMMANDS: Final = {"/exit": "end the chat", "/help": "show this list"}
_COMMAND: Final = re.compile(r"/[a-z]*")
"""A line of one such word is a command; a path is not."""


def converse(options: PlanOptions, wanted: Wanted, *, backend: str, debug: bool) -> None:
    """Hold a chat until `/exit` or the end of the input; a turn that fails does not end it."""
    prompt = LinePrompt("> ")
    output = Output.standard()
    configure_logs(debug=debug)
    chosen = choose_session(options, wanted)
    with redirect_stdout(sys.stderr):
        run_interruptible(partial(_converse, chosen, options.first_tool, prompt, output, debug), backend)


async def _converse(
    chosen: Chosen,
    first_tool: str | None,
    prompt: LinePrompt,
    output: Output,
    debug: bool,
    interrupts: Interrupts,
) -> None:
    opened = open_session(
        chosen.composition,
        record=chosen.record,
        store=chosen.store,
        first_tool=first_tool,
        display=MessageLines(),
        approval=TerminalApproval(),
    )
    async with opened as session:
        tell_opening(session)
        notice("/help lists the commands, Ctrl-C stops an answer, Ctrl-D ends the chat.")
        while (line := await prompt.ask()) is not None:
            text = line.strip()
            if text == "/exit":
                return
            if _COMMAND.fullmatch(text):
                _help(text)
            elif text:
                await _take_turn(session, line, output, interrupts, debug=debug)


def _help(command: str) -> None:
    if command not in COMMANDS:
        complain(f"There is no command {command}{did_you_mean(command, list(COMMANDS))}")
    for name, meaning in COMMANDS.items():
        notice(f"{name:<8}{meaning}")


async def _take_turn(session: OpenSession, line: str, output: Output, interrupts: Interrupts, *, debug: bool) -> None:
    """Run a turn; what ends it early is told and the chat goes on."""
    writer = TextAnswer(output)
    try:
        await play_turn(session, line, writer, interrupts)
    except TurnCancelled as error:
        writer.fail(error)
        notice("Cancelled.")
    except Exception as error:  # whatever foreign code raised ends its turn alone
        writer.fail(error)
        if debug:
            complain(visible("".join(traceback.format_exception(error))).rstrip())
        complain(f"Error: {visible(describe(error))}")
