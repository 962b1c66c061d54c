"""What a session is doing and what it did, at the moment somebody asks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal, TypeAlias, cast

import attrs

from amplifier.kernel.budgets.ledger import Ledger
from amplifier.kernel.sessions.turns import TurnQueue
from amplifier_sdk.convert import to_json
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["SessionState", "SessionStatus", "status_of"]

SessionState: TypeAlias = Literal["running", "completed", "failed", "cancelled"]
"""A session runs until it is cleaned up; then its last turn says how it ended."""


@attrs.frozen(kw_only=True)
class SessionStatus:
    """A session's state and figures; times are in UTC.

    What child sessions spent is in the figures. `total_messages` counts what the session's turns exchanged:
    prompts, answers and tool results. `last_error` has `type` and `message`.
    """

    session_id: str
    started_at: datetime
    ended_at: datetime | None = None
    status: SessionState = "running"
    total_messages: int = 0
    tool_invocations: int = 0
    tool_successes: int = 0
    tool_failures: int = 0
    total_input_tokens: int = 0
    total_output_tokens: int = 0
    cost_usd: Decimal | None = None
    last_activity: datetime | None = None
    last_error: Mapping[str, JSONValue] | None = None

    def to_dict(self) -> dict[str, JSONValue]:
        """Write the status as plain JSON data, without what is not known: times as ISO 8601, a cost as text."""
        return cast("dict[str, JSONValue]", to_json(self))


def status_of(
    session_id: str,
    turns: TurnQueue,
    ledger: Ledger,
    started_at: float,
    ended_at: float | None,
) -> SessionStatus:
    """Put a session's status together; times are in seconds since the epoch."""
    spent = ledger.spending
    usage, error = spent.usage, turns.last_error
    return SessionStatus(
        session_id=session_id,
        started_at=_moment(started_at),
        ended_at=None if ended_at is None else _moment(ended_at),
        status="running" if ended_at is None else turns.status,
        total_messages=turns.count
        + spent.children
        + spent.provider_calls
        + spent.tool_calls,
        tool_invocations=spent.tool_calls,
        tool_successes=spent.tool_calls - spent.tool_failures,
        tool_failures=spent.tool_failures,
        total_input_tokens=usage.input_tokens if usage else 0,
        total_output_tokens=usage.output_tokens if usage else 0,
        cost_usd=usage.cost_usd if usage else None,
        last_activity=None if turns.ended_at is None else _moment(turns.ended_at),
        last_error=None if error is None else {"type": error[0], "message": error[1]},
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
