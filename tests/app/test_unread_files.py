"""Files of a project that no module of the session reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier.app.projects.files import UnreadFile, find_unread_files
from amplifier_sdk.jsontypes import JSONObject
from tests.app.projects import write


@pytest.mark.parametrize(
    ("path", "module", "remedy"),
    [
        (".mcp.json", "tool-mcp", "mcp add"),
        (".claude/settings.json", "hooks-shell", "module add hooks-shell"),
        (
            ".amplifier/plugins/p/hooks/hooks.json",
            "hooks-shell",
            "module add hooks-shell",
        ),
        (".claude/skills/s/SKILL.md", "tool-skills", "module add tool-skills"),
    ],
)
def test_a_file_is_named_with_what_reads_it_and_what_to_type(
    tmp_path: Path, path: str, module: str, remedy: str
) -> None:
    write(tmp_path / path, "{}")

    (unread,) = find_unread_files(tmp_path, {})

    assert path.startswith(unread.path)
    assert (unread.module, unread.remedy) == (module, f"amplifier {remedy}")


@pytest.mark.parametrize(
    "plan", [{"tools": ["tool-mcp"]}, {"tools": [{"module": "tool-mcp"}]}]
)
def test_a_file_that_a_module_reads_is_not_named(
    tmp_path: Path, plan: JSONObject
) -> None:
    write(tmp_path / ".mcp.json", "{}")

    assert find_unread_files(tmp_path, plan) == []
    assert find_unread_files(tmp_path, {"tools": [5, "tool-web"]}) == [
        UnreadFile(".mcp.json", "tool-mcp")
    ]
