"""`amplifier version`: what is installed."""

from __future__ import annotations

import json

import click

from amplifier.cli._tables import output_option
from amplifier.cli._terminal import say

__all__ = ["version"]


@click.command()
@output_option
def version(output: str) -> None:
    """Show the versions of Amplifier, Python and the installed modules."""
    import attrs  # with importlib.metadata: other commands start without them

    from amplifier.app.versions import read_versions

    versions = read_versions()
    if output == "json":
        say(json.dumps(attrs.asdict(versions)))
        return
    say(f"amplifier {versions.amplifier}")
    say(f"python {versions.python} on {versions.platform}")
    for distribution, number in versions.modules.items():
        say(f"{distribution} {number}")
