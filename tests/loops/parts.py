"""The three loops, and sessions in which one of them runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from amplifier import AmplifierSession
from amplifier.testing.sessions import create_test_session
from amplifier_kit.scripted import ScriptedProvider
from amplifier_module_loop_basic import BasicLoop
from amplifier_module_loop_events import EventsLoop
from amplifier_module_loop_streaming import StreamingLoop
from amplifier_sdk import Loop

__all__ = ["LOOPS", "open_loop"]

LOOPS: Final[Mapping[str, type[Loop]]] = {
    "basic": BasicLoop,
    "streaming": StreamingLoop,
    "events": EventsLoop,
}


def open_loop(
    loop: str,
    provider: ScriptedProvider,
    *tools: object,
    config: Mapping[str, object] | None = None,
    limits: Mapping[str, object] | None = None,
    hooks: Sequence[object] = (),
) -> AmplifierSession:
    """Make a session of one of the loops; it is not opened."""
    return create_test_session(
        provider=provider,
        orchestrator=LOOPS[loop],
        tools=tools,
        hooks=hooks,
        configs={"orchestrator": config or {}},
        settings={"limits": dict(limits or {})},
    )
