"""The modules of the examples have every behaviour of their types."""

from __future__ import annotations

from amplifier.testing.conformance import HookSamples, ToolSamples, conformance
from examples.policy_hook import Policy, list_files
from examples.word_count_tool import count_words

TestCountWords = conformance(
    "tool",
    count_words,
    samples=ToolSamples(arguments={"count_words": ({"text": "to be or not to be"},)}),
)
TestListFiles = conformance("tool", list_files)
TestPolicy = conformance(
    "hook",
    Policy,
    config={"deny": ["delete_*"]},
    samples=HookSamples(
        payloads={"tool:pre": ({"tool_name": "delete_file", "tool_input": {}},)},
        bad_config={"deny": "delete_*"},
    ),
)
