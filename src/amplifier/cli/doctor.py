"""`amplifier doctor`: what keeps sessions from working here, and what helps."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._quiet import run_quietly
from amplifier.cli._tables import output_option, say_json
from amplifier.cli._terminal import has_colour, notice, one_line, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amplifier.app.doctor.findings import DoctorFinding, Status

__all__ = ["doctor"]

_MARKS: Final[dict[Status, tuple[str, str]]] = {
    "ok": ("ok", "green"),
    "warning": ("warn", "yellow"),
    "broken": ("BROKEN", "red"),
}


@click.command()
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds that importing the modules may take, and mounting one provider.",
)
@click.option(
    "--server",
    metavar="URL",
    help="Look at a server instead, by its address, or at the store of servers: files, or its URL.",
)
@output_option
@click.pass_context
def doctor(ctx: click.Context, timeout: float, server: str | None, output: str) -> None:
    """Look at everything that sessions rest on: a line for each thing, and what helps.

    Python, extras, your own folder, secrets, settings, profile, modules, providers and their keys, trust, the
    sandbox, stored sessions. The exit code is 1 where something is broken. Modules are imported in a process of
    their own; nothing is asked of a vendor.

    A server is asked with the token in AMPLIFIER_SERVER_TOKEN, where there is one.
    """
    if server is not None:
        ctx.exit(_write(_of_server(server, timeout), output))
    from amplifier.app.doctor.examination import examine

    found = run_quietly(ctx, partial(examine, find_app_dirs(), timeout=timeout))
    ctx.exit(_write(found, output))


def _of_server(target: str, timeout: float) -> list[DoctorFinding]:
    if target.startswith(("http://", "https://")):
        from amplifier.app.doctor.servers import check_server

        token = os.environ.get("AMPLIFIER_SERVER_TOKEN")
        return list(check_server(target, token, timeout))
    import anyio

    from amplifier.cli._server_stores import stores_of
    from amplifier.server.examination import examine_store

    return anyio.run(examine_store, stores_of(target))


def _write(found: Sequence[DoctorFinding], output: str) -> int:
    broken = [finding for finding in found if finding.status == "broken"]
    if output == "json":
        say_json(
            {"passed": not broken, "checks": [finding.to_dict() for finding in found]}
        )
    else:
        for finding in found:
            say(_line(finding))
        warned = sum(finding.status == "warning" for finding in found)
        notice(
            f"{len(broken)} broken, {warned} with warnings, {len(found) - len(broken) - warned} in order"
        )
    if broken:
        return 1
    return 0


def _line(finding: DoctorFinding) -> str:
    mark, colour = _MARKS[finding.status]
    if has_colour(sys.stdout):
        shown = click.style(f"{mark:<6}", fg=colour)
    else:
        shown = f"{mark:<6}"
    if finding.remedy:
        remedy = f" -> {one_line(finding.remedy, 300)}"
    else:
        remedy = ""
    return f"{shown}  {finding.area:<9}  {one_line(finding.message, 400)}{remedy}"
