"""What models and people read about the limits of a turn, and about calls that were not run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from amplifier_sdk.errors import did_you_mean
from amplifier_sdk.results import ToolResult

__all__ = [
    "CALL_CANCELLED",
    "CALL_IN_DOUBT",
    "CALL_WITHHELD",
    "IN_DOUBT",
    "LAST_ANSWER",
    "RESULT_UNCHECKED",
    "call_limit_reached",
    "ended_early",
    "unknown_tool",
]

LAST_ANSWER: Final = (
    "A limit of this turn is reached. No tool can be used "
    "any more: answer now, with what you know so far."
)
"""What a model reads with the request whose answer is its last one."""

CALL_CANCELLED: Final = ToolResult.failure(
    "Not run: the turn was cancelled", type="cancelled"
)
"""The result of a call that was made after the turn was asked to stop."""

IN_DOUBT: Final = (
    "This call was started and then the program ended. Whether it had its effect is not known. It is not run again by"
    " itself: find out how things are before you repeat it."
)
"""What a model reads of a call that was started and whose end is not known."""

CALL_IN_DOUBT: Final = ToolResult.failure(IN_DOUBT, type="in_doubt")
"""The result of such a call in a turn that is continued."""

CALL_WITHHELD: Final = ToolResult.failure(
    "Not run: its arguments had a secret in them, which is stored nowhere, and the program ended before it started."
    " Make the call again",
    type="interrupted",
)
"""The result of a call that cannot run as the model made it, in a turn that is continued."""

RESULT_UNCHECKED: Final = ToolResult.failure(
    "The call ran, but the turn ended before its result was checked", type="cancelled"
)
"""What the history says of a call whose `tool:post` handlers did not finish: they may be there to withhold."""


def ended_early(answer: str, limit: str, amount: object) -> str:
    """Return what is added to the answer of a turn that a limit ended."""
    note = f"[The turn ended early: its limit {limit!r} of {amount} is reached.]"
    if answer:
        return f"\n\n{note}"
    return note


def call_limit_reached(limit: str, amount: object) -> ToolResult:
    """Return the result of a call that a limit did not allow."""
    whose = "turn"
    if limit.startswith("session_"):
        whose = "session"
    return ToolResult.failure(
        f"Not run: the {whose}'s limit of {amount} tool calls is reached", type="limit"
    )


def unknown_tool(name: str, known: Collection[str]) -> ToolResult:
    """Return the result of a call of a tool that there is not; it names the nearest one."""
    names = ", ".join(sorted(known)) or "none"
    hint = did_you_mean(name, list(known)) or "."
    return ToolResult.failure(
        f"There is no tool {name!r}{hint} Available: {names}", type="unknown_tool"
    )
