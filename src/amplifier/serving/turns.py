"""One turn of a served session: its state, its events, and the wish to stop it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias
from uuid import uuid4

import anyio
import attrs

from amplifier.serving.event_log import EventLog
from amplifier_kit.trace_context import TraceParent, caller_of_turn
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import Prompt
from amplifier_sdk.streaming import TurnFinished

__all__ = ["EndState", "OnDisconnect", "RequestedTurn", "TurnState"]

EndState: TypeAlias = Literal["finished", "failed", "cancelled"]
TurnState: TypeAlias = Literal["queued", "running"] | EndState
OnDisconnect: TypeAlias = Literal["continue", "cancel"]

_END_EVENTS: Final[Mapping[EndState, str]] = {
    "finished": "turn_result",
    "failed": "turn_failed",
    "cancelled": "turn_cancelled",
}


@attrs.define(eq=False)
class RequestedTurn:
    """A turn that somebody asked for.

    Args:
        prompt: what was asked.
        on_disconnect: whether it is cancelled when nobody reads its events any more.
        log: its events.
        caller: the span of whoever asked.
    """

    prompt: Prompt = attrs.field(repr=False)
    on_disconnect: OnDisconnect
    log: EventLog
    id: str = attrs.field(factory=lambda: str(uuid4()))
    state: TurnState = "queued"
    caller: TraceParent | None = attrs.field(factory=caller_of_turn)
    finished: TurnFinished | None = None
    end_event: JSONObject | None = None
    _readers: int = 0
    _is_cancelled: bool = False
    _is_immediate: bool = False
    _asked: anyio.Event = attrs.field(factory=anyio.Event)

    @property
    def is_ended(self) -> bool:
        """Whether nothing more happens in it."""
        return self.log.is_ended

    def begin(self, session_id: str) -> None:
        """Say that it runs."""
        self.state = "running"
        ids: JSONObject = {"session_id": session_id, "turn_id": self.id}
        self.log.append({"type": "turn_started", **ids})

    def end(self, state: EndState, **rest: JSONValue) -> None:
        """Say how it ended, once."""
        if self.is_ended:
            return
        self.state = state
        self.end_event = {"type": _END_EVENTS[state], **rest}
        self.log.append(self.end_event)
        self.log.end()

    def cancel(self, *, immediate: bool) -> None:
        """Ask whoever runs it to end it."""
        if self.state == "queued":
            self.end("cancelled")
        self._is_cancelled = True
        self._is_immediate |= immediate
        self._asked.set()
        self._asked = anyio.Event()

    async def cancellation(self) -> bool:
        """Wait until it is to be cancelled; return whether at once."""
        if not self._is_cancelled:
            await self._asked.wait()
        self._is_cancelled = False
        return self._is_immediate

    @contextmanager
    def reader(self) -> Iterator[None]:
        """Count a reader of its events; without any, it may have to end."""
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1
            if self.on_disconnect == "cancel" and not (self._readers or self.is_ended):
                self.cancel(immediate=True)

    def to_json(self) -> JSONObject:
        """Describe it."""
        result: JSONObject = {"turn_id": self.id, "state": self.state}
        if self.end_event is not None:
            rest = {
                key: value for key, value in self.end_event.items() if key != "type"
            }
            result.update(rest)
        return result
