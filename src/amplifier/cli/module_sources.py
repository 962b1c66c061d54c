"""`amplifier module add | remove | show | why | update`: where modules come from, and changing that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._options import SCOPES, flag, offline_option, scope_option
from amplifier.cli._shell_completion import modules
from amplifier.cli._source_updates import report_refresh, update_options
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import alert, notice, one_line, say

if TYPE_CHECKING:
    from amplifier.app.modules.provenance import TracedModule
    from amplifier.app.sources.installers import Installer
    from amplifier.app.sources.locations import PackageLocation

__all__ = ["TYPES", "add", "remove", "show", "update", "why"]

TYPES: Final = ("context", "hook", "orchestrator", "provider", "tool")

_profile_option: Final = click.option(
    "-P",
    "--profile",
    metavar="NAME",
    help="The profile; default the one of the settings.",
)


@click.command("add")
@click.argument("module", metavar="ID", shell_complete=modules)
@click.option(
    "--source",
    help="A folder, git+https://HOST/PATH[@REF][#subdirectory=FOLDER], or a package.",
)
@click.option(
    "--type",
    "kind",
    type=click.Choice(TYPES),
    help="Its type; default the one that ID suggests.",
)
@scope_option
@flag("-y", "--yes", help="Install a package without asking.")
@offline_option
@output_option
def add(
    module: str,
    source: str | None,
    kind: str | None,
    scope: str,
    yes: bool,
    offline: bool,
    output: str,
) -> None:
    """Give a module to every session: fetch it, pin it, and name it in the settings.

    A package that is not installed is installed with uv or pip, once you agreed. No code of the module runs.
    """
    from amplifier.app.sources.cache import SourceCache
    from amplifier.app.sources.entries import add_module
    from amplifier.app.sources.git import Git

    def agree(installer: Installer, package: PackageLocation) -> bool:
        alert(
            f"{package} is not installed. This installs it, with what it requires, and can run its build:"
        )
        alert("  " + " ".join(installer.command(package)))
        return yes or click.confirm("Install it?", default=False, err=True)

    dirs = find_app_dirs()
    added = add_module(
        module,
        source,
        dirs=dirs,
        cache=SourceCache.of(dirs, Git(offline=offline)),
        agree=agree,
        kind=kind,
        scope=scope,
    )
    if output == "json":
        say_json(
            {
                "id": added.module,
                "type": added.type,
                "source": added.source,
                "commit": added.commit,
                "path": None if added.path is None else str(added.path),
                "settings": str(added.file),
                "lacks": list(added.lacks),
            }
        )
        return
    say(f"added {added.module} ({added.type}) to {added.file}")
    if added.commit:
        notice(f"  pinned at {added.commit}")
    if added.lacks:
        notice(
            f"  It requires what is not installed: {one_line(', '.join(added.lacks), 400)}"
        )


@click.command("remove")
@click.argument("module", metavar="ID", shell_complete=modules)
@click.option("--scope", type=click.Choice(SCOPES), help="Whose settings; default all.")
def remove(module: str, scope: str | None) -> None:
    """Take a module and its source out of the settings; a package stays installed."""
    from amplifier.app.sources.entries import remove_module

    for file, key in remove_module(module, find_app_dirs(), scope):
        notice(f"removed {'.'.join(map(str, key))} from {file}")


@click.command("show")
@click.argument("module", metavar="ID", shell_complete=modules)
@_profile_option
@output_option
def show(module: str, profile: str | None, output: str) -> None:
    """Show a module: its type, from where it comes, what it is pinned at; nothing is fetched or imported."""
    from amplifier.app.modules.provenance import trace_module

    traced = trace_module(module, profile)
    if output == "json":
        say_json(traced.to_dict(layers=False))
        return
    say(f"{traced.module} ({traced.type})")
    for label, text in traced.facts().items():
        say(f"  {label}: {one_line(text, 400)}")
    _require_found(traced)


@click.command("why")
@click.argument("module", metavar="ID", shell_complete=modules)
@_profile_option
@output_option
def why(module: str, profile: str | None, output: str) -> None:
    """Say where a module comes from: each layer in turn, what it says, and which one counts."""
    from amplifier.app.modules.provenance import trace_module

    traced = trace_module(module, profile)
    if output == "json":
        say_json(traced.to_dict())
        return
    rows = [
        (
            "*" if tried is traced.used else "",
            tried.layer,
            one_line(tried.place, 80),
            one_line(tried.result, 400),
        )
        for tried in traced.layers
    ]
    say_table(("", "LAYER", "PLACE", "RESULT"), rows)
    _require_found(traced)


@click.command("update")
@click.argument("modules", nargs=-1, metavar="[ID]...", shell_complete=modules)
@update_options
@offline_option
@output_option
def update(
    modules: tuple[str, ...], dry_run: bool, yes: bool, offline: bool, output: str
) -> None:
    """Bring module sources to what they mean now; all that were pinned where none is named.

    All are fetched first. What changed is shown with its commits or versions and hashes, and pinned once you agreed.
    """
    from amplifier.app.modules.provenance import refresh_modules, resolver_of

    refresh = refresh_modules(resolver_of(offline=offline), modules)
    report_refresh(refresh, dry_run=dry_run, yes=yes, output=output)


def _require_found(traced: TracedModule) -> None:
    if traced.used is None:
        refused = next(
            (tried.result for tried in traced.layers if tried.is_refused), None
        )
        raise click.ClickException(
            f"{traced.module} cannot be used: {refused or 'no layer has it'}"
        )
