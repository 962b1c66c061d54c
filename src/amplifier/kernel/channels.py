"""Contribution channels: modules contribute, somebody collects."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable

import attrs

from amplifier.kernel.reports import report

__all__ = ["Channels", "Contributor"]


@attrs.frozen
class Contributor:
    """One contributor of a channel."""

    name: str
    callback: Callable[[], object]


@attrs.define(eq=False)
class Channels:
    """A session's channels; contributors answer in the order in which they registered."""

    _channels: dict[str, list[Contributor]] = attrs.field(factory=dict)

    def register(self, channel: str, name: str, callback: Callable[[], object]) -> None:
        """Add a contributor; one name may contribute several times."""
        self._channels.setdefault(channel, []).append(Contributor(name, callback))

    async def collect(self, channel: str) -> list[object]:
        """Ask each contributor; `None` is dropped, a failing one is reported and skipped."""
        found = []
        for contributor in list(self._channels.get(channel, ())):
            try:
                value = contributor.callback()
                if isawaitable(value):
                    value = await value
            except Exception as error:  # foreign code
                report("channel.contributor_failed", error, channel=channel, contributor=contributor.name)
                continue
            if value is not None:
                found.append(value)
        return found
