"""How a command ends: exit codes, and errors in few lines.

0 an answer, 1 an error, 2 wrong usage, 130 cancelled by Ctrl-C, 143 ended by SIGTERM, 141 nobody reads the
output any more.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import click

from amplifier.cli._options import is_debug
from amplifier.cli._terminal import OutputClosedError, complain, notice, visible

__all__ = ["CANCELLED", "SignalledError", "describe", "leave"]

CANCELLED: Final = 130
WAITING: Final = 3
"""The turn waits for a person; the exit code of one that is over is another."""

OUTPUT_CLOSED: Final = 141
_SENTENCES: Final = re.compile(r"(?<=[.?]) (?=[A-Z])")


class SignalledError(Exception):
    """A signal ended the command; `exit_code` is 128 and the signal's number."""

    def __init__(self, number: int) -> None:
        self.exit_code = 128 + number
        super().__init__(f"Ended by signal {number}")


def leave(ctx: click.Context, command: Callable[[click.Context], object]) -> int:
    """Run a command and return its exit code; an error is reported on standard error.

    A process that an abandoned thread would keep alive ends here, once everything is written.
    """
    _open_what_is_closed()
    try:
        code = _run(ctx, command)
    except OutputClosedError:
        _discard_output()
        code = OUTPUT_CLOSED
    # Last: `os._exit` runs no handlers, so everything must be written and closed by
    # now.
    _end_beside_threads(code)
    return code


def _open_what_is_closed() -> None:
    """Let a standard stream that the command was started without lead nowhere, so that no file takes its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # The next file opened would get the free number 1 or 2, and prints would be
            # written into it.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # open to the very end


def _run(ctx: click.Context, command: Callable[[click.Context], object]) -> int:
    try:
        command(ctx)
        _flush()
    except click.exceptions.Exit as exit_:
        _flush()
        return exit_.exit_code
    except click.Abort:
        # Ctrl-C at a terminal is no surprise to whoever pressed it.
        if sys.stdin is None or not sys.stdin.isatty():
            _flush()
            problem = "the question was not answered; where nobody can be asked, an option such as --yes answers it"
            complain(f"Error: {problem}")
            return 1
        raise
    except (click.ClickException, OutputClosedError):
        raise
    except (SignalledError, KeyboardInterrupt) as error:
        notice("Cancelled.")
        if isinstance(error, SignalledError):
            return error.exit_code
        return CANCELLED
    except (
        Exception
    ) as error:  # whatever a command or foreign code raised is reported here
        return _report(error, debug=is_debug(ctx))
    return 0


def _report(error: Exception, *, debug: bool) -> int:
    from amplifier_kit.redaction import StrictRedactor

    # a command that fails has the runtime loaded
    from amplifier_sdk.errors import TurnCancelled, TurnSuspendedError

    if isinstance(error, TurnSuspendedError):
        return WAITING  # what it waits for was said when it was asked
    if isinstance(error, TurnCancelled):
        notice("Cancelled.")
        return CANCELLED
    redactor = StrictRedactor()
    if debug:
        complain(
            visible(
                redactor.redact_text("".join(traceback.format_exception(error)))
            ).rstrip()
        )
    complain(f"Error: {visible(redactor.redact_text(describe(error)))}")
    return 1


def describe(error: BaseException) -> str:
    """Say to a person what happened, where, and what helps."""
    # an error alone needs them
    from amplifier.cli._people import plain

    return plain(_described(error))


def _described(error: BaseException) -> str:
    from amplifier.cli._people import system_text
    from amplifier_sdk.errors import (
        AmplifierError,
        ConfigError,
        LLMError,
        ModuleNotFoundError,
    )

    match error:
        case ModuleNotFoundError(module_id=str(module)):
            from amplifier.app.modules.own import how_to_get

            return _by_line(_text(error), how_to_get(module))
        case ConfigError(problems=(problem,), subject=subject):
            return f"{subject}: {problem}"
        case LLMError(provider=str(provider)):
            if error.retryable:
                again = "; trying again may help"
            else:
                again = ""
            return f"provider {provider}: {_text(error)}{again}"
        case AmplifierError() | SignalledError():
            return _text(error)
        case click.ClickException(message=message):
            return message
        case BaseExceptionGroup():
            return "; ".join(describe(cause) for cause in error.exceptions)
        case OSError():
            return f"{system_text(error)}; --debug shows where it comes from"
        case _:
            return f"unexpected: {_text(error)}; --debug shows where it comes from"


def _by_line(text: str, remedy: str) -> str:
    """Write what was searched, and the remedy, on lines of their own, where there is more than one sentence."""
    lines = _SENTENCES.split(text)
    if len(lines) == 1:
        return f"{text}; {remedy}"
    return "\n  ".join((*lines, remedy))


def _text(error: BaseException) -> str:
    return str(error) or "there is no message"


def _flush() -> None:
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        # Buffered text meets a closed pipe only here; unnoticed, the exit code would be
        # 0.
        except BrokenPipeError as error:
            raise OutputClosedError from error


def _discard_output() -> None:
    """Point standard output nowhere, so that the interpreter does not complain when it flushes it."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _end_beside_threads(code: int) -> None:
    """End the process at once if a thread was abandoned: the interpreter would wait for it."""
    threads = sys.modules.get("amplifier_sdk.threads")
    if threads is not None:
        left = threads.abandoned()
    else:
        left = ()
    if not left:
        return
    notice("Left behind: " + ", ".join(visible(thread.name) for thread in left))
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
