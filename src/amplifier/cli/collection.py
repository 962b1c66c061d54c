"""`amplifier collection`: collections of profiles, agents, texts and modules, from where they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._options import flag, offline_option
from amplifier.cli._shell_completion import collections
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import notice, one_line, say

if TYPE_CHECKING:
    from amplifier.app.collections.installation import (
        CollectionChange,
        CollectionInstaller,
    )

__all__ = ["collection"]

_scope_option: Final = click.option(
    "--scope",
    type=click.Choice(["project", "user"]),
    default="user",
    show_default=True,
    help="Whose collections: the person's own, or the project's.",
)


@click.group()
def collection() -> None:
    """Install, list, check, update and remove collections."""


@click.command()
@click.argument("source")
@_scope_option
@offline_option
@flag("--force", help="Put it in place of one of its name.")
@output_option
def _install(source: str, scope: str, offline: bool, force: bool, output: str) -> None:
    """Install a collection, and those that it needs.

    SOURCE is a name of the catalogue, a folder, a .tar.gz or .zip file, the https:// address of one, or a repository:
    git+https://HOST/PATH[@REF][#subdirectory=FOLDER].
    """
    installer = _installer(scope, offline=offline)
    changes = installer.install(source, force=force)
    if output == "json":
        say_json([_change(change) for change in changes])
        return
    for change in changes:
        say(f"installed {change.name} {change.version}".rstrip())
        notice(
            f"  from {one_line(change.source, 300)} at {change.after}, in {change.path}"
        )


collection.add_command(_install, "install")
collection.add_command(_install, "add")


@collection.command("list")
@output_option
def _list(output: str) -> None:
    """List the collections that can be used, and those that are not and why."""
    from amplifier.app.collections.details import list_collections

    shown = list_collections()
    if output == "json":
        say_json([found.to_dict() for found in shown])
        return
    rows = [
        (
            found.name,
            one_line(found.version, 40),
            found.level,
            found.state,
            one_line(found.source or "", 200),
        )
        for found in shown
    ]
    say_table(("NAME", "VERSION", "LEVEL", "STATE", "SOURCE"), rows)


@collection.command("show")
@click.argument("name", shell_complete=collections)
@output_option
def _show(name: str, output: str) -> None:
    """Show what a collection holds, and from where it comes."""
    from amplifier.app.collections.details import show_collection

    found = show_collection(name)
    if output == "json":
        say_json(found.to_dict())
        return
    say(f"{found.name} {one_line(found.version, 40)}".rstrip())
    lines = {
        "": found.description,
        "level": found.level,
        "state": f"{found.state}: {found.reason}" if found.reason else found.state,
        "path": str(found.path),
        "source": found.source or "",
        "commit": found.commit or "",
        "hash": found.hash or "",
        "requires": ", ".join(
            f"{other} {versions}".rstrip() for other, versions in found.requires.items()
        ),
    }
    for label, text in lines.items():
        if text:
            say(f"  {label + ': ' if label else ''}{one_line(text, 400)}")
    for kind, names in found.resources.items():
        say(f"  {kind}:")
        for each in names:
            say(f"    {one_line(each, 200)}")


@collection.command("update")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=collections)
@_scope_option
@offline_option
@flag("--dry-run", help="Only say what would change.")
@output_option
def _update(
    names: tuple[str, ...], scope: str, offline: bool, dry_run: bool, output: str
) -> None:
    """Bring collections to what their sources are now; all that are installed where none is named."""
    installer = _installer(scope, offline=offline)
    changes = installer.update(names, check_only=dry_run)
    if output == "json":
        say_json([_change(change) for change in changes])
        return
    if not changes:
        notice("No collection is installed.")
    for change in changes:
        say(f"{_updated(change, dry_run=dry_run)} {change.name}")
        if change.before != change.after:
            notice(f"  {change.before} -> {change.after}")
        if change.is_restored:
            notice("  its files here are not the ones that were installed")


@collection.command("accept")
@click.argument("name", shell_complete=collections)
@_scope_option
def _accept(name: str, scope: str) -> None:
    """Keep a collection as you changed it: it is your own from now on, and no update touches it."""
    before = _installer(scope).accept(name)
    notice(f"{before.name} is your own now, as it is.")
    source = one_line(before.source, 300)
    if scope == "project":
        option = " --scope project"
    else:
        option = ""
    notice(
        f"It came from {source}; 'amplifier collection install {source}{option} --force' brings that back."
    )


@collection.command("remove")
@click.argument("name", shell_complete=collections)
@_scope_option
@flag("--force", help="Although others need it.")
def _remove(name: str, scope: str, force: bool) -> None:
    """Remove an installed collection."""
    path = _installer(scope).remove(name, force=force)
    notice(f"removed {path}")


@collection.command("verify")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=collections)
@_scope_option
@output_option
@click.pass_context
def _verify(
    ctx: click.Context, names: tuple[str, ...], scope: str, output: str
) -> None:
    """Compare collections with what was installed; the exit code is 1 if one differs."""
    from amplifier.app.collections.verification import verify

    verdicts = verify(_installer(scope).lock, names)
    if output == "json":
        say_json(
            [
                {
                    "name": v.name,
                    "state": v.state,
                    "path": str(v.path),
                    "reason": v.reason or None,
                }
                for v in verdicts
            ]
        )
    elif not verdicts:
        notice("No collection is installed.")
    for verdict in verdicts if output == "text" else ():
        say(
            f"{verdict.state}: {verdict.name}"
            + (f" ({one_line(verdict.reason, 1000)})" if verdict.reason else "")
        )
    ctx.exit(
        1 if any(verdict.state in ("changed", "missing") for verdict in verdicts) else 0
    )


def _installer(scope: str, *, offline: bool = False) -> CollectionInstaller:
    from amplifier.app.collections.installation import CollectionInstaller

    is_local = scope == "project"
    return CollectionInstaller.of(find_app_dirs(), local=is_local, offline=offline)


def _updated(change: CollectionChange, *, dry_run: bool) -> str:
    if not change.is_changed:
        return "unchanged"
    if dry_run:
        return "would change"
    if change.before != change.after:
        return "updated"
    return "restored"


def _change(change: CollectionChange) -> dict[str, object]:
    return {
        "name": change.name,
        "version": change.version,
        "source": change.source,
        "before": change.before,
        "after": change.after,
        "changed": change.is_changed,
        "path": str(change.path),
    }
