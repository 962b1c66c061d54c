"""What the first import does not pull in."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

import pytest

HEAVY: Final = frozenset(
    {
        "cattrs",
        "click",
        "httpx2",
        "json_repair",
        "jsonschema_rs",
        "prompt_toolkit",
        "rich",
        "structlog",
        "trio",
        "yaml",
    }
)

PROGRAM: Final = """
import json, sys
before = set(sys.modules)
{statement}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def _loaded_by(statement: str) -> set[str]:
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(statement=statement)], check=True, capture_output=True, text=True
    )
    return set(json.loads(output.stdout))


@pytest.mark.parametrize(
    "statement",
    [
        "import amplifier_sdk",
        "from amplifier_sdk import tool, ToolResult",
        "import amplifier",
        "from amplifier import AmplifierSession",
    ],
)
def test_an_import_leaves_the_heavy_libraries_alone(statement: str) -> None:
    loaded = _loaded_by(statement)

    assert sorted(loaded & HEAVY) == []
    assert statement.split()[1] in loaded


@pytest.mark.parametrize("package", ["amplifier", "amplifier_sdk"])
def test_a_root_loads_none_of_its_modules(package: str) -> None:
    loaded = _loaded_by(f"import {package}")

    assert sorted(name for name in loaded if name.startswith(("amplifier.", "amplifier_sdk."))) == []
