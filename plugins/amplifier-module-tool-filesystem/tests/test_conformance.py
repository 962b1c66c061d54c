"""The module has every behaviour of its type."""

from __future__ import annotations

import pytest

from amplifier.testing.conformance import ToolSamples, conformance
from amplifier_module_tool_filesystem import Filesystem

pytestmark = pytest.mark.process

TestFilesystem = conformance(
    "tool",
    Filesystem,
    samples=ToolSamples(
        files={"notes.txt": "one\ntwo\n", "docs/guide.md": "# Guide\n"},
        arguments={
            "read_file": ({"file_path": "notes.txt", "offset": 2, "limit": 1},),
            "move": ({"source": "notes.txt", "destination": "./notes.txt"},),
            "delete": ({"path": "nothing"},),
            "write_file": ({"file_path": "new/file.txt", "content": "content\n"},),
            "edit_file": (
                {"file_path": "notes.txt", "old_string": "two", "new_string": "a two"},
            ),
            "list_directory": ({"depth": 2},),
            "glob": ({"pattern": "**/*.md"},),
            "grep": ({"pattern": "o", "context": 1},),
        },
        failing={
            "move": ({"source": "notes.txt", "destination": "docs/guide.md"},),
            "delete": ({"path": "docs"},),
            "read_file": (
                {"file_path": "nowhere.txt"},
                {"file_path": "../outside.txt"},
            ),
            "edit_file": (
                {"file_path": "notes.txt", "old_string": "three", "new_string": "four"},
            ),
            "grep": ({"pattern": "("},),
        },
        bad_config={"max_results": 0},
    ),
)
