"""`amplifier config secret`: the keys and tokens that a person keeps."""

from __future__ import annotations

import os
import sys

import click

from amplifier.cli._app_dirs import find_secrets
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import notice

__all__ = ["secret"]


@click.group()
def secret() -> None:
    """Keep keys and tokens: in the system's keyring, or in a file that only you read."""


@secret.command("set")
@click.argument("name")
@click.option(
    "--from-env",
    metavar="VARIABLE",
    help="Take the value from an environment variable.",
)
def _set(name: str, from_env: str | None) -> None:
    """Keep a secret under NAME, as the environment variable is called that it stands in for.

    It is asked for without being shown; from a pipe the first line is taken.
    """
    if from_env is not None:
        value = os.environ.get(from_env, "")
    elif sys.stdin.isatty():
        value = click.prompt(f"Value of {name}", hide_input=True, err=True)
    else:
        value = sys.stdin.readline().rstrip("\r\n")
    try:
        where = find_secrets().set(name, value)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    notice(
        f"{name} is stored in the {'keyring' if where == 'keyring' else 'file secrets.json of your own folder'}."
    )


@secret.command("list")
@output_option
def _list(output: str) -> None:
    """List the names of stored secrets; values are never shown."""
    names = find_secrets().names()
    if output == "json":
        say_json([{"name": name, "kept_in": where} for name, where in names.items()])
        return
    say_table(("NAME", "STORED IN"), names.items(), empty="Nothing is stored.")


@secret.command("remove")
@click.argument("name")
@click.pass_context
def _remove(ctx: click.Context, name: str) -> None:
    """Forget the secret NAME."""
    if not find_secrets().remove(name):
        notice(f"No secret of the name {name} is stored.")
        ctx.exit(1)
    notice(f"{name} is removed.")
