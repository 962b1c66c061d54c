"""The README's test command is the one that is run before a change lands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TEST_COMMAND: Final = re.compile(
    r"<!-- test-command -->\n+```\w*\n(?P<command>.*?)^```$", re.DOTALL | re.MULTILINE
)


def test_test_command_installs_every_plugin_and_runs_tests() -> None:
    block = TEST_COMMAND.search((ROOT / "README.md").read_text("utf-8"))

    assert block is not None, (
        "README.md has no fenced block below <!-- test-command -->"
    )
    command = block["command"]
    named = [
        path.name
        for path in ROOT.glob("plugins/*/")
        if f"plugins/{path.name}" in command
    ]
    assert "plugins/*/" in command or sorted(named) == sorted(
        path.name for path in ROOT.glob("plugins/*/")
    )
    assert ".[dev]" in command
    assert "-m pytest" in command
