"""`amplifier module`: the modules that are installed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import click

from amplifier.cli._options import debug_option
from amplifier.cli._terminal import notice, say

__all__ = ["TYPES", "module"]

TYPES: Final = ("context", "hook", "orchestrator", "provider", "tool")


@click.group()
def module() -> None:
    """Look at the modules that are installed."""


@module.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.option("--type", "kind", type=click.Choice(TYPES), help="Only modules of this type.")
@debug_option
def _list(as_json: bool, kind: str | None) -> None:
    """List the installed modules; none of them is imported."""
    import attrs  # with the runtime: help and wrong usage need neither

    from amplifier.app.modules import list_modules

    modules = list_modules(kind)
    if as_json:
        say(json.dumps([attrs.asdict(found) for found in modules], indent=2))
        return
    if not modules:
        notice("No module is installed." if kind is None else f"No {kind} is installed.")
        return
    rows = [("ID", "TYPE", "DISTRIBUTION", "LOCATION")]
    rows += [
        (found.id, found.type, f"{found.distribution} {found.version or ''}".rstrip(), found.location)
        for found in modules
    ]
    for line in _columns(rows):
        say(line)


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Pad every column to its longest cell, the last one apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
