"""Sources that may be pinned anew, as a person agrees to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from amplifier.cli._options import OptionGroup, flag
from amplifier.cli._tables import say_json
from amplifier.cli._terminal import alert, notice, one_line, say

if TYPE_CHECKING:
    from amplifier.app.sources.pins import Pin
    from amplifier.app.sources.updates import Refresh, SourceChange

__all__ = ["report_refresh", "update_options"]

update_options: Final = OptionGroup(
    flag("--dry-run", help="Only say what would change."),
    flag("-y", "--yes", help="Pin what changed without asking."),
)
"""Adds `--dry-run` and `--yes`."""


def report_refresh(refresh: Refresh, *, dry_run: bool, yes: bool, output: str) -> None:
    """Show what changed, pin it once the person agreed, and tell what became of each source.

    Raises:
        AmplifierError: the person did not agree.
        ConfigError: the lock file is damaged.
        OSError: the lock file cannot be written.
    """

    def agree(changes: Sequence[SourceChange]) -> bool:
        for change in changes:
            _describe(change)
        # On standard error, since standard output may be JSON for a program.
        return yes or click.confirm("Pin it as it is now?", default=False, err=True)

    if dry_run:
        changes = refresh.changes
    else:
        changes = refresh.pin(agree)
    if output == "json":
        say_json([_to_json(change) for change in changes])
        return
    if not changes:
        notice("No source is pinned.")
    for change in changes:
        if change.is_changed:
            verb = "would change" if dry_run else "updated"
        else:
            verb = "unchanged"
        say(f"{verb} {one_line(change.source, 300)}")
        if dry_run and change.is_changed:
            _describe(change)


def _describe(change: SourceChange) -> None:
    alert(one_line(change.source, 300))
    if change.before is None:
        before = "not pinned"
    else:
        before = f"{_version(change.before)} {change.before.hash}"
    alert(f"  {before}")
    alert(f"  -> {_version(change.after)} {change.after.hash}")


def _to_json(change: SourceChange) -> dict[str, object]:
    return {
        "source": change.source,
        "before": None if change.before is None else _version(change.before),
        "after": _version(change.after),
        "hash_before": None if change.before is None else change.before.hash,
        "hash_after": change.after.hash,
        "changed": change.is_changed,
    }


def _version(pin: Pin) -> str:
    return pin.commit or pin.version or ""
