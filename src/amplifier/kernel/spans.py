"""Spans: which turn, and which step of it, the running code belongs to; or which module's set-up.

A span is a node in a context variable, so that every task and thread that a step starts inherits it. Its
ids are made when somebody first asks: an event that nobody hears costs no id.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from random import getrandbits
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from anyio import CancelScope

__all__ = [
    "Span",
    "current_module",
    "current_span",
    "current_turn_id",
    "is_of_cancelled_turn",
]

_NO_FIELDS: Final[dict[str, object]] = {}


class Span:
    """One step of a turn: the turn itself, a provider call or a tool call.

    `turn` is the turn that it is a step of, `None` for a turn; `scope` is the one that
    has its deadline, `limit` how many seconds a step has that sets it when it first
    waits; `release_slot` gives up the slot of a tool call that runs beside others;
    `was_cancelled` says that it was a turn that ended because it was asked to stop.
    """

    __slots__ = (
        "_base",
        "_fields",
        "_id",
        "_turn_id",
        "iteration",
        "limit",
        "parent",
        "release_slot",
        "scope",
        "session_id",
        "turn",
        "was_cancelled",
    )

    def __init__(
        self, session_id: str, parent: Span | None = None, iteration: int | None = None
    ) -> None:
        self.session_id: str = session_id
        self.parent: Span | None = parent
        self.turn: Span | None = None
        self.iteration: int | None = iteration
        self.scope: CancelScope | None = None
        self.limit: float | None = None
        self.release_slot: Callable[[], AbstractAsyncContextManager[None]] | None = None
        self.was_cancelled: bool = False
        self._id: str | None = None
        self._turn_id: str | None = None
        if parent is not None:
            if iteration is None:
                self.iteration = parent.iteration
            if parent.session_id == session_id:
                # a child's turn has a parent too, but of another session, and is its
                # own turn
                self.turn = parent.turn or parent
        self._fields: dict[str, object] = _NO_FIELDS
        self._base: Mapping[str, object] | None = None

    @property
    def is_turn(self) -> bool:
        """Whether this is a turn and no step of one."""
        return self.turn is None

    @property
    def span_id(self) -> str:
        """The step's id: 16 hexadecimal digits, as OpenTelemetry writes them."""
        if self._id is None:
            # not secret, so the operating system need not be asked for randomness
            self._id = f"{getrandbits(64):016x}"
        return self._id

    @property
    def turn_id(self) -> str:
        """The id of the turn the step belongs to: 32 hexadecimal digits."""
        if self._turn_id is None:
            if self.turn is None:
                self._turn_id = f"{getrandbits(128):032x}"
            else:
                self._turn_id = self.turn.turn_id
        return self._turn_id

    def call_turn(self, turn_id: str) -> None:
        """Give a turn the id that it is recorded under; before anybody asks for one."""
        self._turn_id = turn_id

    def fields(self, base: dict[str, object]) -> dict[str, object]:
        """Return what every event of this step carries: a session's own fields and the step's ids.

        They are put together once for each step; do not change them. The events of another session, for
        example a parent's while its child runs, carry that session's own fields alone.
        """
        # the session replaces its fields as a whole, so identity shows a change
        if self._base is not base:
            self._base = base
            if base.get("session_id", self.session_id) != self.session_id:
                self._fields = base
                return base
            if self.parent is None:
                above = None
            else:
                above = self.parent.span_id
            self._fields = {
                **base,
                "turn_id": self.turn_id,
                "span_id": self.span_id,
                "parent_span_id": above,
            }
            if self.iteration is not None:
                self._fields["iteration"] = self.iteration
        return self._fields


current_span: Final[ContextVar[Span | None]] = ContextVar(
    "amplifier_span", default=None
)
"""The span of the running step; a child session's turn has the parent's tool call as its parent."""

current_module: Final[ContextVar[object]] = ContextVar("amplifier_module", default=None)
"""Whose code runs, as far as it is a module's: the plugin that is mounted, notified that the session is ready, or whose
handler is called; the coordinator where a turn calls its modules. Tasks inherit it; `None` is an application's."""


def current_turn_id() -> str:
    """Return the id of the running turn; empty outside one."""
    span = current_span.get()
    if span is not None:
        return span.turn_id
    return ""


def is_of_cancelled_turn() -> bool:
    """Whether the running code is part of a turn that was cancelled, for example a task that outlived it."""
    span = current_span.get()
    while span is not None:
        if span.was_cancelled:
            return True
        span = span.parent
    return False
