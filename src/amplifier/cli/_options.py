"""Options that several commands have."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, TypeVar

import click

if TYPE_CHECKING:
    from amplifier.app.plans import PlanOptions

__all__ = ["SessionChoices", "debug_option", "is_debug", "scope_option", "session_choices", "session_options"]

P = ParamSpec("P")
R = TypeVar("R")

_DEBUG: Final = "amplifier.debug"
_CHOICES: Final = "amplifier.choices"


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


def scope_option(command: Callable[P, R]) -> Callable[P, R]:
    """Add `--scope`, which says whose settings are changed."""
    return click.option(
        "--scope",
        type=click.Choice(["local", "project", "user"]),
        default="user",
        show_default=True,
        help="Whose settings: the person's own, the project's, or the person's own of this project.",
    )(command)


class SessionChoices(NamedTuple):
    """What a person chose of the session that a command works in."""

    profile: str | None = None
    bundle: str | None = None
    keep: bool | None = None
    provider: str | None = None
    model: str | None = None
    tool: str | None = None
    plan: Path | None = None
    backend: str = "asyncio"

    def plan_options(self) -> PlanOptions:
        """Return what decides what the session is made of."""
        from amplifier.app.plans import PlanOptions  # with the runtime: help and wrong usage need none

        if self.bundle is not None and self.profile is not None:
            raise click.UsageError("--profile and --bundle both say what the session is made of; use one of them")
        return PlanOptions(
            profile=self.profile if self.bundle is None else f"bundle:{self.bundle}",
            provider=self.provider,
            model=self.model,
            first_tool=self.tool,
            file=self.plan,
        )


def session_choices(ctx: click.Context) -> SessionChoices:
    """Return what was chosen by the options of `session_options`; without any the defaults."""
    given = ctx.meta.get(_CHOICES)
    return SessionChoices(**given) if given else SessionChoices()


def _choose(ctx: click.Context, parameter: click.Parameter, value: object) -> None:
    ctx.meta.setdefault(_CHOICES, {})[parameter.name] = value


def session_options(command: Callable[P, R]) -> Callable[P, R]:
    """Add what decides how a session is made; `session_choices` returns it."""
    chosen = partial(click.option, expose_value=False, callback=_choose)
    options = (
        chosen("-P", "--profile", metavar="NAME", help="The profile; default the one of the settings."),
        chosen("-B", "--bundle", metavar="NAME", help="The bundle, in place of a profile."),
        chosen("-p", "--provider", metavar="ID", help="The provider module; default the profile's."),
        chosen("-m", "--model", metavar="NAME", help="The model to ask for; default the provider's."),
        chosen("--tool", metavar="NAME", help="The tool that the model must call first."),
        chosen(
            "--plan",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="A mount plan (YAML or JSON) instead of profile and settings.",
        ),
        chosen("--keep/--no-keep", default=None, help="Keep a new session; default as the settings say."),
        chosen(
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
