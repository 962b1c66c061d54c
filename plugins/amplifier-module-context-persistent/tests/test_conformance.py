"""The module has every behaviour of its type, those of contexts that outlive their session among them."""

from __future__ import annotations

from typing import Final

from amplifier.testing.conformance import Samples, conformance
from amplifier_module_context_persistent import mount

SAMPLES: Final = Samples(bad_config={"retention": {"max_messages": 0}})

LEAVE_OUT: Final = {
    "context.keeps-ten-thousand-messages": "ten thousand writes are as slow as the machine's threads; see test_growth"
}

TestPersistentContext = conformance(
    "context", mount, samples=SAMPLES, leave_out=LEAVE_OUT
)
