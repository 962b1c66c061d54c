"""What module authors test with: real parts that can be looked into, doubles with a script, conformance suites.

Names load when they are first used. The pytest plugin, in `amplifier.testing.pytest_plugin`, is loaded by pytest
where this distribution is installed; nothing else here needs pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier.testing._scripts import (
        ScriptedAnswer,
        ScriptedProvider,
        answer,
        call,
    )
    from amplifier.testing.auto_model import AutoModel
    from amplifier.testing.clock import VirtualClock
    from amplifier.testing.conditions import wait_for
    from amplifier.testing.contexts import MockContextManager
    from amplifier.testing.coordinators import (
        MockCoordinator,
        TestCoordinator,
        create_test_coordinator,
    )
    from amplifier.testing.journals import MemoryJournal
    from amplifier.testing.network import NetworkReachedError, no_network
    from amplifier.testing.orchestrators import MockOrchestrator, ScriptedOrchestrator
    from amplifier.testing.people import MockApprovalSystem, MockDisplaySystem
    from amplifier.testing.recorder import EventRecorder
    from amplifier.testing.sessions import create_test_session, mounting
    from amplifier.testing.tools import MockTool

__all__ = [
    "AutoModel",
    "EventRecorder",
    "MemoryJournal",
    "MockApprovalSystem",
    "MockContextManager",
    "MockCoordinator",
    "MockDisplaySystem",
    "MockOrchestrator",
    "MockTool",
    "NetworkReachedError",
    "ScriptedAnswer",
    "ScriptedOrchestrator",
    "ScriptedProvider",
    "TestCoordinator",
    "VirtualClock",
    "answer",
    "call",
    "create_test_coordinator",
    "create_test_session",
    "mounting",
    "no_network",
    "wait_for",
]

_HOME = {
    "_scripts": ("ScriptedAnswer", "ScriptedProvider", "answer", "call"),
    "auto_model": ("AutoModel",),
    "clock": ("VirtualClock",),
    "conditions": ("wait_for",),
    "contexts": ("MockContextManager",),
    "coordinators": ("MockCoordinator", "TestCoordinator", "create_test_coordinator"),
    "journals": ("MemoryJournal",),
    "network": ("NetworkReachedError", "no_network"),
    "orchestrators": ("MockOrchestrator", "ScriptedOrchestrator"),
    "people": ("MockApprovalSystem", "MockDisplaySystem"),
    "recorder": ("EventRecorder",),
    "sessions": ("create_test_session", "mounting"),
    "tools": ("MockTool",),
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
