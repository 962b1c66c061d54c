"""Histories: an append-only log and its views, what a turn left open, diagnosis and repair.

A context manager keeps its messages in a `MessageLog` and hands out views of it. `diagnose` and `repair` find and
mend what vendors refuse: calls and results that lost each other. `sendable` is the same for a provider's request.
Names load when they are first used: few sessions repair anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier_sdk.history._calls import OpenCall as OpenCall
    from amplifier_sdk.history._calls import closing_message as closing_message
    from amplifier_sdk.history._calls import open_calls as open_calls
    from amplifier_sdk.history._calls import tool_message as tool_message
    from amplifier_sdk.history._findings import HistoryFinding as HistoryFinding
    from amplifier_sdk.history._findings import HistoryProblem as HistoryProblem
    from amplifier_sdk.history._log import MessageLog as MessageLog
    from amplifier_sdk.history._log import MessageView as MessageView
    from amplifier_sdk.history._log import typed as typed
    from amplifier_sdk.history._repair import Repair as Repair
    from amplifier_sdk.history._repair import Sendable as Sendable
    from amplifier_sdk.history._repair import diagnose as diagnose
    from amplifier_sdk.history._repair import repair as repair
    from amplifier_sdk.history._repair import sendable as sendable
    from amplifier_sdk.history._results import result_message as result_message

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
    "HistoryFinding": "_findings",
    "HistoryProblem": "_findings",
    "MessageLog": "_log",
    "MessageView": "_log",
    "OpenCall": "_calls",
    "Repair": "_repair",
    "Sendable": "_repair",
    "closing_message": "_calls",
    "diagnose": "_repair",
    "open_calls": "_calls",
    "repair": "_repair",
    "result_message": "_results",
    "sendable": "_repair",
    "tool_message": "_calls",
    "typed": "_log",
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
