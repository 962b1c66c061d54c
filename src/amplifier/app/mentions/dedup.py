"""What a session has been shown already, so that nothing is sent twice."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import attrs

__all__ = ["ContentDeduplicator"]


@attrs.define(eq=False)
class ContentDeduplicator:
    """Remembers contents by their digest, for a whole session; the capability `mention_deduplicator`."""

    _digests: dict[str, str] = attrs.field(factory=dict, init=False)
    _known: set[str] = attrs.field(factory=set, init=False)

    def add_file(self, path: Path, content: str) -> bool:
        """Note a file and return whether its content is new."""
        return self.note(str(path), content) != "known"

    def note(self, key: str, content: str) -> Literal["new", "changed", "known"]:
        """Note what a place holds, and tell whether the session has it.

        Args:
            key: the place: a path, with its lines where only some are shown.
            content: what it holds.
        """
        digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        before, is_known = self._digests.get(key), digest in self._known
        self._digests[key] = digest
        self._known.add(digest)
        if before is not None and before != digest:
            return "changed"
        if is_known:
            return "known"
        return "new"

    def restore(self, digests: Mapping[str, str]) -> None:
        """Take over what a stored session was shown: digests by place."""
        self._digests.update(digests)
        self._known.update(digests.values())

    def forget(self) -> None:
        """Forget everything: the history was given up."""
        self._digests.clear()
        self._known.clear()

    def digest_of(self, key: str) -> str | None:
        """Return the digest of what a place held when it was last shown."""
        return self._digests.get(key)
