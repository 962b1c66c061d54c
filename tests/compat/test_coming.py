"""The page for owners of the original's modules: each block of its commands runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "how-to" / "coming-from-amplifier-core.md"
TOOL: Final = "amplifier-module-tool-words"

PROJECT: Final = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "amplifier-module-tool-words"
version = "1"
dependencies = ["amplifier-core>=1.6.0"]

[project.entry-points."amplifier.modules"]
tool-words = "amplifier_module_tool_words:mount"
"""
# pip builds with it alone, so the test needs no package from elsewhere
BACKEND: Final = """
import zipfile
from pathlib import Path

NAME = "amplifier_module_tool_words"
INFO = NAME + "-1.dist-info/"


def build_wheel(folder, config_settings=None, metadata_directory=None):
    wheel = NAME + "-1-py3-none-any.whl"
    with zipfile.ZipFile(Path(folder) / wheel, "w") as archive:
        archive.write(NAME + "/__init__.py")
        archive.writestr(INFO + "METADATA", "Metadata-Version: 2.1\\nName: amplifier-module-tool-words\\nVersion: 1\\n")
        archive.writestr(INFO + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(INFO + "entry_points.txt", "[amplifier.modules]\\ntool-words = " + NAME + ":mount\\n")
        archive.writestr(INFO + "RECORD", "")
    return wheel
"""
BUNDLE: Final = """---
bundle: {name: shop, version: 1.0.0, description: Runs a shop}
session:
  orchestrator: {module: loop-basic}
  context: {module: context-simple}
providers:
  - module: provider-scripted
    config: {responses: [From the bundle.]}
tools:
  - module: tool-words
    source: ./amplifier-module-tool-words
context: {include: [notes.md]}
---
You run a shop.
"""
PROFILE: Final = """---
profile: {name: shop, version: 1.0.0, description: Runs a shop}
session:
  orchestrator: {module: loop-basic}
  context: {module: context-simple}
providers:
  - module: provider-scripted
    config: {responses: [From the profile.]}
agents: none
ui: {show_thinking_stream: true, show_tool_lines: true}
---
You run a shop.
"""
TRANSCRIPT: Final = [
    {"role": "user", "content": "How much is tea?"},
    {
        "role": "assistant",
        "content": [
            {"type": "tool_call", "id": "c1", "name": "count_words", "input": {}}
        ],
        "tool_calls": [{"id": "c1", "tool": "count_words", "arguments": {}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "{}"},
    {"role": "assistant", "content": [{"type": "text", "text": "Two euros."}]},
]


def blocks(language: str) -> list[str]:
    """Return the page's blocks of a language."""
    fence = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return fence.findall(PAGE.read_text("utf-8"))


PRINTED: Final[list[list[str]]] = [
    blocks("text"),
    ["Done."],
    ["added tool-words", "settings (user)"],
    ["added tool-words"],
    ["From the bundle."],
    ["Runs a shop", "From the profile."],
    ["shop"],
    ["S1", "Tea", "From the profile."],
]
"""What each block of commands prints, after the first."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the owner of a module has: it, a bundle, a profile and a transcript."""
    package = tmp_path / "work" / TOOL / "amplifier_module_tool_words"
    package.mkdir(parents=True)
    shutil.copy(ROOT / "tests/compat/modules/tool.py", package / "__init__.py")
    (package.parent / "pyproject.toml").write_text(PROJECT)
    (package.parent / "backend.py").write_text(BACKEND)
    work = tmp_path / "work"
    (work / "plan.yaml").write_text(blocks("yaml")[0])
    (work / "bundle.md").write_text(BUNDLE)
    (work / "notes.md").write_text("We sell tea.")
    profiles = tmp_path / "home" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "shop.md").write_text(PROFILE)
    (profiles.parent / "settings.yaml").write_text("profile: {active: shop}\n")
    session = work / "sessions" / "S1"
    session.mkdir(parents=True)
    lines = "".join(f"{json.dumps(message)}\n" for message in TRANSCRIPT)
    (session / "transcript.jsonl").write_text(lines)
    (session / "metadata.json").write_text('{"session_id": "S1", "name": "Tea"}')
    return work


def test_the_page_begins_with_what_has_to_be_installed() -> None:
    first, *others = blocks("bash")

    assert first.startswith("pip install -e '.[default,compat]'")
    assert len(others) == len(PRINTED)


@pytest.mark.parametrize("index", range(len(PRINTED)))
def test_the_commands_of_the_page_run(folder: Path, index: int) -> None:
    done = subprocess.run(
        ["bash", "-eux", "-c", blocks("bash")[index + 1]],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        env={
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder.parent / "user"),
            "AMPLIFIER_HOME": str(folder.parent / "home"),
            "PIP_NO_INDEX": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert [text for text in PRINTED[index] if text not in done.stdout] == []
