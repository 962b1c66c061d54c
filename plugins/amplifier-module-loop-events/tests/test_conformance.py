"""The module has every behaviour of its type."""

from __future__ import annotations

from amplifier.testing.conformance import Samples, conformance
from amplifier_module_loop_events import EventsLoop

TestEventsLoop = conformance(
    "orchestrator", EventsLoop, samples=Samples(bad_config={"temperature": "hot"})
)
