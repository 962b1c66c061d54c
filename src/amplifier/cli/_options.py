"""Options that several commands have."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import click

__all__ = ["debug_option", "is_debug", "session_options"]

P = ParamSpec("P")
R = TypeVar("R")

_DEBUG: Final = "amplifier.debug"


def _remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_DEBUG] = True


def is_debug(ctx: click.Context) -> bool:
    """Whether tracebacks are wanted: `--debug`, or `AMPLIFIER_DEBUG` set to anything but nothing and 0."""
    return bool(ctx.meta.get(_DEBUG)) or os.environ.get("AMPLIFIER_DEBUG", "0") not in {"", "0"}


def debug_option(command: Callable[P, R]) -> Callable[P, R]:
    """Add `--debug`, which may stand before or after the command's name."""
    return click.option(
        "--debug", is_flag=True, expose_value=False, callback=_remember, help="Show tracebacks and the whole log."
    )(command)


def session_options(command: Callable[P, R]) -> Callable[P, R]:
    """Add what decides how a session is made."""
    options = (
        click.option("-P", "--profile", metavar="NAME", help="The profile; default the one of the settings."),
        click.option("-p", "--provider", metavar="ID", help="The provider module; default the profile's."),
        click.option("--keep/--no-keep", default=None, help="Keep a new session; default as the settings say."),
        click.option("-m", "--model", metavar="NAME", help="The model to ask for; default the provider's."),
        click.option("--tool", metavar="NAME", help="The tool that the model must call first."),
        click.option(
            "--plan",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="A mount plan (YAML or JSON) instead of profile and settings.",
        ),
        click.option(
            "--backend",
            type=click.Choice(["asyncio", "trio"]),
            default="asyncio",
            show_default=True,
            help="The event loop; trio needs the extra amplifier[trio].",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command
