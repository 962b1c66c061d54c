"""`amplifier bundle`: the bundles there are, what one comes to, which one is used, where others come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from amplifier.cli._options import debug_option
from amplifier.cli._tables import columns, output_option, say_json, scope_option
from amplifier.cli._terminal import notice, one_line, say
from amplifier.cli.profile import show_composition, validate_composition

if TYPE_CHECKING:
    from amplifier.app.composition import Composition
    from amplifier.app.settings.settings import Settings

__all__ = ["bundle"]


@click.group()
def bundle() -> None:
    """List, look at, check, choose, add and remove bundles.

    A NAME is a bundle's, 'collection:path', a path that begins with '.', '~' or '/', or an address.
    """


@bundle.command("list")
@output_option
@debug_option
def _list(output: str) -> None:
    """List the bundles that can be used, the active one and those of every session marked."""
    from amplifier.app.bundles.library import BundleLibrary  # with the runtime: help and wrong usage need none
    from amplifier.app.places import Places

    library = BundleLibrary.of(Places.find())
    chosen, everywhere = _active(library.settings), library.settings.read().bundle.app
    found = library.all()
    if output == "json":
        say_json(
            [
                {
                    "name": each.name,
                    "active": each.name == chosen,
                    "every_session": each.name in everywhere,
                    "level": each.level,
                    "path": None if each.source is not None else str(each.path),
                    "source": each.source,
                }
                for each in found
            ]
        )
        return
    if not found:
        notice("There is no bundle.")
        return
    rows = [("", "NAME", "LEVEL", "WHERE")]
    for each in found:
        mark = "*" if each.name == chosen else "+" if each.name in everywhere else ""
        rows.append((mark, one_line(each.name), each.level, one_line(each.source or str(each.path), 200)))
    for line in columns(rows):
        say(line)


@bundle.command("show")
@click.argument("name", required=False)
@click.option("-d", "--detail", is_flag=True, help="Show the whole instruction and the values that were replaced.")
@output_option
@debug_option
def _show(name: str | None, detail: bool, output: str) -> None:
    """Show what the bundle NAME, or the active one, comes to: as 'profile show' does."""
    show_composition(_composed(name), detail=detail, output=output)


@bundle.command("validate")
@click.argument("name", required=False)
@output_option
@debug_option
@click.pass_context
def _validate(ctx: click.Context, name: str | None, output: str) -> None:
    """Check that a session of the bundle NAME, or of the active one, would start; exit with 1 if not."""
    ctx.exit(validate_composition(lambda: _composed(name), output=output))


@bundle.command("use")
@click.argument("name")
@scope_option
@debug_option
def _use(name: str, scope: str) -> None:
    """Use the bundle NAME for new sessions, in place of a profile; it must be sound."""
    import os

    from amplifier.app.changing import change  # with the runtime: help and wrong usage need none

    if name.startswith((".", "~")):
        name = os.path.abspath(os.path.expanduser(name))
    _composed(name)
    path = change(scope, ("bundle", "active"), name)
    notice(f"The bundle {one_line(name)} is active, by {path}")
    _tell_stronger(name)


@bundle.command("clear")
@scope_option
@debug_option
def _clear(scope: str) -> None:
    """Use no bundle any more; the profile counts again."""
    from amplifier.app.changing import change  # with the runtime: help and wrong usage need none

    notice(f"No bundle is active by {change(scope, ('bundle', 'active'), None)}")


@bundle.command("current")
@debug_option
def _current() -> None:
    """Print the name of the active bundle."""
    from amplifier.app.places import Places  # with the runtime: help and wrong usage need none
    from amplifier.app.settings.settings import load_settings

    chosen = _active(load_settings(Places.find()))
    if chosen is None:
        notice("No bundle is active.")
    else:
        say(one_line(chosen, 300))


@bundle.command("add")
@click.argument("address")
@click.option("--name", metavar="NAME", help="The name to add it under; default its own.")
@click.option("--app", is_flag=True, help="Let every session have it, below its profile or bundle.")
@scope_option
@debug_option
def _add(address: str, name: str | None, app: bool, scope: str) -> None:
    """Add the bundle at ADDRESS under a name: a file, a folder, or git+https://host/path@ref#subdirectory=folder.

    What has to be fetched, for it and for what it includes, is fetched now, and its commits are pinned.
    """
    from amplifier.app.bundles.adding import add_bundle  # with the runtime: help and wrong usage need none
    from amplifier.app.places import Places

    added, path = add_bundle(Places.find(), address, name=name, every_session=app, scope=scope)
    say(added)
    notice(f"added {'to every session ' if app else ''}by {path}")


@bundle.command("remove")
@click.argument("name")
@scope_option
@debug_option
@click.pass_context
def _remove(ctx: click.Context, name: str, scope: str) -> None:
    """Forget the bundle NAME, which was added; its files stay where they are."""
    from amplifier.app.bundles.adding import remove_bundle  # with the runtime: help and wrong usage need none
    from amplifier.app.places import Places

    path = remove_bundle(Places.find(), name, scope=scope)
    if path is None:
        notice(f"No bundle {one_line(name)} was added in the scope {scope}.")
        ctx.exit(1)
    notice(f"{one_line(name)} is removed from {path}")


def _active(settings: Settings) -> str | None:
    """Return the bundle of new sessions, where they have one."""
    from amplifier.app.profiles.choosing import BUNDLE, active_profile

    name = active_profile(settings)
    return name.removeprefix(BUNDLE) if name is not None and name.startswith(BUNDLE) else None


def _tell_stronger(name: str) -> None:
    """Say so where another scope still wins."""
    from amplifier.app.places import Places
    from amplifier.app.settings.settings import load_settings

    if _active(load_settings(Places.find())) != name:
        notice("In this folder another choice wins: 'amplifier config explain bundle.active', or profile.active")


def _composed(name: str | None) -> Composition:
    from amplifier.app.composition import compose  # with the runtime: help and wrong usage need none
    from amplifier.app.places import Places
    from amplifier.app.plans import PlanOptions
    from amplifier.app.profiles.choosing import BUNDLE
    from amplifier.app.settings.settings import load_settings
    from amplifier_sdk.errors import ConfigError, Problem

    places = Places.find()
    name = name or _active(load_settings(places))
    if name is None:
        problem = Problem("", "no bundle is active; name one, or choose it with 'amplifier bundle use NAME'")
        raise ConfigError([problem], subject="choice of bundles")
    return compose(PlanOptions(profile=f"{BUNDLE}{name}"), places, fill=False)
