"""The files of a project's folder that may be used: those that a person trusted, as they were then."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from amplifier.app.places import Places
from amplifier_sdk.kit.trust import PROJECT_FILES, Decision, TrustStore

__all__ = ["ProjectFiles"]


@attrs.define(eq=False)
class ProjectFiles:
    """What a project brings along, by kind; see `PROJECT_FILES`. Each kind is judged once.

    Args:
        places: where the project is.
        store: what was trusted; default the person's own.
    """

    places: Places
    store: TrustStore = attrs.field(factory=TrustStore.in_home)
    _decisions: dict[str, Decision] = attrs.field(factory=dict, init=False)

    def judge(self, kind: str) -> Decision | None:
        """Return whether the files of a kind may be used; `None` where the person's own folder is the project's."""
        if self.places.project is None:
            return None
        if kind not in self._decisions:
            self._decisions[kind] = self.store.require(self.places.root, kind, PROJECT_FILES[kind])
        return self._decisions[kind]

    def contents(self, kind: str) -> Mapping[str, bytes]:
        """Return the trusted files of a kind by their paths below the project; use these bytes, not the files."""
        decision = self.judge(kind)
        return decision.contents if decision is not None and decision.trusted else {}

    @property
    def withheld(self) -> tuple[Decision, ...]:
        """What was looked at and is not trusted, sorted by kind."""
        return tuple(found for _, found in sorted(self._decisions.items()) if not found.trusted)
