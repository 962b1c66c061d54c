"""The product's own files: what nothing that a model asks for may read or write, whoever carries it out.

Keys, answers to questions, trust, settings, transcripts, logs and backups stand in the person's own folder, and some of
them in a project's folder `.amplifier`. A call that read them would have the secrets of other sessions, and one that
wrote them would lift its own limits. This is the one list of them; file tools, sandboxes and mentions go by it. What
people write there for models to read is no such file, but is not written either.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.files.path_errors import Purpose
from amplifier_kit.files.path_rules import folded, path_parts

__all__ = ["CONTENT", "FOLDER", "ProductFiles"]

FOLDER: Final = ".amplifier"
"""What the product's folder is called in a project."""

CONTENT: Final = (
    "agents",
    "bundles",
    "collections",
    "commands",
    "context",
    "plugins",
    "profiles",
    "skills",
)
"""The folders in the product's whose files are written for models to read."""

_STATE: Final = (
    "audit",
    "backups",
    "cache",
    "logs",
    "mcp",
    "projects",
    "sessions",
    "trust",
)
_FETCHED: Final = ["cache", "sources"]
"""Where bundles and modules of others are, which hold texts for models as well."""

_NOTES: Final = (".md", ".txt")
"""How other files end that people write for models to read."""


@attrs.frozen
class ProductFiles:
    """The product's own folders, links resolved when they are asked for.

    Args:
        home: the person's own folder.
    """

    home: Path = attrs.field(factory=amplifier_home)

    def may_not_read(self, path: Path) -> bool:
        """Whether a path without a link in it is one of the product's own files, or the folder that lists them."""
        return self.refuses("read")(path_parts(str(path)))

    def refuses(self, purpose: Purpose) -> Callable[[Sequence[str]], bool]:
        """Return a predicate: whether the real parts of a path may not be used; links are resolved once."""
        home = self.parts

        def refused(parts: Sequence[str]) -> bool:
            # folded: a file system without case takes `.Amplifier` for the same
            # folder
            inner = _inner([folded(part) for part in parts], home)
            return inner is not None and (purpose == "write" or not _is_content(inner))

        return refused

    @property
    def parts(self) -> list[str]:
        """The real parts of the person's own folder, folded as names are compared."""
        return [folded(part) for part in path_parts(os.path.realpath(self.home))]

    @property
    def content(self) -> tuple[str, ...]:
        """The folders of the person's own in which a program may read."""
        return tuple(str(self.home / name) for name in CONTENT)


def _inner(parts: list[str], home: list[str]) -> list[str] | None:
    """Return the parts below the product's folder that a path lies in; `None` where it lies in none."""
    if parts[: len(home)] == home:
        return parts[len(home) :]
    if FOLDER in parts:
        return parts[parts.index(FOLDER) + 1 :]
    return None


def _is_content(inner: list[str]) -> bool:
    if inner[:2] == _FETCHED:
        return True
    # the folder itself counts as well, since listing it names sessions and keys
    if not inner or inner[0] in _STATE:
        return False
    return inner[0] in CONTENT or inner[-1].endswith(_NOTES)
