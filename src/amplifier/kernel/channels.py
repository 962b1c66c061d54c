"""Contribution channels: modules contribute, somebody collects.

A module registers a callback for a channel, or its plugin object implements the hook
`amplifier_contributions`, which is asked about every channel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import isawaitable

import anyio
import attrs

from amplifier.kernel.reports import report
from amplifier_sdk.values import Value

__all__ = ["Channels", "Contributor"]


@attrs.frozen(eq=False, repr=False)
class Contributor(Value):
    """One contributor of a channel."""

    name: str
    callback: Callable[[], object]


@attrs.define(eq=False, repr=False)
class Channels:
    """A session's channels; contributors answer in the order in which they registered."""

    table: dict[str, list[Contributor]] = attrs.field(factory=dict)

    def register(self, channel: str, name: str, callback: Callable[[], object]) -> None:
        """Add a contributor; one name may contribute several times.

        Raises:
            TypeError: the callback cannot be called.
        """
        if not callable(callback):
            raise TypeError(
                f"The contributor {name!r} of the channel {channel!r} must be callable; got {callback!r}"
            )
        self.table.setdefault(channel, []).append(Contributor(name, callback))

    async def collect(
        self, channel: str, besides: Iterable[Contributor] = (), *, timeout: float
    ) -> list[object]:
        """Ask each contributor, then those `besides`; `None` is dropped.

        One that fails, or does not answer within `timeout` seconds, is reported and skipped.
        """
        found = []
        for contributor in (*self.table.get(channel, ()), *besides):
            value: object = None
            with anyio.move_on_after(timeout) as scope:
                try:
                    value = contributor.callback()
                    if isawaitable(value):
                        value = await value
                except (Exception, SystemExit) as error:  # foreign code
                    report(
                        "channel.contributor_failed",
                        error,
                        channel=channel,
                        contributor=contributor.name,
                    )
                    continue
            if scope.cancelled_caught:
                report(
                    "channel.contributor_late",
                    channel=channel,
                    contributor=contributor.name,
                    seconds=timeout,
                )
            elif value is not None:
                found.append(value)
        return found
