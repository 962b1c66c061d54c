"""What a server holds at most, and how long it waits."""

from __future__ import annotations

import attrs

from amplifier_sdk.bounds import integer, seconds

__all__ = ["ServerLimits"]


@attrs.frozen(kw_only=True)
class ServerLimits:
    """The limits of a server; what one caller may do stands in its `Token`.

    Args:
        max_body_bytes: of a request.
        body_timeout: seconds in which a request's body has to be there.
        max_sessions: open at once, of all tokens.
        max_streams: of events that are read at once, of all tokens.
        max_queued_turns: waiting in one session.
        max_ended_turns: of one session whose events can still be read.
        max_events: of one turn that can be read again; earlier ones are a stated gap.
        max_event_bytes: the same in bytes.
        idle_timeout: seconds without a turn after which a session is closed.
        keep_alive: seconds without an event after which a reader of events gets a comment, and one that takes
            nothing is disconnected.
    """

    max_body_bytes: int = attrs.field(default=1_000_000, validator=integer(1))
    body_timeout: float = attrs.field(default=10.0, validator=seconds)
    max_sessions: int = attrs.field(default=1000, validator=integer(1))
    max_streams: int = attrs.field(default=2000, validator=integer(1))
    max_queued_turns: int = attrs.field(default=8, validator=integer(0))
    max_ended_turns: int = attrs.field(default=8, validator=integer(1))
    max_events: int = attrs.field(default=4096, validator=integer(1))
    max_event_bytes: int = attrs.field(default=4_000_000, validator=integer(1))
    idle_timeout: float = attrs.field(default=900.0, validator=seconds)
    keep_alive: float = attrs.field(default=15.0, validator=seconds)
