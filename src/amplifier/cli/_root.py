"""The root command: it finds its commands by name and is the one place where errors become exit codes.

A command's file imports click alone; the runtime is imported by the command that runs.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from amplifier.cli._exits import leave
from amplifier.cli._options import add_debug, debug_option, flag
from amplifier.cli._terminal import one_line, say, silence_notices
from amplifier_kit.processes.programs import safe_path

__all__ = ["main"]

COMMANDS: Final[Mapping[str, str]] = {
    "acp": "amplifier.cli.acp",
    "agent": "amplifier.cli.agent",
    "answer": "amplifier.cli.questions:answer",
    "bundle": "amplifier.cli.bundle",
    "chat": "amplifier.cli.chat",
    "collection": "amplifier.cli.collection",
    "compat": "amplifier.cli.compat",
    "completion": "amplifier.cli.completion",
    "config": "amplifier.cli.config",
    "continue": "amplifier.cli.resume:continue_",
    "doctor": "amplifier.cli.doctor",
    "init": "amplifier.cli.init",
    "logs": "amplifier.cli.logs",
    "mcp": "amplifier.cli.mcp",
    "module": "amplifier.cli.module",
    "permissions": "amplifier.cli.permissions",
    "plugin": "amplifier.cli.plugin",
    "profile": "amplifier.cli.profile",
    "provider": "amplifier.cli.provider",
    "questions": "amplifier.cli.questions",
    "resume": "amplifier.cli.resume",
    "run": "amplifier.cli.run",
    "serve": "amplifier.cli.serve",
    "session": "amplifier.cli.session",
    "token": "amplifier.cli.token",
    "tool": "amplifier.cli.tool",
    "trace": "amplifier.cli.trace",
    "trust": "amplifier.cli.trust",
    "version": "amplifier.cli.version",
    "worker": "amplifier.cli.worker",
}
"""Each command, and the module that has it: under the command's name, or the one behind the colon."""


class _Root(click.Group):
    """A group that imports a command when it is named or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # the signature is click's
        """Return the names of the commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # likewise
        """Import a command; each has `--debug`."""
        home = COMMANDS.get(cmd_name)
        if home is None:
            return None
        place, _, name = home.partition(":")
        command = getattr(import_module(place), name or cmd_name)
        if not isinstance(command, click.Command):
            return None
        add_debug(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of an argument; an unknown one is an error that names the nearest."""
        if any(letter.isspace() for letter in args[0].strip()):
            asked = shlex.quote(one_line(args[0], 200))
            raise click.UsageError(
                f"A prompt needs a command before it; type: amplifier run {asked}", ctx
            )
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.exceptions.NoSuchCommand(
                args[0], possibilities=self.list_commands(ctx), ctx=ctx
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> None:
        """Run the command and leave with its exit code."""
        ctx.exit(leave(ctx, super().invoke))


def _install_completion(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        # most commands complete nothing
        from amplifier.cli.completion import install_for_this_shell

        install_for_this_shell(ctx)


def _say_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        # importlib.metadata: other commands start without it
        from amplifier.app.versions import read_versions

        say(f"amplifier {read_versions().amplifier}")
        ctx.exit()


def _enter(_: click.Context, __: click.Parameter, value: Path | None) -> None:
    if value is not None:
        os.chdir(value)


def _silence(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.call_on_close(silence_notices())


def _without_color(_: click.Context, __: click.Parameter, value: bool) -> None:
    if value:
        # Programs that tools start are asked for the same.
        os.environ["NO_COLOR"] = "1"


@click.group(
    cls=_Root,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@debug_option
@click.option(
    "-C",
    "directory",
    metavar="DIR",
    # before every other option: a file named by one is looked for there
    is_eager=True,
    expose_value=False,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    callback=_enter,
    help="Run as if started in DIR.",
)
@flag(
    "-q",
    "--quiet",
    expose_value=False,
    callback=_silence,
    help="Write results, questions, warnings and errors only.",
)
@flag(
    "--no-color",
    expose_value=False,
    callback=_without_color,
    help="Write without colours; NO_COLOR=1 does the same.",
)
@flag(
    "--version",
    is_eager=True,
    expose_value=False,
    callback=_say_version,
    help="Print the version.",
)
@flag(
    "--install-completion",
    is_eager=True,
    expose_value=False,
    callback=_install_completion,
    help="Let your shell complete commands, options and names.",
)
@click.pass_context
def main(ctx: click.Context) -> None:
    """Run AI agents made of modules.

    Without a command a chat begins, with the modules that are installed.
    """
    # an editor is found there too
    os.environ["PATH"] = safe_path(os.environ.get("PATH", "")) or os.defpath
    if ctx.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say(ctx.get_help())
        return
    chat = main.get_command(ctx, "chat")
    if chat is not None:
        ctx.invoke(chat)
