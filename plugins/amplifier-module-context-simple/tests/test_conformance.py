"""The module has every behaviour of its type, with and without instructions of its own."""

from __future__ import annotations

from typing import Final

from amplifier.testing.conformance import Samples, conformance
from amplifier_module_context_simple import SimpleContext

SAMPLES: Final = Samples(bad_config={"compact_threshold": 2})

TestSimpleContext = conformance("context", SimpleContext, samples=SAMPLES)

TestInstructedContext = conformance(
    "context",
    SimpleContext,
    config={"system_prompt": "Answer briefly.", "max_tokens": 50_000},
    samples=SAMPLES,
)
