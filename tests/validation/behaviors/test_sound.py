"""The suites of all types pass on the smallest sound modules."""

from __future__ import annotations

from amplifier.testing.conformance import (
    conformance,
)
from tests.validation.behaviors.sound import (
    HOOK_SAMPLES,
    PROVIDER_SAMPLES,
    TOOL_SAMPLES,
    Echo,
    Guard,
    Notebook,
    Parrot,
    Round,
    mounting,
)

TestTool = conformance("tool", mounting(Echo), samples=TOOL_SAMPLES)
TestProvider = conformance("provider", Parrot, samples=PROVIDER_SAMPLES)
TestHook = conformance("hook", Guard, samples=HOOK_SAMPLES)
TestOrchestrator = conformance("orchestrator", Round)
TestContext = conformance("context", Notebook)
