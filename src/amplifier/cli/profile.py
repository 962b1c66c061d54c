"""`amplifier profile`: the profiles there are, what one comes to, and which one is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._compositions import add_looking, json_text, report_choice
from amplifier.cli._options import scope_option, yes_option
from amplifier.cli._shell_completion import profiles
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import notice, one_line, say

if TYPE_CHECKING:
    from amplifier.app.definitions import InvalidFile
    from amplifier.app.profiles.documents import ProfileFile
    from amplifier.app.sessions.composition import Composition
    from amplifier_sdk.jsontypes import JSONObject

__all__ = ["profile"]


_own_scope = click.option(
    "--scope",
    type=click.Choice(["project", "user"]),
    default="user",
    show_default=True,
    help="Whose profile: the person's own or the project's.",
)


@click.group()
def profile() -> None:
    """List, look at, check, compare, choose, write and remove profiles."""


@profile.command("list")
@output_option
def _list(output: str) -> None:
    """List the profiles that can be used, the active one marked."""
    from amplifier.app.definitions import InvalidFile
    from amplifier.app.profiles.library import ProfileLibrary
    from amplifier.app.profiles.selection import active_profile
    from amplifier.app.settings.settings import load_settings

    dirs = find_app_dirs()
    chosen = active_profile(load_settings(dirs))
    found = ProfileLibrary.of(dirs).all()
    if output == "json":
        say_json([{**_fields(file), "active": file.name == chosen} for file in found])
        return
    rows = []
    for file in found:
        if not isinstance(file, InvalidFile):
            text = file.head.description
        elif file.is_untrusted:
            text = "not trusted, see below"
        else:
            text = "invalid, see below"
        mark = "*" if file.name == chosen else ""
        rows.append((mark, file.name, file.level, one_line(text, 60)))
    heads = ("", "NAME", "LEVEL", "DESCRIPTION")
    say_table(heads, rows, empty="There is no profile.")
    for file in found:
        if isinstance(file, InvalidFile):
            notice(f"warning: {one_line(file.problem, 1000)}")


def _fields(file: ProfileFile | InvalidFile) -> JSONObject:
    """Write a profile as JSON data; an invalid one has a problem in place of what its file says."""
    from amplifier.app.definitions import InvalidFile

    fields: JSONObject = {
        "name": file.name,
        "level": file.level,
        "path": str(file.path),
    }
    if isinstance(file, InvalidFile):
        return {**fields, "problem": file.problem, "trusted": not file.is_untrusted}
    return {
        **fields,
        "version": file.head.version,
        "description": file.head.description,
        "extends": next(iter(file.bases), None),
    }


@profile.command("diff")
@click.argument("left", shell_complete=profiles)
@click.argument("right", shell_complete=profiles)
@output_option
def _diff(left: str, right: str, output: str) -> None:
    """Show where the profiles LEFT and RIGHT differ."""
    from amplifier.app.profiles.chain import follow
    from amplifier.app.profiles.compiler import compile_chain
    from amplifier.app.profiles.library import ProfileLibrary
    from amplifier.app.sessions.details import compare

    library = ProfileLibrary.of(find_app_dirs())
    one, other = (compile_chain(follow(library, name)) for name in (left, right))
    found = compare(one, other)
    if output == "json":
        say_json(
            [
                {"path": change.path, "left": change.left, "right": change.right}
                for change in found
            ]
        )
        return
    for change in found:
        say(one_line(change.path))
        say(f"  - {json_text(change.left)}")
        say(f"  + {json_text(change.right)}")
    if not found:
        notice("They do not differ.")


@profile.command("current")
def _current() -> None:
    """Print the name of the active profile."""
    from amplifier.app.profiles.selection import BUNDLE, active_profile
    from amplifier.app.settings.settings import load_settings

    name = active_profile(load_settings(find_app_dirs()))
    if name is None:
        notice("No profile is active.")
    elif name.startswith(BUNDLE):
        notice(
            f"No profile is active, but the bundle {one_line(name.removeprefix(BUNDLE))}."
        )
    else:
        say(one_line(name, 300))


@profile.command("use")
@click.argument("name", shell_complete=profiles)
@scope_option
def _use(name: str, scope: str) -> None:
    """Use the profile NAME for new sessions, in place of a bundle; it must be sound."""
    from amplifier.app.sessions.activation import activate

    report_choice("profile", activate(name, scope, find_app_dirs()))


@profile.command("reset")
@scope_option
def _reset(scope: str) -> None:
    """Use the default profile again."""
    from amplifier.app.settings.changes import change

    notice(f"No profile is active by {change(scope, ('profile', 'active'), None)}")


@profile.command("new")
@click.argument("name")
@click.option(
    "--extends",
    metavar="PROFILE",
    default="foundation:base",
    show_default=True,
    help="The profile that it builds on; an empty name for none.",
    shell_complete=profiles,
)
@click.option("--description", default="", metavar="TEXT", help="What it is for.")
@_own_scope
def _new(name: str, extends: str, description: str, scope: str) -> None:
    """Write the profile NAME, and print its file: a head with what it builds on, and an instruction to begin with."""
    from amplifier.app.profiles.own_files import new_profile

    path = new_profile(
        find_app_dirs(),
        name,
        scope=scope,
        extends=extends or None,
        description=description,
    )
    say(str(path))
    notice(
        f"'amplifier profile edit {name}' changes it, 'amplifier profile use {name}' chooses it"
    )


@profile.command("edit")
@click.argument("name", shell_complete=profiles)
@_own_scope
def _edit(name: str, scope: str) -> None:
    """Open the profile NAME in $EDITOR; it is saved when it is valid."""
    from amplifier.app.profiles.own_files import edit_profile

    path = edit_profile(
        find_app_dirs(),
        name,
        lambda text: click.edit(text, extension=".md"),
        scope=scope,
    )
    notice("Nothing was changed." if path is None else f"changed: {path}")


@profile.command("remove")
@click.argument("name", shell_complete=profiles)
@_own_scope
@yes_option
def _remove(name: str, scope: str, yes: bool) -> None:
    """Delete the profile NAME, after asking."""
    from amplifier.app.profiles.own_files import remove_profile

    if not yes:
        click.confirm(f"Delete the profile {one_line(name)}?", abort=True, err=True)
    notice(f"removed: {remove_profile(find_app_dirs(), name, scope=scope)}")


def _composed(name: str | None) -> Composition:
    from amplifier.app.plans.base_plans import PlanOptions
    from amplifier.app.sessions.composition import compose

    return compose(PlanOptions(profile=name), find_app_dirs(), fill=False)


add_looking(profile, "profile", _composed, profiles)
