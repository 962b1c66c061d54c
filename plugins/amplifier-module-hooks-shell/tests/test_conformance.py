"""The module has every behaviour of its type."""

from __future__ import annotations

import pytest

from amplifier.testing.conformance import HookSamples, conformance
from amplifier_module_hooks_shell import mount

pytestmark = pytest.mark.process

TestShellHooks = conformance(
    "hook",
    mount,
    config={
        "hooks": [
            {
                "event": "tool:pre",
                "command": ["true"],
                "match": {"tool_name": "write_file"},
            }
        ]
    },
    samples=HookSamples(
        bad_config={"hooks": [{"event": "tool:pre"}]},
        payloads={
            "tool:pre": ({"tool_name": "write_file", "tool_input": {"path": "a.txt"}},)
        },
    ),
)
