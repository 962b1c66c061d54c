"""The module has every behaviour of its type."""

from __future__ import annotations

from amplifier.testing.conformance import Samples, conformance
from amplifier_module_loop_basic import BasicLoop

TestBasicLoop = conformance(
    "orchestrator", BasicLoop, samples=Samples(bad_config={"temperature": "hot"})
)
