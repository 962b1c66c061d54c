"""Files that cannot be used although somebody wrote them to be: one of them keeps no other from being used."""

from __future__ import annotations

from pathlib import Path

import attrs

__all__ = ["InvalidFile"]


@attrs.frozen(kw_only=True)
class InvalidFile:
    """A file with problems. It keeps its name, so that no weaker file of that name takes its place unnoticed.

    Args:
        name: what it would be found under.
        path: the file.
        level: whose it is: `environment`, `project`, `user`, `bundled`.
        problem: what is wrong; names the file.
        is_untrusted: whether it is a project's, and nothing is wrong but that nobody trusted it.
    """

    name: str
    path: Path
    level: str
    problem: str
    is_untrusted: bool = False
