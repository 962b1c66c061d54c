"""The module has every behaviour of its type."""

from __future__ import annotations

from typing import Final

from amplifier.testing.conformance import HookSamples, conformance
from amplifier_module_hooks_streaming_ui import mount

SAMPLES: Final = HookSamples(bad_config={"show_tool_lines": -1})

TestStreamingUI = conformance("hook", mount, samples=SAMPLES)
