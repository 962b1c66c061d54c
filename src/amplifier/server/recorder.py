"""The events of a running turn on their way to the store: redacted, joined, and in the order in which they came."""

from __future__ import annotations

from time import time
from typing import Final

import anyio
import attrs

from amplifier.server.retries import UNAVAILABLE, Retries
from amplifier_kit.redaction import SinkFilter, SinkRedactor, StrictRedactor
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import Lease, LogEntry, SessionStore

__all__ = ["TurnRecorder"]

_PIECES: Final = {
    "text_delta": "text",
    "thinking_delta": "text",
    "tool_call_delta": "arguments",
}
"""The events that are pieces of a text, and where each has it."""

_IDS: Final = frozenset({"type", "id", "session_id", "turn_id", "approval_id"})
_MAX_JOINED: Final = 2000
_RETRY: Final = 0.5
_LONGEST: Final = 5.0
_GATHERED: Final = 0.02
"""Seconds for which events wait for further ones, which go to the store together with them."""


@attrs.define(eq=False)
class TurnRecorder:
    """Stores the events of a turn; what waits for the store while it writes goes together with the next step.

    Args:
        store: where they go.
        lease: of whoever runs the turn.
        redactor: the session's, once it is open.
    """

    store: SessionStore
    lease: Lease
    redactor: SinkRedactor = attrs.field(factory=lambda: SinkRedactor(StrictRedactor()))
    _waiting: list[JSONObject] = attrs.field(factory=list)
    _piece: JSONObject | None = None
    _filter: SinkFilter | None = None
    _changed: anyio.Event = attrs.field(factory=anyio.Event)
    _writing: anyio.Lock = attrs.field(factory=anyio.Lock)

    def add(self, event: JSONObject) -> None:
        """Take an event."""
        key = _PIECES.get(str(event["type"]))
        if key is None:
            self._end_pieces()
            self._waiting.append(self.redacted(event))
        else:
            self._add_piece(event, key)
        self._changed.set()

    async def flush(self) -> None:
        """Store all that is known.

        Raises:
            LeaseLostError: somebody else writes the session now.
        """
        async with self._writing:
            events, self._waiting = self._waiting, []
            entries = [
                LogEntry(kind=str(event["type"]), data=event, at=time())
                for event in events
            ]
            if entries:
                try:
                    # a turn that ends meanwhile would lose them; stores end each of their steps in time
                    with anyio.CancelScope(shield=True):
                        await self.store.append(self.lease, "events", entries)
                except UNAVAILABLE:
                    self._waiting = [*events, *self._waiting]
                    raise

    async def run(self) -> None:
        """Store events as they come, until cancelled."""
        retries = Retries("server.events_not_stored", _RETRY, _LONGEST)
        while True:
            await self._changed.wait()
            await anyio.sleep(_GATHERED)
            self._changed = anyio.Event()
            try:
                await self.flush()
                retries.succeed()
            except UNAVAILABLE as error:
                # it may answer again before the lease ends
                await retries.wait(error, session=self.lease.session_id)
                self._changed.set()

    def _add_piece(self, event: JSONObject, key: str) -> None:
        """Take a piece of a text; a secret may reach over several."""
        text = event[key]
        is_same = self._piece is not None and _without(event, key) == _without(
            self._piece, key
        )
        if not is_same:
            self._end_pieces()
            self._filter = SinkFilter(self.redactor)
        assert self._filter is not None
        self._piece = event
        self._append(event, key, self._filter.feed(str(text)))

    def _end_pieces(self) -> None:
        piece, self._piece = self._piece, None
        if piece is not None and self._filter is not None:
            self._append(piece, _PIECES[str(piece["type"])], self._filter.end())

    def _append(self, event: JSONObject, key: str, text: str) -> None:
        if not text:
            return
        last = self._waiting[-1] if self._waiting else None
        if last is not None and _without(last, key) == _without(event, key):
            joined = str(last[key]) + text
            if len(joined) <= _MAX_JOINED:
                self._waiting[-1] = {**last, key: joined}
                return
        self._waiting.append({**event, key: text})

    def redacted(self, event: JSONObject) -> JSONObject:
        """Return an event without secrets; what says which event it is stays."""
        return {
            key: value if key in _IDS else self.redactor.redact(value)
            for key, value in event.items()
        }


def _without(event: JSONObject, key: str) -> JSONObject:
    return {name: value for name, value in event.items() if name != key}
