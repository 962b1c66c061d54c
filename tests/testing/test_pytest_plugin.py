"""The pytest plugin in an author's project: no conftest, no configuration, every warning an error."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.process

ROOT: Final = Path(__file__).resolve().parents[2]
PLUGIN: Final = "amplifier.testing.pytest_plugin"
INSTALLED: Final = any(
    point.value == PLUGIN for point in entry_points(group="pytest11")
)

SOURCES: Final = {
    "tool-weather": '''
from amplifier_sdk import tool

@tool
def weather(city: str) -> str:
    """Tells the weather."""
    return f"Sunny in {city}"
''',
    "provider-parrot": """
import attrs
from amplifier_sdk import provider
from amplifier_kit.scripted import ScriptedProvider

@attrs.frozen(kw_only=True)
class Config:
    word: str = "hello"

@provider
class Parrot(ScriptedProvider):
    def __init__(self, config: Config) -> None:
        super().__init__(config.word, name="parrot")
""",
    "hooks-deny": """
from amplifier_sdk import HookResult

async def mount(coordinator, config):
    return coordinator.hooks.register("tool:pre", lambda event, data: HookResult.deny("no"), name="deny")
""",
    "loop-once": """
from amplifier_sdk import Loop, orchestrator

@orchestrator
class Once(Loop):
    async def run(self, turn):
        return (await turn.complete()).text
""",
    "context-list": """
from amplifier.testing import MockContextManager
from amplifier_sdk import context

@context
class ListContext(MockContextManager):
    def __init__(self) -> None:
        super().__init__()
""",
}

TESTS: Final = {
    "tool-weather": """
import anyio
import pytest

async def test_tool(tool_module, coordinator, module_path, module_type, is_module_context):
    assert (await tool_module.execute({"city": "Rome"})).output == "Sunny in Rome"
    assert coordinator.get_mounted("tools") == {"weather": tool_module}
    assert (module_path.name, module_type, is_module_context) == ("amplifier_module_tool_weather", "tool", True)

@pytest.mark.module_validation
def test_sync(tool_module):
    assert tool_module.name == "weather"

async def test_time(virtual_clock, tool_module):
    await anyio.sleep(86_400)
    assert anyio.current_time() >= 86_400

async def test_late_clock(tool_module, virtual_clock):
    pass

async def test_other_type(context_module):
    pass
""",
    "provider-parrot": """
import pytest
from amplifier_sdk import ChatRequest

@pytest.fixture
def module_config():
    return {"word": "hullo"}

async def test_provider(provider_module):
    assert (await provider_module.complete(ChatRequest(messages=[]))).text == "hullo"
""",
    "hooks-deny": """
async def test_hook(hook_cleanup, coordinator):
    assert (await coordinator.hooks.emit("tool:pre", {})).denied
    await hook_cleanup()
    assert not (await coordinator.hooks.emit("tool:pre", {})).denied
""",
    "loop-once": """
async def test_loop(orchestrator_module, mock_deps):
    context, providers, tools, hooks = mock_deps
    assert await orchestrator_module.execute("Hello", context, providers, tools, hooks) == "Mock response"
    assert hooks.names[0] == "execution:start"
    assert list(tools) == ["test_tool"]
""",
    "context-list": """
async def test_context(context_module):
    await context_module.add_message({"role": "user", "content": "Hello"})
    assert await context_module.get_messages() == [{"role": "user", "content": "Hello"}]
""",
}


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    """A folder with a project for each type of module."""
    for module_id, source in SOURCES.items():
        folder = tmp_path / f"amplifier-module-{module_id}"
        package = folder / "src" / folder.name.replace("-", "_")
        (folder / "tests").mkdir(parents=True)
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(source, "utf-8")
        (folder / "tests" / f"test_{package.name}.py").write_text(
            TESTS[module_id], "utf-8"
        )
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder as an author does, whether this distribution is installed here or not."""
    load = [] if INSTALLED else ["-p", PLUGIN]
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-W",
            "error",
            "-p",
            "no:cacheprovider",
            "-rA",
            *load,
            *arguments,
        ],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path))),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def outcomes(output: str) -> dict[str, str]:
    """Return how each test ended, by its name."""
    lines = [
        line.split()
        for line in output.splitlines()
        if line.startswith(("PASSED ", "FAILED ", "ERROR "))
    ]
    return {words[1].partition("::")[2]: words[0] for words in lines}


@pytest.mark.timeout(120)
def test_every_module_type_mounts_on_both_backends(
    projects: Path,
) -> None:
    finished = run(projects)

    names = [
        "test_tool",
        "test_sync",
        "test_time",
        "test_provider",
        "test_hook",
        "test_loop",
        "test_context",
    ]
    expected = {
        f"{name}[{backend}]": "PASSED"
        for name in names
        for backend in ("asyncio", "trio")
    }
    expected |= {
        f"{name}[{b}]": "ERROR"
        for name in ("test_late_clock", "test_other_type")
        for b in ("asyncio", "trio")
    }
    assert outcomes(finished.stdout) == expected, finished.stdout + finished.stderr
    assert (
        "virtual_clock: an async fixture came first; ask for virtual_clock before it"
        in finished.stdout
    )
    assert (
        "the module mounted no context manager; it mounted at: tools" in finished.stdout
    )


@pytest.mark.timeout(120)
def test_foreign_modules_skip_and_option_selects_one(
    projects: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "test_it.py").write_text(
        "def test_none(module_path, module_type, is_module_context):\n"
        "    assert (module_path, module_type, is_module_context) == (None, None, False)\n"
        "def test_tool(tool_module):\n"
        "    assert tool_module.name == 'weather'\n",
        "utf-8",
    )

    without = run(outside)
    package = (
        projects
        / "amplifier-module-tool-weather"
        / "src"
        / "amplifier_module_tool_weather"
    )
    named = run(outside, "--module-path", str(package), "-k", "test_tool")
    wrong = run(outside, "--module-path", str(outside), "-k", "test_tool")

    assert outcomes(without.stdout) == {"test_none": "PASSED"}
    assert (
        without.stdout.count(
            "the test lies in no module's project; name one with --module-path"
        )
        == 1
    )
    assert set(outcomes(named.stdout).values()) == {"PASSED"}, (
        named.stdout + named.stderr
    )
    assert "no module there; name its project's folder or its package's" in wrong.stdout


def test_a_project_that_does_not_use_it_pays_for_nothing() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules); import "
        f"{PLUGIN}; print(sorted(set(sys.modules) - before))"
    )

    printed = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout

    roots = [
        "amplifier",
        "amplifier.testing",
        PLUGIN,
        "amplifier_sdk",
        "amplifier_sdk.lazy",
    ]
    assert printed.strip() == str(roots)


def test_pytest_finds_it_where_this_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert project["entry-points"]["pytest11"] == {"amplifier": PLUGIN}


def test_the_kit_needs_no_pytest() -> None:
    program = (
        "import sys; sys.modules['pytest'] = None; import amplifier.testing as testing;"
        "print([name for name in testing.__all__ if getattr(testing, name) is None])"
    )

    assert (
        subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True
        ).stdout
        == "[]\n"
    )
