"""Histories: an append-only log and its views, what a turn left open, diagnosis and repair.

A context manager keeps its messages in a `MessageLog` and hands out views of it. `diagnose` and `repair` find and
mend what vendors refuse: calls and results that lost each other. `sendable` is the same for a provider's request.
Names load when they are first used: few sessions repair anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_sdk.history._calls import (
        OpenCall,
        closing_message,
        open_calls,
        tool_message,
    )
    from amplifier_sdk.history._findings import HistoryFinding, HistoryProblem
    from amplifier_sdk.history._log import MessageLog, MessageView, typed
    from amplifier_sdk.history._repair import (
        Repair,
        Sendable,
        diagnose,
        repair,
        sendable,
    )
    from amplifier_sdk.history._results import result_message

__all__ = [
    "HistoryFinding",
    "HistoryProblem",
    "MessageLog",
    "MessageView",
    "OpenCall",
    "Repair",
    "Sendable",
    "closing_message",
    "diagnose",
    "open_calls",
    "repair",
    "result_message",
    "sendable",
    "tool_message",
    "typed",
]

_HOME = {
    "_calls": ("OpenCall", "closing_message", "open_calls", "tool_message"),
    "_findings": ("HistoryFinding", "HistoryProblem"),
    "_log": ("MessageLog", "MessageView", "typed"),
    "_repair": ("Repair", "Sendable", "diagnose", "repair", "sendable"),
    "_results": ("result_message",),
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
