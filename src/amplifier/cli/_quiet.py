"""Programs of commands that run modules and print a result of their own."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import redirect_stdout
from typing import TypeVar

import click

from amplifier.cli._options import is_debug

__all__ = ["run_quietly"]

T = TypeVar("T")


def run_quietly(ctx: click.Context, program: Callable[[], Awaitable[T]]) -> T:
    """Run a program in an event loop until it ends or a signal ends it; what modules print goes to standard error."""
    from amplifier.cli._interrupts import run_interruptible
    from amplifier.cli._logs import configure_logs

    configure_logs(debug=is_debug(ctx))
    with redirect_stdout(sys.stderr):
        return run_interruptible(lambda _: program(), "asyncio")
