"""What the first import does not pull in."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

import pytest

pytestmark = pytest.mark.process

HEAVY: Final = frozenset(
    {
        "cattrs",
        "click",
        "httpx2",
        "importlib.metadata",
        "jsonschema_rs",
        "prompt_toolkit",
        "rich",
        "starlette",
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
        [sys.executable, "-c", PROGRAM.format(statement=statement)],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(json.loads(output.stdout))


@pytest.mark.parametrize(
    "statement",
    [
        "import amplifier_sdk",
        "from amplifier_sdk import tool, ToolResult",
        "import amplifier",
        "from amplifier import AmplifierSession",
        "from amplifier import Agent",
    ],
)
def test_an_import_leaves_the_heavy_libraries_alone(statement: str) -> None:
    loaded = _loaded_by(statement)

    assert sorted(loaded & HEAVY) == []
    assert statement.split()[1] in loaded


@pytest.mark.parametrize("package", ["amplifier", "amplifier_sdk"])
def test_root_loads_no_module_but_one_that_loads_others(package: str) -> None:
    loaded = _loaded_by(f"import {package}")

    modules = [
        name for name in loaded if name.startswith(("amplifier.", "amplifier_sdk."))
    ]
    assert modules == ["amplifier_sdk.lazy"]


SESSION: Final = """
import attrs
import anyio
from amplifier import AmplifierSession, ModuleLoader
from amplifier_sdk import context, orchestrator, tool

@attrs.frozen
class Config:
    size: int = 3

@orchestrator
class Loop:
    def __init__(self, config: Config) -> None:
        pass

    async def execute(self, prompt, context, providers, tools, hooks):
        raise NotImplementedError

@context
class Store:
    def __init__(self, config: Config) -> None:
        pass

    async def add_message(self, message): ...
    async def get_messages(self): ...
    async def get_messages_for_request(self, token_budget=None, provider=None): ...
    async def set_messages(self, messages): ...
    async def clear(self): ...

@tool
def add(left: int, right: int) -> int:
    return left + right

async def main():
    session = {"orchestrator": {"module": "loop"}, "context": {"module": "store"}}
    loader = ModuleLoader(modules={"loop": Loop, "store": Store, "tool-add": add}, path=[])
    async with AmplifierSession({"session": session, "tools": [{"module": "tool-add"}]}, loader):
        pass

anyio.run(main)
"""


@pytest.mark.parametrize("config", [{}, {"size": 5}])
def test_session_with_single_declared_values_converts_nothing(
    config: dict[str, int],
) -> None:
    loaded = _loaded_by(
        SESSION.replace('{"module": "loop"}', str({"module": "loop", "config": config}))
    )

    assert "amplifier.kernel.sessions.session" in loaded
    assert sorted(loaded & {"cattrs", "jsonschema_rs"}) == []


def test_a_session_finds_no_words_and_touches_no_paths() -> None:
    """Both libraries are for mistakes and for modules that work with files."""
    loaded = _loaded_by(SESSION)

    assert sorted(loaded & {"difflib", "pathlib"}) == []
