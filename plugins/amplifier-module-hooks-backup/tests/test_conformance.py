"""The module has every behaviour of its type."""

from __future__ import annotations

from typing import Final

from amplifier.testing.conformance import HookSamples, conformance
from amplifier_module_hooks_backup import mount

SAMPLES: Final = HookSamples(
    payloads={
        "tool:pre": ({"tool_name": "write_file", "tool_input": {"file_path": "/etc"}},)
    },
    bad_config={"max_files": 0},
)

TestBackup = conformance("hook", mount, config={"max_files": 1}, samples=SAMPLES)
