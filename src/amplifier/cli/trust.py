"""`amplifier trust`: what a project brings along, and whether it may be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from amplifier.cli._options import flag
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import notice, one_line, say

if TYPE_CHECKING:
    from amplifier.app.projects.trust import ProjectContribution

__all__ = ["trust"]


@click.group(invoke_without_command=True)
@flag("-y", "--yes", help="Trust all of it without asking.")
@click.pass_context
def trust(ctx: click.Context, yes: bool) -> None:
    """Look at what this folder brings along, and decide whether it may be used.

    Settings, profiles, agents, commands, hooks, instructions, skills, modules and servers of a project count once
    they are trusted, and until they change. Without a command what is not trusted is shown and asked about.
    """
    if ctx.invoked_subcommand is None:
        _ask(yes=yes)


@trust.command("show")
@output_option
def _show(output: str) -> None:
    """Show what this folder brings along, by kind."""
    from amplifier.app.projects.trust import look

    found = look()
    if output == "json":
        say_json([brought.to_dict() for brought in found])
        return
    if not found:
        notice("This folder brings nothing along.")
    for brought in found:
        _describe(brought)


@trust.command("list")
@output_option
def _list(output: str) -> None:
    """List the folders that are trusted."""
    from amplifier_kit.trust import TrustStore

    grants = TrustStore.in_home().list()
    if output == "json":
        say_json(
            [
                {
                    "folder": grant.folder,
                    "kind": grant.kind,
                    "granted": grant.granted,
                    "items": dict(grant.items),
                }
                for grant in grants
            ]
        )
        return
    rows = [(each.kind, str(len(each.items)), one_line(each.folder)) for each in grants]
    say_table(("KIND", "FILES", "FOLDER"), rows, empty="Nothing is trusted.")


@trust.command("grant")
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
def _grant(kinds: tuple[str, ...]) -> None:
    """Trust what this folder brings along, or some kinds of it, without asking."""
    from amplifier.app.projects.trust import grant, look

    for brought in look(kinds):
        if not brought.decision.trusted:
            grant(brought)
            notice(f"trusted: {brought.decision.kind}")


@trust.command("revoke")
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
def _revoke(kinds: tuple[str, ...]) -> None:
    """Trust nothing of this folder any more, or nothing of some kinds."""
    from amplifier.app.projects.trust import revoke

    for kind in revoke(kinds):
        notice(f"not trusted any more: {kind}")


def _ask(*, yes: bool) -> None:
    from amplifier.app.projects.trust import grant, look

    found = [brought for brought in look() if not brought.decision.trusted]
    if not found:
        notice(
            "There is nothing to decide: this folder brings nothing along that is not trusted."
        )
    for brought in found:
        _describe(brought)
        if not brought.decision.can_be_trusted:
            notice("  It cannot be trusted as it is.")
        elif yes or click.confirm(
            f"Trust the {brought.decision.kind} of this folder?",
            default=False,
            err=True,
        ):
            grant(brought)
            notice(f"trusted: {brought.decision.kind}")


def _describe(brought: ProjectContribution) -> None:
    decision = brought.decision
    if decision.trusted:
        state = "trusted"
    else:
        state = f"not trusted: {one_line(decision.reason, 300)}"
    say(f"{decision.kind}: {state}")
    for file in brought.files:
        if file.is_changed:
            mark = "changed"
        else:
            mark = ""
        say(
            "  "
            + "  ".join(
                filter(None, (one_line(file.name, 200), f"{file.size} bytes", mark))
            )
        )
