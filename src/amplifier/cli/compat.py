"""`amplifier compat`: modules written for the original."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from amplifier.cli._quiet import run_quietly
from amplifier.cli._tables import output_option, say_json
from amplifier.cli._terminal import one_line, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amplifier.compat.check import CompatReport

__all__ = ["compat"]


@click.group()
def compat() -> None:
    """Bring modules along that were written for the original."""


@compat.command("check")
@click.argument("module", metavar="PATH|NAME")
@output_option
@click.pass_context
def _check(ctx: click.Context, module: str, output: str) -> None:
    """Check whether a module of the original runs here; nothing of it is run or imported.

    PATH is its project's folder, its package's or one file; NAME the id of an installed module. Shown are the names
    that it imports and which are missing, what differs for it, and whether it runs on trio. The exit code is 1 where
    a name is missing.
    """
    found = run_quietly(ctx, partial(_examine, module))
    if output == "json":
        say_json(found.to_dict())
    else:
        for line in _lines(found):
            say(one_line(line, 400))
    ctx.exit(0 if found.passed else 1)


async def _examine(module: str) -> CompatReport:
    from amplifier.compat.check import check_module, locate

    return check_module(locate(module))


def _lines(found: CompatReport) -> Iterator[str]:
    if not found.is_original:
        yield f"{found.path}: imports nothing of the original"
    for name in found.imports:
        mark = "ok     " if name.exists else "MISSING"
        yield f"{mark}  {name.text}  ({name.file.name}:{name.line})"
    for each in found.differences:
        yield f"differs  {each.name}: {each.meaning}  ({each.file.name}:{each.line})"
    needs = found.needs_asyncio
    if needs is None:
        yield "runs on asyncio and trio"
    else:
        yield (
            f"runs on asyncio alone: it imports {needs.module} ({needs.file.name}:{needs.line})"
        )
