"""Bringing pinned sources to what they mean now: all is fetched and compared first, pinned once somebody agreed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import attrs

from amplifier.app.sources.cache import SourceCache
from amplifier.app.sources.locations import GitLocation, PackageLocation
from amplifier.app.sources.pins import Pin, look_at_package
from amplifier_sdk.errors import AmplifierError, ConfigError

__all__ = ["Consent", "Refresh", "SourceChange"]


@attrs.frozen(kw_only=True)
class SourceChange:
    """A source as it is pinned, `None` where it is not, and as it is now."""

    before: Pin | None
    after: Pin

    @property
    def source(self) -> str:
        """The source, as it is written."""
        return self.after.source

    @property
    def is_changed(self) -> bool:
        """Whether its commit, its version or its files differ."""
        before = self.before
        return before is None or before.state != self.after.state


Consent: TypeAlias = Callable[[Sequence[SourceChange]], bool]
"""Returns whether what changed may be pinned; it is asked once, and not where nothing changed."""


@attrs.define(eq=False)
class Refresh:
    """Looks what sources mean now. Nothing is pinned before `pin`; its functions block.

    Args:
        cache: fetches repositories, and keeps the pins.
        keeps: leave what is pinned as it is; look only at what is not.
    """

    cache: SourceCache
    keeps: bool = False
    _changes: dict[str, SourceChange] = attrs.field(factory=dict, init=False)
    _folders: dict[str, Path] = attrs.field(factory=dict, init=False)

    @property
    def changes(self) -> list[SourceChange]:
        """What was compared, in that order."""
        return list(self._changes.values())

    def open(self, location: GitLocation) -> Path:
        """Return the folder of what a repository means now.

        Raises:
            FetchError: it cannot be fetched.
            ConfigError: it holds what is refused.
            OSError: the cache cannot be written.
        """
        source = str(location)
        if self.keeps and self.cache.pins.find(source) is not None:
            return self.cache.open(location)
        if source not in self._folders:
            after, self._folders[source] = self.cache.fetch(location)
            self._note(after)
        return self._folders[source]

    def look_at(self, location: PackageLocation) -> None:
        """Look at a package as it is installed.

        Raises:
            ConfigError: it is not installed.
        """
        after = look_at_package(location)
        if after is None:
            problem = "it is not installed; install it, or remove it with 'amplifier module remove'"
            raise ConfigError.of(str(location), problem, subject="lock file of modules")
        self._note(after)

    def pin(self, agree: Consent = lambda _: True) -> list[SourceChange]:
        """Pin what changed, if somebody agrees, and return all that was compared.

        Raises:
            AmplifierError: nobody agreed; the pins are as they were.
            ConfigError: the lock file is damaged.
            OSError: the lock file cannot be written.
        """
        changed = [change for change in self.changes if change.is_changed]
        if changed:
            if not agree(changed):
                raise AmplifierError("Nobody agreed, and nothing was changed")
            self.cache.pins.set(*(change.after for change in changed))
        return self.changes

    def _note(self, after: Pin) -> None:
        self._changes[after.source] = SourceChange(
            before=self.cache.pins.find(after.source), after=after
        )
