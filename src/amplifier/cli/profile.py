"""`amplifier profile`: the profiles there are, what one comes to, and which one is used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from amplifier.cli._options import debug_option, scope_option
from amplifier.cli._tables import columns, output_option, say_json
from amplifier.cli._terminal import notice, one_line, say, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from amplifier.app.composition import Composition
    from amplifier_sdk.jsontypes import JSONValue

__all__ = ["profile", "show_composition", "validate_composition"]


@click.group()
def profile() -> None:
    """List, look at, check, compare and choose profiles."""


@profile.command("list")
@output_option
@debug_option
def _list(output: str) -> None:
    """List the profiles that can be used, the active one marked."""
    from amplifier.app.places import Places  # with the runtime: help and wrong usage need none
    from amplifier.app.profiles.library import ProfileLibrary
    from amplifier.app.settings.settings import load_settings

    places = Places.find()
    active = load_settings(places).read().profile
    chosen = active.active or active.default
    found = ProfileLibrary.of(places).all()
    if output == "json":
        say_json(
            [
                {
                    "name": file.name,
                    "active": file.name == chosen,
                    "level": file.level,
                    "path": str(file.path),
                    "version": file.head.version,
                    "description": file.head.description,
                    "extends": file.head.extends,
                }
                for file in found
            ]
        )
        return
    if not found:
        notice("There is no profile.")
        return
    rows = [("", "NAME", "LEVEL", "DESCRIPTION")]
    rows += [
        ("*" if file.name == chosen else "", file.name, file.level, one_line(file.head.description, 60))
        for file in found
    ]
    for line in columns(rows):
        say(line)


@profile.command("show")
@click.argument("name", required=False)
@click.option("-d", "--detail", is_flag=True, help="Show the whole instruction and the values that were replaced.")
@output_option
@debug_option
def _show(name: str | None, detail: bool, output: str) -> None:
    """Show what the profile NAME, or the active one, comes to.

    Its chain from the root, every value of the mount plan with the profile that it comes from or "settings", and
    what the agent is told, mentions followed, with its size.
    """
    show_composition(_composed(name), detail=detail, output=output)


@profile.command("validate")
@click.argument("name", required=False)
@output_option
@debug_option
@click.pass_context
def _validate(ctx: click.Context, name: str | None, output: str) -> None:
    """Check that a session of the profile NAME, or of the active one, would start; exit with 1 if not."""
    ctx.exit(validate_composition(lambda: _composed(name), output=output))


@profile.command("diff")
@click.argument("left")
@click.argument("right")
@output_option
@debug_option
def _diff(left: str, right: str, output: str) -> None:
    """Show where the profiles LEFT and RIGHT differ."""
    from amplifier.app.places import Places  # with the runtime: help and wrong usage need none
    from amplifier.app.profiles.chains import compile_chain, follow_chain
    from amplifier.app.profiles.library import ProfileLibrary
    from amplifier.app.profiles.showing import compare

    library = ProfileLibrary.of(Places.find())
    one, other = (compile_chain(follow_chain(library, name)) for name in (left, right))
    found = compare(one, other)
    if output == "json":
        say_json([{"path": change.path, "left": change.left, "right": change.right} for change in found])
        return
    for change in found:
        say(one_line(change.path))
        say(f"  - {_text(change.left)}")
        say(f"  + {_text(change.right)}")
    if not found:
        notice("They do not differ.")


@profile.command("current")
@debug_option
def _current() -> None:
    """Print the name of the active profile."""
    from amplifier.app.places import Places  # with the runtime: help and wrong usage need none
    from amplifier.app.settings.settings import load_settings

    chosen = load_settings(Places.find()).read().profile
    name = chosen.active or chosen.default
    if name is None:
        notice("No profile is active.")
    else:
        say(name)


@profile.command("use")
@click.argument("name")
@scope_option
@debug_option
def _use(name: str, scope: str) -> None:
    """Use the profile NAME for new sessions; it must be sound."""
    from amplifier.app.changing import change

    _composed(name)
    change(scope, ("bundle", "active"), None)
    path = change(scope, ("profile", "active"), name)
    notice(f"The profile {name} is active, by {path}")


@profile.command("reset")
@scope_option
@debug_option
def _reset(scope: str) -> None:
    """Use the default profile again."""
    from amplifier.app.changing import change

    notice(f"No profile is active by {change(scope, ('profile', 'active'), None)}")


def show_composition(composition: Composition, *, detail: bool, output: str) -> None:
    """Show what a profile or a bundle comes to."""
    from amplifier.app.profiles.showing import estimate_tokens, list_values, profile_to_dict

    instruction = _instruction(composition)
    if output == "json":
        say_json(profile_to_dict(composition, instruction))
        return
    if composition.profile is None:
        notice("No profile is active: a session is made of what is installed and of the settings.")
    else:
        head = composition.profile.profile.head
        say(" ".join(filter(None, (composition.profile.profile.name, head.version))))
        if head.description:
            say(visible(head.description))
        say("chain: " + " -> ".join(file.name for file in composition.profile.chain))
    rows = [("VALUE", "", "FROM")]
    for value in list_values(composition):
        origin = value.origin
        if detail and value.replaced is not None:
            origin += f" (in place of {_text(value.replaced)})"
        rows.append((one_line(value.path, 80), _text(value.value), origin))
    for line in columns(rows):
        say(line)
    if instruction:
        say(f"instruction: {len(instruction)} characters, about {estimate_tokens(instruction)} tokens")
        say(visible(instruction) if detail else one_line(instruction, 200))


def validate_composition(compose: Callable[[], Composition], *, output: str) -> int:
    """Tell what keeps a session from starting, and return the exit code."""
    from amplifier.app.plans import installed_modules  # with the runtime: help and wrong usage need none
    from amplifier.app.profiles.showing import find_problems
    from amplifier_sdk.errors import ConfigError

    try:
        problems = find_problems(compose(), installed_modules())
    except ConfigError as error:
        problems = list(error.problems)
        notice(f"in the {error.subject}")
    if output == "json":
        found: list[JSONValue] = [{"path": problem.path, "message": problem.message} for problem in problems]
        say_json({"passed": not problems, "problems": found})
    else:
        for problem in problems:
            say(visible(str(problem)))
        if not problems:
            notice("No problem was found.")
    return 1 if problems else 0


def _composed(name: str | None) -> Composition:
    from amplifier.app.composition import compose  # with the runtime: help and wrong usage need none
    from amplifier.app.places import Places
    from amplifier.app.plans import PlanOptions

    return compose(PlanOptions(profile=name), Places.find(), fill=False)


def _instruction(composition: Composition) -> str:
    """Return what the agent is told, its mentions followed."""
    from amplifier.app.mentions.dedup import ContentDeduplicator
    from amplifier.app.mentions.loader import MentionLoader, prepend_context_to_markdown
    from amplifier.app.mentions.resolver import MentionResolver, Writer

    if composition.profile is None or composition.instruction is None:
        return ""
    resolver = MentionResolver(composition.places, composition.collections)
    loader = MentionLoader(resolver, composition.settings.read().mentions)
    writer = Writer(composition.profile.profile.path.parent)
    batch = loader.load(composition.instruction, writer, ContentDeduplicator())
    return prepend_context_to_markdown(batch.messages, composition.instruction)


def _text(value: JSONValue) -> str:
    return one_line(json.dumps(value, ensure_ascii=False), 60)
