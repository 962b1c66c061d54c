"""Votes: what handlers answer when the loop asks which of several names it shall take.

A handler answers with `data` of the form `{"choice": NAME, "score": NUMBER, "reason": TEXT}`. The highest score
wins. What would be taken without any vote has the score 0: a vote must be above it, so that a handler may also
vote against a name by a score below. Of equal scores the first counts, in the handlers' order. An answer of
another form, for a name that is no candidate, or too late, is no vote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

import attrs

from amplifier_sdk.contracts import Hooks

__all__ = ["Vote", "winning_vote"]


@attrs.frozen(kw_only=True)
class Vote:
    """One handler's answer."""

    choice: str
    score: float
    reason: str = ""


async def winning_vote(
    hooks: Hooks,
    event: str,
    data: Mapping[str, object],
    candidates: Sequence[str],
    timeout: float,
) -> Vote | None:
    """Ask the handlers of an event, and return the vote that wins, or `None`.

    Args:
        hooks: the registry.
        event: what the handlers are asked.
        data: what they see.
        candidates: the names that may be chosen.
        timeout: seconds for each handler.
    """
    if not hooks.has_handlers(event):
        return None
    best: Vote | None = None
    for answer in await hooks.emit_and_collect(event, data, timeout):
        vote = _read(answer, candidates)
        if vote is not None and vote.score > (0.0 if best is None else best.score):
            best = vote
    return best


def _read(answer: Mapping[str, object], candidates: Sequence[str]) -> Vote | None:
    choice, score, reason = (
        answer.get("choice"),
        answer.get("score", 1.0),
        answer.get("reason", ""),
    )
    if not isinstance(choice, str) or choice not in candidates:
        return None
    if (
        isinstance(score, bool)
        or not isinstance(score, (int, float))
        # Infinity would win over every reason, and NaN compares as nothing.
        or not isfinite(score)
    ):
        return None
    return Vote(choice=choice, score=float(score), reason=str(reason))
