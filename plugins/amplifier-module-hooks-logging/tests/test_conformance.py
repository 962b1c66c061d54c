"""The module has every behaviour of its type."""

from __future__ import annotations

from typing import Final

from amplifier.testing.conformance import HookSamples, conformance
from amplifier_module_hooks_logging import mount

SAMPLES: Final = HookSamples(bad_config={"max_text": 0})

TestLogging = conformance("hook", mount, samples=SAMPLES)
