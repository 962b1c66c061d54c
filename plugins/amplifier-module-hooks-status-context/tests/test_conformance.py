"""The module has every behaviour of its type."""

from __future__ import annotations

from typing import Final

from amplifier.testing.conformance import HookSamples, conformance
from amplifier_module_hooks_status_context import mount

SAMPLES: Final = HookSamples(bad_config={"git_timeout": 0})

# Whether git is asked makes no difference to any behaviour, and each of them would wait for it.
TestStatusContext = conformance(
    "hook", mount, config={"include_git": False}, samples=SAMPLES
)
