"""The module has every behaviour of its type."""

from __future__ import annotations

import pytest

from amplifier.testing.conformance import ToolSamples, conformance
from amplifier_module_tool_bash import Bash

pytestmark = pytest.mark.process

TestBash = conformance(
    "tool",
    Bash,
    config={"sandbox": "none"},
    leave_out={
        "tool.succeeds-with-the-samples-of-its-author": "two of the tools need a job, which no sample can start",
    },
    samples=ToolSamples(
        arguments={
            "bash": ({"command": "echo hello"},),
            "bash_status": ({},),
        },
        failing={
            "bash": ({"command": "exit 3"}, {"command": "sudo ls"}),
            "bash_output": ({"job": "job-9"},),
            "bash_stop": ({"job": "job-9"},),
        },
        bad_config={"max_jobs": 0},
    ),
)
