"""Spans: which turn, and which step of it, the running code belongs to.

A span is a node in a context variable, so that every task and thread that a step starts inherits it. Its
ids are made when somebody first asks: an event that nobody hears costs no id.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from random import getrandbits
from typing import Final

__all__ = ["Span", "current_span", "current_turn_id"]


class Span:
    """One step of a turn: the turn itself, a provider call or a tool call."""

    __slots__ = ("_base", "_fields", "_id", "_turn_id", "iteration", "parent", "session_id")

    def __init__(self, session_id: str, parent: Span | None = None, iteration: int | None = None) -> None:
        self.session_id: str = session_id
        self.parent: Span | None = parent
        self.iteration: int | None = iteration if iteration is not None or parent is None else parent.iteration
        self._id: str | None = None
        self._turn_id: str | None = None
        self._fields: dict[str, object] = {}
        self._base: Mapping[str, object] | None = None

    @property
    def span_id(self) -> str:
        """The step's id: 16 hexadecimal digits, as OpenTelemetry writes them."""
        if self._id is None:
            self._id = getrandbits(64).to_bytes(8).hex()
        return self._id

    @property
    def turn_id(self) -> str:
        """The id of the turn the step belongs to: 32 hexadecimal digits."""
        if self._turn_id is None:
            inherits = self.parent is not None and self.parent.session_id == self.session_id
            self._turn_id = self.parent.turn_id if inherits and self.parent else getrandbits(128).to_bytes(16).hex()
        return self._turn_id

    def fields(self, base: dict[str, object]) -> dict[str, object]:
        """Return what every event of this step carries: a session's own fields and the step's ids.

        They are put together once for each step; do not change them. The events of another session, for
        example a parent's while its child runs, carry that session's own fields alone.
        """
        if self._base is not base:
            self._base = base
            own = base.get("session_id", self.session_id) == self.session_id
            self._fields = {**base, **self._ids()} if own else base
        return self._fields

    def _ids(self) -> dict[str, object]:
        parent = None if self.parent is None else self.parent.span_id
        ids: dict[str, object] = {"turn_id": self.turn_id, "span_id": self.span_id, "parent_span_id": parent}
        if self.iteration is not None:
            ids["iteration"] = self.iteration
        return ids


current_span: Final[ContextVar[Span | None]] = ContextVar("amplifier_span", default=None)
"""The span of the running step; a child session's turn has the parent's tool call as its parent."""


def current_turn_id() -> str:
    """Return the id of the running turn; empty outside one."""
    span = current_span.get()
    return span.turn_id if span is not None else ""
