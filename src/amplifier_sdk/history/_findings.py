"""What may be wrong with a history, in words for a person and for a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, cast

import attrs

from amplifier_sdk.convert import to_json
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.values import Value

__all__ = ["HistoryFinding", "HistoryProblem"]

HistoryProblem: TypeAlias = Literal[
    "duplicate_call",
    "duplicate_result",
    "empty_answer",
    "misplaced_result",
    "mismatched_id",
    "missing_id",
    "orphan_result",
    "unanswered_call",
    "unreadable_message",
]
"""What vendors refuse in a history, or what keeps one from being read at all."""

_TEXTS: Final[Mapping[HistoryProblem, tuple[str, str]]] = {
    "duplicate_call": (
        "A call has the id of an earlier one",
        "the call and its result get an id of their own",
    ),
    "duplicate_result": (
        "A call has a second result",
        "the first one stays, or the one that was not made up",
    ),
    "empty_answer": ("An answer has neither text nor calls", "it is left out"),
    "misplaced_result": (
        "A result does not stand directly after its call, in the calls' order",
        "it is moved there",
    ),
    "mismatched_id": (
        "A result and its block name two calls",
        "both name the call that there is",
    ),
    "missing_id": ("A call or a result has no id", "it gets one"),
    "orphan_result": ("A result answers no call", "it is left out"),
    "unanswered_call": (
        "A call has no result",
        "a result that says so is put after it",
    ),
    "unreadable_message": ("A message cannot be read", "its content becomes text"),
}


@attrs.frozen(kw_only=True, eq=False, repr=False)
class HistoryFinding(Value):
    """One thing that is wrong with a history.

    `index` is the message's, from 0, in the history as it was given; `call_id` and `name` are the call's that it is
    about, as they stand there.
    """

    problem: HistoryProblem
    index: int
    call_id: str | None = None
    name: str | None = None

    @property
    def text(self) -> str:
        """What is wrong, in a sentence without a full stop."""
        return _TEXTS[self.problem][0]

    @property
    def remedy(self) -> str:
        """What a repair does about it."""
        return _TEXTS[self.problem][1]

    def to_dict(self) -> JSONObject:
        """Write the finding as events carry it."""
        # without what is `None`: an event's data name what there is
        known = cast("JSONObject", to_json(self))
        return {**known, "text": self.text, "remedy": self.remedy}

    def __str__(self) -> str:
        if self.call_id is not None:
            # a result that answers no call has no name
            about = f" ({self.name or 'call'} {self.call_id!r})"
        else:
            about = ""
        return f"Message {self.index}: {self.text}{about}; {self.remedy}"
