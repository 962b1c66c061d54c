"""`amplifier bundle`: the bundles there are, what one comes to, which one is used, where others come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._compositions import add_looking, report_choice
from amplifier.cli._options import flag, scope_option
from amplifier.cli._source_updates import report_refresh, update_options
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import notice, one_line, say

if TYPE_CHECKING:
    from amplifier.app.sessions.composition import Composition
    from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["bundle"]


@click.group()
def bundle() -> None:
    """List, look at, check, choose, add, update and remove bundles.

    A NAME is a bundle's, 'collection:path', a path that begins with '.', '~' or '/', or an address.
    """


@bundle.command("list")
@output_option
def _list(output: str) -> None:
    """List the bundles that can be used, the active one and those of every session marked."""
    from amplifier.app.profiles.library import ProfileLibrary
    from amplifier.app.profiles.selection import active_bundle

    library = ProfileLibrary.of(find_app_dirs())
    chosen = active_bundle(library.settings)
    everywhere = library.settings.read().bundle.app
    found: dict[str, JSONObject] = {}
    for file in library.found("bundle"):
        found[file.name] = _fields(file.level, str(file.path), file.refusal is None)
    for name, source in library.added.items():
        found.setdefault(name, _fields("added", None, source=source))
    listed: list[JSONValue] = []
    rows = []
    for name, fields in sorted(found.items()):
        marks = {"active": name == chosen, "every_session": name in everywhere}
        listed.append({"name": name, **marks, **fields})
        mark = "+" if name in everywhere else ""
        if name == chosen:
            mark = "*"
        level = str(fields["level"])
        if not fields["trusted"]:
            level += ", not trusted"
        where = one_line(str(fields["source"] or fields["path"]), 200)
        rows.append((mark, one_line(name), level, where))
    if output == "json":
        say_json(listed)
    else:
        heads = ("", "NAME", "LEVEL", "WHERE")
        say_table(heads, rows, empty="There is no bundle.")


def _fields(
    level: str, path: str | None, trusted: bool = True, source: str | None = None
) -> JSONObject:
    return {"level": level, "trusted": trusted, "path": path, "source": source}


@bundle.command("use")
@click.argument("name")
@scope_option
def _use(name: str, scope: str) -> None:
    """Use the bundle NAME for new sessions, in place of a profile; it must be sound."""
    from amplifier.app.profiles.selection import as_bundle
    from amplifier.app.sessions.activation import activate

    report_choice("bundle", activate(as_bundle(name), scope, find_app_dirs()))


@bundle.command("reset")
@scope_option
def _reset(scope: str) -> None:
    """Use no bundle any more; the profile counts again."""
    from amplifier.app.settings.changes import change

    notice(f"No bundle is active by {change(scope, ('bundle', 'active'), None)}")


@bundle.command("current")
def _current() -> None:
    """Print the name of the active bundle."""
    from amplifier.app.profiles.selection import active_bundle
    from amplifier.app.settings.settings import load_settings

    chosen = active_bundle(load_settings(find_app_dirs()))
    if chosen is None:
        notice("No bundle is active.")
    else:
        say(one_line(chosen, 300))


@bundle.command("add")
@click.argument("address")
@click.option(
    "--name", metavar="NAME", help="The name to add it under; default its own."
)
@flag("--app", help="Let every session have it, below its profile or bundle.")
@scope_option
def _add(address: str, name: str | None, app: bool, scope: str) -> None:
    """Add the bundle at ADDRESS under a name: a file, a folder, or git+https://host/path@ref#subdirectory=folder.

    What has to be fetched, for it and for what it includes, is fetched now, and its commits are pinned.
    """
    from amplifier.app.profiles.added_bundles import add_bundle

    added, path = add_bundle(
        find_app_dirs(), address, name=name, every_session=app, scope=scope
    )
    say(added)
    notice(f"added {'to every session ' if app else ''}by {path}")


@bundle.command("update")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@update_options
@output_option
def _update(names: tuple[str, ...], dry_run: bool, yes: bool, output: str) -> None:
    """Bring bundles, and what they include, to what their repositories are now.

    Without a NAME those that were added, the active one, and those of every session. All are fetched and read first;
    what changed is shown with its commits and hashes, and pinned once you agreed.
    """
    from amplifier.app.profiles.added_bundles import refresh_bundles

    report_refresh(
        refresh_bundles(find_app_dirs(), names),
        dry_run=dry_run,
        yes=yes,
        output=output,
    )


@bundle.command("remove")
@click.argument("name")
@scope_option
@click.pass_context
def _remove(ctx: click.Context, name: str, scope: str) -> None:
    """Forget the bundle NAME, which was added; its files stay where they are."""
    from amplifier.app.profiles.added_bundles import remove_bundle

    path = remove_bundle(find_app_dirs(), name, scope=scope)
    if path is None:
        notice(f"No bundle {one_line(name)} was added in the scope {scope}.")
        ctx.exit(1)
    notice(f"{one_line(name)} is removed from {path}")


def _composed(name: str | None) -> Composition:
    from amplifier.app.plans.base_plans import PlanOptions
    from amplifier.app.profiles.selection import active_bundle, as_bundle
    from amplifier.app.sessions.composition import compose
    from amplifier.app.settings.settings import load_settings
    from amplifier_sdk.errors import ConfigError, Problem

    dirs = find_app_dirs()
    name = name or active_bundle(load_settings(dirs))
    if name is None:
        problem = Problem(
            "",
            "no bundle is active; name one, or choose it with 'amplifier bundle use NAME'",
        )
        raise ConfigError([problem], subject="choice of bundles")
    return compose(PlanOptions(profile=as_bundle(name)), dirs, fill=False)


add_looking(bundle, "bundle", _composed)
