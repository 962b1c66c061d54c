"""What a session has been shown already, so that nothing is sent twice."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import attrs

__all__ = ["ContentDeduplicator", "ContextFile"]


@attrs.define
class ContextFile:
    """A content, and every path that has it."""

    paths: list[Path]
    content: str = attrs.field(repr=False)


@attrs.define(eq=False)
class ContentDeduplicator:
    """Remembers contents by their digest, for a whole session; the capability `mention_deduplicator`."""

    _digests: dict[str, str] = attrs.field(factory=dict, init=False)
    _known: dict[str, list[Path]] = attrs.field(factory=dict, init=False)

    def add_file(self, path: Path, content: str) -> bool:
        """Note a file and return whether its content is new; a known one is credited to the path as well."""
        return self.note(path, str(path), content) != "known"

    def note(self, path: Path, key: str, content: str) -> Literal["new", "changed", "known"]:
        """Note what a place holds, and tell whether the session has it.

        Args:
            path: the file.
            key: the place: the path, with its lines where only some are shown.
            content: what it holds.
        """
        digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        before = self._digests.get(key)
        self._digests[key] = digest
        paths = self._known.setdefault(digest, [])
        is_new = not paths
        if path not in paths:
            paths.append(path)
        if before is not None and before != digest:
            return "changed"
        return "new" if is_new else "known"

    def restore(self, digests: Mapping[str, str]) -> None:
        """Take over what a stored session was shown: digests by place."""
        for key, digest in digests.items():
            self._digests[key] = digest
            self._known.setdefault(digest, []).append(Path(key))

    def forget(self) -> None:
        """Forget everything: the history was given up."""
        self._digests.clear()
        self._known.clear()

    def digest_of(self, key: str) -> str | None:
        """Return the digest of what a place held when it was last shown."""
        return self._digests.get(key)

    def paths_of(self, path: Path) -> list[Path]:
        """Return every path that has the content which a file had when it was last shown."""
        digest = self._digests.get(str(path))
        return list(self._known.get(digest, ())) if digest is not None else []
