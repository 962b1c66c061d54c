"""Why a request has no answer of its server's."""

from __future__ import annotations

import attrs

__all__ = ["NoAnswer"]


@attrs.frozen(kw_only=True)
class NoAnswer:
    """The `data` of an error that a connection makes itself; no server can send one, since it sends JSON.

    Args:
        may_have_run: whether the server may have done what it was asked.
        ended_session: whether the server no longer knows the session.
    """

    may_have_run: bool
    ended_session: bool = False
