"""`amplifier plugin`: plugins of others, by what they may do; none runs before the person agreed to that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._options import flag, offline_option, yes_option
from amplifier.cli._shell_completion import plugins
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import alert, notice, one_line, say
from amplifier_sdk.legible import escaped, shortened

if TYPE_CHECKING:
    from amplifier.app.plugins.abilities import Ability
    from amplifier.app.plugins.installation import PluginChange, PluginInstaller

__all__ = ["plugin"]

_MAX_FILES: Final = 20
_MAX_DETAIL: Final = 4_000
_MAX_TEXTS: Final = 40
"""Agents, commands and skills of which nothing runs; all that runs is shown."""

_dry_run_option = flag("--dry-run", help="Only say what would change.")


@click.group()
def plugin() -> None:
    """Add, list, look at, update and remove plugins: hooks, commands, agents, skills and servers of others.

    Their folders have the shape of Claude Code's plugins, of its marketplaces, or of Agent Skills.
    """


@plugin.command("add")
@click.argument("source")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@offline_option
@flag("--force", help="Put it in place of one of its name.")
@_dry_run_option
@yes_option
def _add(
    source: str,
    names: tuple[str, ...],
    *,
    offline: bool,
    force: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Add a plugin, once you agreed to what it may do.

    SOURCE is OWNER/REPO[@REF] on GitHub, a path that begins with ./ or /, the https:// address of a repository or of an
    archive, or git+https://HOST/PATH[@REF][#subdirectory=FOLDER]. Of a marketplace NAME says which plugins; --dry-run
    without NAME lists them.
    """
    installer = _installer(offline=offline)
    if dry_run:
        _look(installer, source, names)
        return
    question = "Add it, and let it do this?"
    for change in installer.add(source, names, _asking(question, yes=yes), force=force):
        say(f"added {_named(change)}")
        notice(f"  from {one_line(change.staged.source, 300)}; new sessions have it")


@plugin.command("list")
@output_option
def _list(output: str) -> None:
    """List the plugins of your own folder and of this project, and whether they are used."""
    from amplifier.app.plugins.details import list_plugins

    shown = list_plugins(find_app_dirs())
    if output == "json":
        say_json([each.to_dict() for each in shown])
        return
    rows = [
        (
            one_line(each.name, 64),
            one_line(each.version, 40),
            each.level,
            each.state,
            one_line(each.source or str(each.folder), 200),
        )
        for each in shown
    ]
    empty = "There is no plugin; amplifier plugin add OWNER/REPO"
    say_table(("NAME", "VERSION", "LEVEL", "STATE", "SOURCE"), rows, empty=empty)
    for each in shown:
        if each.reason:
            notice(f"{one_line(each.name, 64)}: {one_line(each.reason, 500)}")


@plugin.command("show")
@click.argument("name", shell_complete=plugins)
@output_option
def _show(name: str, output: str) -> None:
    """Show what the plugin NAME is, and what it may do."""
    from amplifier.app.plugins.details import show_plugin

    found = show_plugin(name, find_app_dirs())
    if output == "json":
        say_json(found.to_dict())
        return
    say(f"{one_line(found.name, 64)} {one_line(found.version, 40)}".rstrip())
    state = f"{found.state}: {found.reason}" if found.reason else found.state
    lines = {
        "": found.description,
        "level": found.level,
        "state": state,
        "path": str(found.folder),
        "source": found.source or "",
        "commit": found.commit or "",
    }
    for label, text in lines.items():
        if text:
            say(f"  {label + ': ' if label else ''}{one_line(text, 500)}")
    if found.abilities:
        say("  it may:")
    for ability in found.abilities:
        say(f"    {_ability(ability)}")


