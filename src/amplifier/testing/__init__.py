"""What module authors test with: real parts that can be looked into, doubles with a script, conformance suites.

Names load when they are first used. The pytest plugin, in `amplifier.testing.pytest_plugin`, is loaded by pytest
where this distribution is installed; nothing else here needs pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.lazy import load_from

if TYPE_CHECKING:
    from amplifier.testing._scripts import ScriptedAnswer as ScriptedAnswer
    from amplifier.testing._scripts import ScriptedProvider as ScriptedProvider
    from amplifier.testing._scripts import answer as answer
    from amplifier.testing._scripts import call as call
    from amplifier.testing.auto_model import AutoModel as AutoModel
    from amplifier.testing.clock import VirtualClock as VirtualClock
    from amplifier.testing.conditions import wait_for as wait_for
    from amplifier.testing.contexts import MockContextManager as MockContextManager
    from amplifier.testing.coordinators import MockCoordinator as MockCoordinator
    from amplifier.testing.coordinators import TestCoordinator as TestCoordinator
    from amplifier.testing.coordinators import (
        create_test_coordinator as create_test_coordinator,
    )
    from amplifier.testing.journals import MemoryJournal as MemoryJournal
    from amplifier.testing.network import NetworkReachedError as NetworkReachedError
    from amplifier.testing.network import no_network as no_network
    from amplifier.testing.orchestrators import MockOrchestrator as MockOrchestrator
    from amplifier.testing.orchestrators import (
        ScriptedOrchestrator as ScriptedOrchestrator,
    )
    from amplifier.testing.people import MockApprovalSystem as MockApprovalSystem
    from amplifier.testing.people import MockDisplaySystem as MockDisplaySystem
    from amplifier.testing.recorder import EventRecorder as EventRecorder
    from amplifier.testing.sessions import create_test_session as create_test_session
    from amplifier.testing.sessions import mounting as mounting
    from amplifier.testing.tools import MockTool as MockTool

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
    "AutoModel": "auto_model",
    "NetworkReachedError": "network",
    "no_network": "network",
    "EventRecorder": "recorder",
    "MemoryJournal": "journals",
    "MockApprovalSystem": "people",
    "MockContextManager": "contexts",
    "MockCoordinator": "coordinators",
    "MockDisplaySystem": "people",
    "MockOrchestrator": "orchestrators",
    "MockTool": "tools",
    "ScriptedAnswer": "_scripts",
    "ScriptedOrchestrator": "orchestrators",
    "ScriptedProvider": "_scripts",
    "TestCoordinator": "coordinators",
    "VirtualClock": "clock",
    "answer": "_scripts",
    "call": "_scripts",
    "create_test_coordinator": "coordinators",
    "create_test_session": "sessions",
    "mounting": "sessions",
    "wait_for": "conditions",
}

# hidden from type checkers, which would accept any name otherwise
if not TYPE_CHECKING:
    __getattr__, __dir__ = load_from(__name__, _HOME)
