"""`amplifier module`: the modules that are installed, where they come from, the check of a package, and a new one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from amplifier.cli._options import flag
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import notice, say
from amplifier.cli.module_sources import TYPES, add, remove, show, update, why

__all__ = ["module"]


@click.group()
def module() -> None:
    """List, check, make, add and remove modules."""


for _command in (add, remove, show, update, why):
    module.add_command(_command)


@module.command("list")
@click.option(
    "--type", "kind", type=click.Choice(TYPES), help="Only modules of this type."
)
@output_option
def _list(kind: str | None, output: str) -> None:
    """List the installed modules; none of them is imported."""
    from amplifier.app.modules.own import list_modules

    modules = list_modules(kind)
    if output == "json":
        say_json(
            [
                {
                    "id": found.id,
                    "type": found.type,
                    "distribution": found.distribution or "",
                    "version": found.version,
                    "location": found.location or "",
                    "target": found.target,
                }
                for found in modules
            ]
        )
        return
    rows = [
        (
            found.id,
            found.type,
            f"{found.distribution} {found.version or ''}".rstrip(),
            found.location or "",
        )
        for found in modules
    ]
    heads = ("ID", "TYPE", "DISTRIBUTION", "LOCATION")
    say_table(heads, rows, empty=f"No {kind or 'module'} is installed.")


@module.command("types")
@output_option
def _types(output: str) -> None:
    """List the module types, with the section of a plan in which each stands."""
    from amplifier_sdk.hookspecs import KINDS

    types = sorted(KINDS, key=lambda kind: kind.name)
    plans = [
        f"session.{kind.section}" if kind.single else kind.section for kind in types
    ]
    if output == "json":
        say_json(
            [
                {"name": kind.name, "plan": plan, "prefixes": list(kind.prefixes)}
                for kind, plan in zip(types, plans, strict=True)
            ]
        )
        return
    rows = []
    for kind, plan in zip(types, plans, strict=True):
        ids = ", ".join(f"{prefix}…" for prefix in kind.prefixes)
        rows.append((kind.name, plan, ids))
    say_table(("TYPE", "PLAN", "IDS"), rows)


@module.command("validate")
@click.argument("target", nargs=-1, required=True, metavar="[TYPE] PATH")
@click.option(
    "--type",
    "kind",
    type=click.Choice(TYPES),
    help="Check it as this type; default what it declares.",
)
@flag(
    "--behavioral", help="Try every behaviour of the type as well, on each event loop."
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The configuration (YAML or JSON) with which it is mounted.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds that one step may take.",
)
@flag("-d", "--detail", help="Show the checks that passed as well.")
@output_option
@click.pass_context
def _validate(
    ctx: click.Context,
    target: tuple[str, ...],
    kind: str | None,
    behavioral: bool,
    config_file: Path | None,
    timeout: float,
    detail: bool,
    output: str,
) -> None:
    """Check the modules of a package: a repository, a package's folder, or an installed module's id.

    Their code runs in a process of its own. The exit code is 1 if a check found an error, 2 if PATH names
    nothing that can be checked.
    """
    path, kind = _target(target, kind)
    from amplifier.cli._report import write_report
    from amplifier.validation import validate
    from amplifier_kit.files.documents import read_mapping
    from amplifier_sdk.errors import ModuleError

    if config_file is None:
        config = None
    else:
        config = read_mapping(config_file)
    try:
        report = validate(
            path, type=kind, config=config, behavioral=behavioral, timeout=timeout
        )
    except ModuleError as error:
        raise click.UsageError(str(error), ctx) from error
    if output == "json":
        say(json.dumps(report.to_json(), indent=2))
    else:
        write_report(report, verbose=detail)
    ctx.exit(0 if report.passed else 1)


@module.command("new")
@click.argument("name")
@click.option(
    "--type",
    "kind",
    type=click.Choice(TYPES),
    help="Its type; default the one with which NAME begins.",
)
@click.option(
    "--path",
    "parent",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where its folder is made; default here.",
)
def _new(name: str, kind: str | None, parent: Path) -> None:
    """Make the package of a new module: source, tests, README, and what checks them.

    Its folder is called amplifier-module-ID; nothing that exists is touched.
    """
    from amplifier.app.scaffold import make_module

    made = make_module(name, kind, parent=parent)
    say(str(made.folder))
    notice("\n".join(f"  {file}" for file in made.files))
    notice(f"Next: cd {made.folder}, pip install -e '.[dev]', nox")


def _target(target: Sequence[str], kind: str | None) -> tuple[str, str | None]:
    """Read `PATH`, or `TYPE PATH`, the older spelling."""
    match target:
        case (path,):
            return path, kind
        case (first, path) if first in TYPES and kind in (None, first):
            return path, first
        case (first, _) if first in TYPES:
            raise click.UsageError(
                f"The type is given twice: {first} and --type {kind}."
            )
        case _:
            raise click.UsageError(
                f"Give one PATH, with a TYPE before it if at all: {', '.join(TYPES)}."
            )
