"""`amplifier_core` by its name: who provides it, when, and what of the process is changed by that."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(
    code: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run code in a Python of its own, in a folder that is on its path."""
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**variables, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def write_wheel(folder: Path) -> None:
    """Write a package that stands for the original's installed wheel."""
    package = folder / "amplifier_core"
    package.mkdir()
    (package / "__init__.py").write_text("ORIGINAL = True\n")


SESSION = """
import sys, anyio
from amplifier import AmplifierSession, ModuleLoader
from amplifier.testing import MockContextManager, MockOrchestrator, ScriptedProvider, mounting
{before}
plan = {{"session": {{"orchestrator": "o", "context": "c"}},
         "providers": ["p"], "tools": ["{module}"]}}
loader = ModuleLoader(search_paths=["."], modules={{"o": mounting(MockOrchestrator()),
    "c": mounting(MockContextManager()), "p": mounting(ScriptedProvider("hi"))}})
async def main():
    async with AmplifierSession(plan, loader) as session:
        print([str(failure) for failure in session.failures])
        print(list(session.coordinator.tools))
anyio.run(main)
print("amplifier_core" in sys.modules, "pydantic" in sys.modules)
print(sorted(name for name in sys.modules if name.startswith("amplifier.compat")))
"""

TOOL = """
async def mount(coordinator, config=None):
    await coordinator.mount("tools", Tool())

class Tool:
    name = "t"
    description = "d"
    input_schema = {"type": "object"}
    async def execute(self, input):
        raise NotImplementedError
"""


def write_tool(folder: Path, imports: str) -> None:
    """Write a module as a search path holds it."""
    package = folder / "amplifier-module-tool-t" / "amplifier_module_tool_t"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(imports + TOOL)


@pytest.mark.process
def test_a_native_session_imports_nothing_of_it(tmp_path: Path) -> None:
    write_tool(tmp_path, "import json\n")
    done = run(SESSION.format(before="", module="tool-t"), tmp_path)

    assert done.stdout.splitlines() == ["[]", "['t']", "False False", "[]"], done.stderr


@pytest.mark.process
def test_a_module_that_imports_the_name_gets_it_also_beside_an_installed_wheel(
    tmp_path: Path,
) -> None:
    write_wheel(tmp_path)
    write_tool(tmp_path, "from amplifier_core import ToolResult\n")
    done = run(SESSION.format(before="", module="tool-t"), tmp_path)

    assert done.stdout.splitlines()[:3] == ["[]", "['t']", "True True"], done.stderr


@pytest.mark.process
def test_a_module_is_refused_when_the_wheel_itself_is_imported(tmp_path: Path) -> None:
    write_wheel(tmp_path)
    write_tool(tmp_path, "from amplifier_core import ORIGINAL\n")
    done = run(
        SESSION.format(before="import amplifier_core", module="tool-t"), tmp_path
    )

    assert "'amplifier_core' is imported already, from" in done.stdout, done.stderr
    assert "amplifier.compat.install()" in done.stdout.splitlines()[0]


@pytest.mark.process
def test_install_refuses_beside_the_imported_wheel(tmp_path: Path) -> None:
    write_wheel(tmp_path)
    done = run(
        "import amplifier_core, amplifier.compat as c\n"
        "try: c.install()\nexcept c.OriginalImportedError as e: print(e)",
        tmp_path,
    )

    assert done.stdout.count("\n") == 1
    assert str(tmp_path) in done.stdout


@pytest.mark.process
def test_child_pythons_find_the_name_too(tmp_path: Path) -> None:
    write_wheel(tmp_path)
    child = "import amplifier_core.models as m; print(m.__name__)"
    done = run(
        "import amplifier.compat, subprocess, sys; amplifier.compat.install()\n"
        f"subprocess.run([sys.executable, '-P', '-c', {child!r}], check=True)",
        tmp_path,
    )

    assert done.stdout.strip() == "amplifier.compat.original.models", done.stderr


@pytest.mark.process
def test_a_child_without_amplifier_finds_its_own_wheel(tmp_path: Path) -> None:
    write_wheel(tmp_path)
    children = ROOT / "src" / "amplifier" / "compat" / "children"
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import amplifier_core as c; print(c.ORIGINAL)"],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{children}{os.pathsep}{tmp_path}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.process
def test_a_missing_submodule_is_named_and_not_taken_from_the_wheel(
    tmp_path: Path,
) -> None:
    write_wheel(tmp_path)
    (tmp_path / "amplifier_core" / "extra.py").write_text("")
    done = run(
        "import amplifier.compat; amplifier.compat.install()\n"
        "try: import amplifier_core.extra\nexcept ImportError as e: print(e)",
        tmp_path,
    )

    assert "amplifier.compat does not provide it" in done.stdout, done.stderr


def test_a_class_is_one_object_by_whichever_path() -> None:
    import amplifier_core
    from amplifier_core import hooks, message_models, models

    assert amplifier_core.HookResult is hooks.HookResult is models.HookResult
    assert amplifier_core.Message is message_models.Message
    assert import_module("amplifier_core.models") is models


def test_every_name_of_the_package_is_there() -> None:
    import amplifier_core

    for name in amplifier_core.__all__:
        assert getattr(amplifier_core, name) is not None


@pytest.mark.process
def test_a_module_that_imports_the_name_late_is_one_of_the_originals(
    tmp_path: Path,
) -> None:
    package = tmp_path / "amplifier-module-tool-late" / "amplifier_module_tool_late"
    package.mkdir(parents=True)
    source = Path(__file__).parent / "modules" / "late.py"
    (package / "__init__.py").write_text(source.read_text())
    code = SESSION.format(before="", module="tool-late").replace(
        "print(list(session.coordinator.tools))",
        "print(type(session.coordinator.tools['late']).__name__)",
    )
    done = run(code, tmp_path)

    assert done.stdout.splitlines()[:2] == ["[]", "AdaptedTool"], done.stderr


@pytest.mark.process
def test_programs_that_tools_start_find_the_name_too(tmp_path: Path) -> None:
    child = "import amplifier_core.models as m; print(m.__name__)"
    done = run(
        "import amplifier.compat, subprocess, sys\n"
        "from amplifier_kit.processes import allowed_environment\n"
        "assert 'PYTHONPATH' not in allowed_environment()\n"
        "amplifier.compat.install()\n"
        f"subprocess.run([sys.executable, '-c', {child!r}], check=True, env=allowed_environment())",
        tmp_path,
        {"PYTHONPATH": str(tmp_path / "another")},
    )

    assert done.stdout.strip() == "amplifier.compat.original.models", done.stderr