@plugin.command("update")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=plugins)
@offline_option
@_dry_run_option
@yes_option
def _update(
    names: tuple[str, ...],
    *,
    offline: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Bring plugins to what their sources are now; what each may do then is compared and asked about.

    Without a NAME all that were added. Sessions use what you agreed to until then.
    """
    installer = _installer(offline=offline)
    question = "Update, and let them do this?"
    changes = installer.update(names, _asking(question, yes=yes), dry_run=dry_run)
    if not changes:
        notice("No plugin was added.")
    for change in changes:
        if not change.is_changed:
            say(f"unchanged {change.name}")
        elif dry_run:
            say(f"would change {change.name}")
            _describe_change(change, say)
        else:
            say(f"updated {_named(change)}")


@plugin.command("remove")
@click.argument("name", shell_complete=plugins)
def _remove(name: str) -> None:
    """Remove the plugin NAME, which was added."""
    notice(f"removed {_installer().remove(name)}")


def _installer(*, offline: bool = False) -> PluginInstaller:
    from amplifier.app.plugins.installation import PluginInstaller

    return PluginInstaller.of(find_app_dirs(), offline=offline)


def _look(installer: PluginInstaller, source: str, names: Sequence[str]) -> None:
    """Show what plugins may do; of a marketplace without a name, what it offers."""
    from amplifier.app.plugins.marketplaces import SeveralPluginsError

    try:
        with installer.look(source, names) as changes:
            for change in changes:
                _describe_change(change, say)
    except SeveralPluginsError as error:
        rows = [
            (plugin.name, one_line(plugin.description, 120))
            for plugin in sorted(error.plugins, key=lambda each: each.name)
        ]
        say_table(("NAME", "DESCRIPTION"), rows)


def _asking(question: str, *, yes: bool) -> Callable[[Sequence[PluginChange]], bool]:
    def agree(changes: Sequence[PluginChange]) -> bool:
        for change in changes:
            _describe_change(change, alert)
        return yes or click.confirm(question, default=False, err=True)

    return agree


def _describe_change(change: PluginChange, write: Callable[[str], None]) -> None:
    staged = change.staged
    write(f"{_named(change)}{_version_before(change)}")
    if staged.plugin.description:
        write(f"  {one_line(staged.plugin.description, 300)}")
    where = f" at {staged.commit}" if staged.commit else ""
    if staged.repository is None:
        write(f"  from {one_line(staged.source, 300)}{where}")
    else:
        write(f"  from {one_line(staged.repository, 300)}{where}")
        write(f"  which {one_line(staged.source, 300)} names")
    if change.before is not None and change.before.source != staged.source:
        write(f"  instead of the one from {one_line(change.before.source, 300)}")
    if change.refusal:
        write(f"  what is there: {one_line(change.refusal, 500)}")
    if change.abilities_before:
        _write_differences(change, write)
    elif staged.abilities:
        write("  it may:")
        _write_abilities("    ", staged.abilities, write)
    else:
        write("  it may do nothing.")
    for part in staged.unsupported:
        write(f"  without effect here: {part}")
    for problem in staged.plugin.problems:
        # Where it waits is nobody's place to look.
        message = problem.replace(f"{staged.plugin.root}/", "")
        write(f"  left out: {one_line(message, 300)}")


def _named(change: PluginChange) -> str:
    return f"{change.name} {one_line(change.staged.plugin.version, 40)}".rstrip()


def _version_before(change: PluginChange) -> str:
    """Say which version was there, where it is another one: a lower number is a step back."""
    if change.before is None or change.before.version == change.staged.plugin.version:
        return ""
    return f", before: {one_line(change.before.version, 40) or 'no version'}"


def _write_differences(change: PluginChange, write: Callable[[str], None]) -> None:
    for mark, abilities in (("-", change.lost), ("+", change.gained)):
        _write_abilities(f"  {mark} ", abilities, write)
    if not (change.lost or change.gained):
        write("  what it may do is the same")
    for name in change.changed[:_MAX_FILES]:
        write(f"  changed: {one_line(name, 200)}")
    if len(change.changed) > _MAX_FILES:
        write(f"  and {len(change.changed) - _MAX_FILES} more files")


def _write_abilities(
    lead: str, abilities: Sequence[Ability], write: Callable[[str], None]
) -> None:
    """Write what a plugin may do; no crowd of texts pushes what runs out of sight."""
    count = 0
    for ability in abilities:
        count += not ability.runs
        if ability.runs or count <= _MAX_TEXTS:
            write(f"{lead}{_ability(ability)}")
    if count > _MAX_TEXTS:
        write(f"{lead}and {count - _MAX_TEXTS} more that run nothing")
    running = len(abilities) - count
    if running > _MAX_TEXTS:
        write(f"{lead}{running} of these run something, or connect to somebody")


def _ability(ability: Ability) -> str:
    """Write what a plugin may do; every character of what runs shows, and no line of it looks like another ability."""
    shown = shortened(escaped(ability.detail), _MAX_DETAIL)
    detail = "\n            | ".join(shown.splitlines())
    head = f"{ability.kind:<8}{one_line(ability.name, 200)}"
    return f"{head}  {detail}".rstrip()
