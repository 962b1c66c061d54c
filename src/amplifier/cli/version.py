"""`amplifier version`: what is installed."""

from __future__ import annotations

import json

import click

from amplifier.cli._options import debug_option

__all__ = ["version"]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@debug_option
def version(as_json: bool) -> None:
    """Show the versions of Amplifier, Python and the installed modules."""
    import attrs  # with importlib.metadata: other commands start without them

    from amplifier.app.versions import read_versions

    versions = read_versions()
    if as_json:
        click.echo(json.dumps(attrs.asdict(versions)))
        return
    click.echo(f"amplifier {versions.amplifier}")
    click.echo(f"python {versions.python} on {versions.platform}")
    for distribution, number in versions.modules.items():
        click.echo(f"{distribution} {number}")
