"""What a profile or a bundle comes to, as it is shown to a person, and which one is used."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import click

from amplifier.cli._options import flag
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import notice, one_line, say, visible

if TYPE_CHECKING:
    from amplifier.app.mentions.loader import Batch
    from amplifier.app.sessions.activation import ProfileChoice
    from amplifier.app.sessions.composition import Composition
    from amplifier_sdk.jsontypes import JSONValue

__all__ = ["add_looking", "json_text", "report_choice"]

Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]
"""Returns the names that go on like what was begun."""


def add_looking(
    group: click.Group,
    noun: str,
    compose: Callable[[str | None], Composition],
    complete: Completer | None = None,
) -> None:
    """Give a group the commands `show` and `validate`.

    Args:
        group: the group.
        noun: what its names are of.
        compose: puts together what a name comes to; `None` is the active one.
        complete: offers names.
    """

    @group.command("show", help=_SHOW.format(noun=noun))
    @click.argument("name", required=False, shell_complete=complete)
    @flag(
        "-d",
        "--detail",
        help="Show the whole instruction and the values that were replaced.",
    )
    @output_option
    def _show(name: str | None, detail: bool, output: str) -> None:
        _show_composition(compose(name), detail=detail, output=output)

    @group.command("validate", help=_VALIDATE.format(noun=noun))
    @click.argument("name", required=False, shell_complete=complete)
    @output_option
    @click.pass_context
    def _validate(ctx: click.Context, name: str | None, output: str) -> None:
        ctx.exit(_validate_composition(lambda: compose(name), output=output))


def report_choice(noun: str, choice: ProfileChoice) -> None:
    """Tell which profile or bundle is used now, and where another scope still wins."""
    notice(f"The {noun} {one_line(choice.name)} is active, by {choice.path}")
    if not choice.holds:
        wins = "'amplifier config explain bundle.active', or profile.active"
        notice(f"In this folder another choice wins: {wins}")


def json_text(value: JSONValue) -> str:
    """Write a value in one short line."""
    return one_line(json.dumps(value, ensure_ascii=False), 60)


_SHOW = """Show what the {noun} NAME, or the active one, comes to.

Its chain from the root, every value of the mount plan with what it comes from (a profile or bundle, "settings" or
"installed"), and the agent's instruction, mentions followed, with its size.
"""
_VALIDATE = "Check that a session of the {noun} NAME, or of the active one, would start; exit with 1 if not."


def _show_composition(composition: Composition, *, detail: bool, output: str) -> None:
    from amplifier.app.sessions.details import (
        estimate_tokens,
        list_values,
        profile_to_dict,
    )

    mentioned = _mentions_of(composition)
    instruction = _instruction(composition, mentioned)
    if output == "json":
        unresolved = _unresolved(mentioned)
        shown = profile_to_dict(composition, instruction)
        say_json({**shown, "unresolved_mentions": unresolved})
        return
    if composition.profile is None:
        notice(
            "No profile is active: a session is made of what is installed and of the settings."
        )
    else:
        head = composition.profile.chain[-1].head
        say(" ".join(filter(None, (composition.profile.name, head.version))))
        if head.description:
            say(visible(head.description))
        say("chain: " + " -> ".join(file.name for file in composition.profile.chain))
    rows = []
    for value in list_values(composition):
        origin = value.origin
        if detail and value.replaced is not None:
            origin += f" (in place of {json_text(value.replaced)})"
        rows.append((one_line(value.path, 80), json_text(value.value), origin))
    say_table(("VALUE", "", "FROM"), rows)
    if instruction:
        say(
            f"instruction: {len(instruction)} characters, about {estimate_tokens(instruction)} tokens"
        )
        say(visible(instruction) if detail else one_line(instruction, 200))
    _warn(mentioned)


def _validate_composition(compose: Callable[[], Composition], *, output: str) -> int:
    """Tell what keeps a session from starting, and return the exit code."""
    from amplifier.app.plans.base_plans import installed_modules
    from amplifier.app.sessions.details import find_problems
    from amplifier_sdk.errors import ConfigError

    mentioned = None
    try:
        composition = compose()
        problems = find_problems(composition, installed_modules())
        mentioned = _mentions_of(composition)
    except ConfigError as error:
        problems = list(error.problems)
        # To standard error: the problems alone are the result, one line each.
        notice(f"in the {error.subject}")
    if output == "json":
        found: list[JSONValue] = [
            {"path": problem.path, "message": problem.message} for problem in problems
        ]
        unresolved = _unresolved(mentioned)
        say_json(
            {
                "passed": not problems,
                "problems": found,
                "unresolved_mentions": unresolved,
            }
        )
    else:
        for problem in problems:
            say(visible(str(problem)))
        _warn(mentioned)
        if not problems:
            notice("No problem was found.")
    if problems:
        return 1
    return 0


def _mentions_of(composition: Composition) -> Batch | None:
    """Return what the mentions of the agent's instruction come to."""
    from amplifier.app.mentions.dedup import ContentDeduplicator
    from amplifier.app.mentions.loader import MentionLoader
    from amplifier.app.mentions.resolver import MentionResolver, Writer

    if composition.profile is None or composition.instruction is None:
        return None
    resolver = MentionResolver(composition.dirs, composition.collections)
    loader = MentionLoader(resolver, composition.settings.read().mentions)
    writer = Writer(composition.profile.folder)
    return loader.load(composition.instruction, writer, ContentDeduplicator())


def _instruction(composition: Composition, mentioned: Batch | None) -> str:
    from amplifier.app.mentions.loader import prepend_context_to_markdown

    if mentioned is None or composition.instruction is None:
        return ""
    return prepend_context_to_markdown(mentioned.messages, composition.instruction)


def _unresolved(mentioned: Batch | None) -> list[JSONValue]:
    if mentioned is None:
        return []
    return [outcome.to_dict() for outcome in mentioned.unresolved]


def _warn(mentioned: Batch | None) -> None:
    """Name the mentions of an instruction that lead nowhere: a session starts without them."""
    if mentioned is not None:
        for outcome in mentioned.unresolved:
            notice(f"warning: {one_line(str(outcome), 300)}")
