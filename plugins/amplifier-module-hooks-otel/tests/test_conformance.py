"""The module has every behaviour of its type."""

from __future__ import annotations

from typing import Final

from amplifier.testing.conformance import HookSamples, conformance
from amplifier_module_hooks_otel import mount

SAMPLES: Final = HookSamples(bad_config={"queue_size": 0})

TestTelemetry = conformance("hook", mount, samples=SAMPLES)
