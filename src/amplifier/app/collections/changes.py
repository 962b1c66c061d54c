"""What a command does to a collection."""

from __future__ import annotations

from pathlib import Path

import attrs

__all__ = ["Change"]


@attrs.frozen(kw_only=True)
class Change:
    """What became, or would become, of a collection: from one state of its source to another.

    Args:
        name: the collection.
        source: from where it comes.
        before: its commit or digest, `None` where it was not installed.
        after: the same now.
        version: that its metadata gives now.
        path: its folder.
        is_restored: whether its files here are not the ones that were installed.
    """

    name: str
    source: str
    before: str | None
    after: str
    version: str
    path: Path
    is_restored: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether anything differs: in the source, or in the files here."""
        return self.before != self.after or self.is_restored
