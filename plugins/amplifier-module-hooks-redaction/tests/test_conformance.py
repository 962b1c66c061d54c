"""The module has every behaviour of its type."""

from __future__ import annotations

from typing import Final

from amplifier.testing.conformance import HookSamples, conformance
from amplifier_module_hooks_redaction import mount

SAMPLES: Final = HookSamples(
    bad_config={"rules": ["everything"]},
    payloads={
        "prompt:submit": (
            {"prompt": "It is ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5."},
        )
    },
)

TestRedaction = conformance("hook", mount, samples=SAMPLES)
