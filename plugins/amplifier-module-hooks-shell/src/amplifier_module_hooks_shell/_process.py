"""Running one external command: what it is given, how long it may take, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Final

import attrs

from amplifier_kit.processes import Capture, Command, run_command
from amplifier_sdk.convert import to_json
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["CommandResult", "InputError", "run_hook", "write_input"]

_SHOWN: Final = 500
_UNRUNNABLE: Final = (126, 127)
_SIGNALLED: Final = range(129, 193)


class InputError(ValueError):
    """An event's data cannot be given to a command."""


@attrs.frozen(kw_only=True)
class CommandResult:
    """How a command ended.

    Args:
        code: its exit code.
        output: what it put out.
        errors: what it put out on its error output.
        failure: why it came to no end of its own: it could not be started, took too long, was ended by a signal, or
            put out more than is read.
    """

    code: int
    output: str = ""
    errors: str = ""
    failure: str | None = None

    @property
    def complaint(self) -> str:
        """What it said in its error output, else in its output, shortened."""
        text = " ".join((self.errors.strip() or self.output.strip()).split())
        if len(text) <= _SHOWN:
            return text
        return f"{text[:_SHOWN]} …"


def write_input(data: Mapping[str, object], limit: int, *, may_cut: bool) -> str:
    """Write an event's data as one line of JSON in ASCII.

    Args:
        data: what the event carries, and what is added to it.
        limit: how many bytes it may have.
        may_cut: shorten long texts in it when it is longer; what decides must read all that it decides on.

    Raises:
        InputError: it has no JSON form, or is too long.
    """
    try:
        # ASCII, so that no locale of a command misreads it.
        text = json.dumps(data, ensure_ascii=True, allow_nan=False, default=_plain)
        if len(text) > limit and may_cut:
            text = json.dumps(
                _cut(json.loads(text), max(64, limit // 16)), ensure_ascii=True
            )
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"the event cannot be written as JSON: {error}") from error
    if len(text) > limit:
        raise InputError(
            f"the event has {len(text)} bytes as JSON; max_input_bytes is {limit}"
        )
    return text


async def run_hook(
    argv: tuple[str, ...],
    *,
    directory: str,
    environment: Mapping[str, str],
    input: str,
    timeout: float,
    limit: int,
) -> CommandResult:
    """Run a command to its end; nothing that it started is alive afterwards.

    Args:
        argv: the program and its arguments.
        directory: where it starts.
        environment: all of its environment.
        input: what stands on its standard input.
        timeout: seconds it may take.
        limit: how many bytes of each of its outputs are read.
    """
    command = Command(
        argv=argv, directory=directory, environment=environment, input=input
    )
    output, errors = Capture(limit), Capture(limit)
    try:
        ending = await run_command(
            command, stdout=output.write, stderr=errors.write, timeout=timeout
        )
    except (OSError, ValueError) as error:
        # ValueError: a NUL, or half a character, in an argument
        return CommandResult(code=127, failure=f"it could not be started: {error}")
    ran = partial(
        CommandResult, code=ending.code, output=output.text(), errors=errors.text()
    )
    if ending.timed_out:
        return ran(failure=f"it took longer than {timeout:g} s")
    if ending.error is not None:
        return ran(failure=f"it could not be started: {ending.error}")
    # Shells use these two codes for a command that they cannot run, which decides
    # nothing.
    if ending.code in _UNRUNNABLE:
        return ran(
            failure=f"it could not be run: {ran().complaint or f'exit code {ending.code}'}"
        )
    if ending.code in _SIGNALLED:
        return ran(failure=f"it was ended by signal {ending.code - 128}")
    # What is cut is no JSON any more, and could read as another verdict.
    if output.is_cut:
        return ran(
            failure=f"it put out {output.total} bytes; max_output_bytes is {limit}"
        )
    return ran()


def _plain(value: object) -> JSONValue:
    try:
        return to_json(value)
    except (TypeError, ValueError):
        return repr(value)[:_SHOWN]


def _cut(value: JSONValue, longest: int) -> JSONValue:
    if isinstance(value, str):
        if len(value) <= longest:
            return value
        return f"{value[:longest]}… [{len(value) - longest} more characters]"
    if isinstance(value, list):
        return [_cut(item, longest) for item in value]
    if isinstance(value, dict):
        return {key: _cut(item, longest) for key, item in value.items()}
    return value
