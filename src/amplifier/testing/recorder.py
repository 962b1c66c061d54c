"""A recorder of events: it hears them on a registry, or stands in for one."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Self

import anyio

from amplifier.kernel.turn.registry import HookRegistry
from amplifier_sdk.contracts import Coordinator, Hooks, Unregister
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import HookResult

__all__ = ["EventRecorder"]

FIRST = -1_000_000
"""A priority before every other: what is denied is recorded as well."""


class EventRecorder(HookRegistry):
    """Keeps the events it hears in `events`, as pairs of name and data, in order.

    It records what a registry emits (`EventRecorder.of(hooks)`), what a session emits (it is a hook module), what
    is given to `record`, and what is emitted through it: it is a registry itself, and can be given to an
    orchestrator as `hooks`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[str, dict[str, object]]] = []
        self._heard: anyio.Event | None = None
        self.listen(self)

    @classmethod
    def of(cls, hooks: Hooks, pattern: str = "*") -> Self:
        """Make a recorder that hears the events of a registry that match a pattern."""
        recorder = cls()
        recorder.listen(hooks, pattern)
        return recorder

    def listen(self, hooks: Hooks, pattern: str = "*") -> Unregister:
        """Hear the events of a registry that match a pattern; return what ends that."""
        # an observer: a recorder that fails must not deny what a test is about
        return hooks.register(pattern, self, FIRST, "event-recorder", decides=False)

    async def mount(
        self, coordinator: Coordinator, config: Mapping[str, JSONValue]
    ) -> Unregister:
        """Hear every event of a session: a recorder is a hook module."""
        return self.listen(coordinator.hooks)

    async def __call__(
        self, event: str, data: Mapping[str, object] | None
    ) -> HookResult:
        """Record one event and let it continue."""
        return await self.record(event, data)

    async def record(
        self, event: str, data: Mapping[str, object] | None = None
    ) -> HookResult:
        """Record one event; its data are copied, their values stay as they are."""
        self.events.append((str(event), dict(data or {})))
        if self._heard is not None:
            self._heard.set()
            self._heard = None
        return HookResult()

    # -- what was heard

    @property
    def names(self) -> list[str]:
        """The names of the events, in order."""
        return [name for name, _ in self.events]

    def get_events(
        self, event_type: str | None = None
    ) -> list[tuple[str, dict[str, object]]]:
        """Return the events, or those whose name is `event_type` or matches it as a pattern."""
        return [
            entry
            for entry in self.events
            if event_type is None or fnmatchcase(entry[0], event_type)
        ]

    def data(self, event: str) -> list[dict[str, object]]:
        """Return what each event of a name or pattern carried."""
        return [data for _, data in self.get_events(event)]

    def one(self, event: str) -> dict[str, object]:
        """Return what the only event of a name or pattern carried.

        Raises:
            LookupError: there is none, or more than one.
        """
        found = self.data(event)
        if len(found) != 1:
            raise LookupError(
                f"{len(found)} events match {event!r}; heard: {', '.join(self.names) or 'nothing'}"
            )
        return found[0]

    def clear(self) -> None:
        """Forget what was heard."""
        self.events.clear()

    async def wait_for(
        self, event: str, *, count: int = 1, timeout: float = 5.0
    ) -> dict[str, object]:
        """Wait until `count` events of a name or pattern were heard; return what the last of them carried.

        Raises:
            TimeoutError: they were not heard within `timeout` seconds; names what was.
        """
        with anyio.move_on_after(timeout):
            while len(found := self.data(event)) < count:
                self._heard = self._heard or anyio.Event()
                await self._heard.wait()
            return found[count - 1]
        heard = ", ".join(self.names) or "nothing"
        raise TimeoutError(
            f"{len(self.data(event))} of {count} {event!r} within {timeout:g} s; heard: {heard}"
        )
