"""Spans: which turn, and which step of it, the running code belongs to.

A span is a node in a context variable, so that every task and thread that a step starts inherits it. Its
ids are made when somebody first asks: an event that nobody hears costs no id.
"""

from __future__ import annotations

from contextvars import ContextVar
from random import getrandbits
from typing import Final

__all__ = ["Span", "current_span", "current_turn_id"]


class Span:
    """One step of a turn: the turn itself, a provider call or a tool call."""

    __slots__ = ("_fields", "_id", "_turn_id", "iteration", "parent", "session_id")

    def __init__(self, session_id: str, parent: Span | None = None, iteration: int | None = None) -> None:
        self.session_id = session_id
        self.parent = parent
        self.iteration: int | None = iteration if iteration is not None or parent is None else parent.iteration
        self._id: str | None = None
        self._turn_id: str | None = None
        self._fields: dict[str, object] | None = None

    @property
    def span_id(self) -> str:
        """The step's id: 16 hexadecimal digits, as OpenTelemetry writes them."""
        if self._id is None:
            self._id = f"{getrandbits(64):016x}"
        return self._id

    @property
    def turn_id(self) -> str:
        """The id of the turn the step belongs to: 32 hexadecimal digits."""
        if self._turn_id is None:
            inherits = self.parent is not None and self.parent.session_id == self.session_id
            self._turn_id = self.parent.turn_id if inherits and self.parent else f"{getrandbits(128):032x}"
        return self._turn_id

    @property
    def fields(self) -> dict[str, object]:
        """What every event of this step carries; do not change it."""
        if self._fields is None:
            parent = None if self.parent is None else self.parent.span_id
            self._fields = {"turn_id": self.turn_id, "span_id": self.span_id, "parent_span_id": parent}
            if self.iteration is not None:
                self._fields["iteration"] = self.iteration
        return self._fields


current_span: Final[ContextVar[Span | None]] = ContextVar("amplifier_span", default=None)
"""The span of the running step; a child session's turn has the parent's tool call as its parent."""


def current_turn_id() -> str:
    """Return the id of the running turn; empty outside one."""
    span = current_span.get()
    return span.turn_id if span is not None else ""
