"""The module has every behaviour of its type."""

from __future__ import annotations

from amplifier.testing.conformance import HookSamples, conformance
from amplifier_module_hooks_approval import ApprovalHook

TestApprovalHook = conformance(
    "hook",
    ApprovalHook,
    config={"rules": [{"decision": "deny", "tools": ["delete"]}]},
    samples=HookSamples(
        bad_config={"default_action": "perhaps"},
        payloads={
            "tool:pre": (
                {"tool_name": "write_file", "tool_input": {"path": "a.txt"}},
                {"tool_name": "delete", "tool_input": {"path": "a.txt"}},
            )
        },
    ),
)
