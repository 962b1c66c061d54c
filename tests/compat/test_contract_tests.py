"""The contract tests that modules of the original inherit, run as their owners run them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from amplifier.compat.original.validation import (
    ContextValidator,
    HookValidator,
    OrchestratorValidator,
    ProviderValidator,
    ToolValidator,
)

MODULES = Path(__file__).parent / "modules"

TESTS = """
from amplifier_core.validation.behavioral import {kind}BehaviorTests
from amplifier_core.validation.structural import {kind}StructuralTests

class TestBehavior({kind}BehaviorTests):
    pass

class TestStructure({kind}StructuralTests):
    pass
"""

OWN = """
from amplifier_core.testing import MockCoordinator, TestCoordinator, create_test_coordinator
import amplifier_core

def test_own(coordinator, module_path, module_type, is_module_context, mock_deps):
    assert isinstance(coordinator, MockCoordinator)
    assert MockCoordinator is TestCoordinator
    assert is_module_context and module_path.is_dir()
    assert module_type == "{type}"
    assert set(create_test_coordinator().get("tools")) == {{"echo", "fail"}}
"""


def project(folder: Path, name: str, kind: str, module: str) -> Path:
    """Write the project of a module as the original's owners do."""
    root = folder / f"amplifier-module-{name}"
    package = root / f"amplifier_module_{name.replace('-', '_')}"
    package.mkdir(parents=True)
    shutil.copy(MODULES / f"{module}.py", package / "__init__.py")
    (root / "pyproject.toml").write_text(
        f'[project]\nname = "amplifier-module-{name}"\nversion = "1"\n'
        'dependencies = ["amplifier-core>=1.6.0"]\n'
        f'[project.entry-points."amplifier.modules"]\n{name} = "{package.name}:mount"\n'
    )
    tests = root / "tests"
    tests.mkdir()
    (tests / "test_contract.py").write_text(TESTS.format(kind=kind))
    own = name.partition("-")[0]
    kinds = {"loop": "orchestrator", "hooks": "hook"}
    (tests / "test_own.py").write_text(OWN.format(type=kinds.get(own, own)))
    return root


def run(root: Path) -> str:
    """Run a project's tests and return what pytest printed."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "kind", "module", "count"),
    [
        ("tool-words", "Tool", "tool", 9),
        ("provider-scripted", "Provider", "provider", 7),
        ("hooks-guard", "Hook", "hook", 9),
        ("loop-simple", "Orchestrator", "loop", 8),
        ("context-list", "Context", "context", 12),
    ],
)
def test_a_modules_contract_tests_pass(
    tmp_path: Path, name: str, kind: str, module: str, count: int
) -> None:
    output = run(project(tmp_path, name, kind, module))

    assert re.search(rf"\b{count} passed", output), output
    assert "failed" not in output
    assert "skipped" not in output


@pytest.mark.process
def test_a_broken_module_fails_its_contract_tests(tmp_path: Path) -> None:
    root = project(tmp_path, "tool-words", "Tool", "tool")
    source = root / "amplifier_module_tool_words" / "__init__.py"
    source.write_text(source.read_text().replace('return "count_words"', "return None"))

    assert "failed" in run(root)


WHEEL_PLUGIN = """
import pytest
import amplifier_core

def pytest_addoption(parser):
    parser.addoption("--module-path", default=None)

@pytest.fixture
def coordinator():
    return "the wheel's"
"""


def write_wheel(folder: Path) -> Path:
    """Write what the original's wheel installs: its package, and its plugin of pytest."""
    package = folder / "amplifier_core"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("ORIGINAL = True\n")
    (package / "pytest_plugin.py").write_text(WHEEL_PLUGIN)
    metadata = folder / "amplifier_core-2.0.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: amplifier-core\nVersion: 2.0.2\n"
    )
    (metadata / "entry_points.txt").write_text(
        "[pytest11]\namplifier_module = amplifier_core.pytest_plugin\n"
    )
    return folder


@pytest.mark.process
@pytest.mark.parametrize("place", ["insert(0, {!r})", "append({!r})"])
def test_contract_tests_have_our_fixtures_beside_the_wheel(
    tmp_path: Path, place: str
) -> None:
    wheel = write_wheel(tmp_path / "wheel")
    root = project(tmp_path, "tool-words", "Tool", "tool")
    program = (
        f"import sys; sys.path.{place.format(str(wheel))}; import pytest;"
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-W', 'error']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert re.search(r"\b9 passed", done.stdout), done.stdout + done.stderr


@pytest.mark.process
def test_a_module_is_validated_beside_the_wheel(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "wheel")
    root = project(tmp_path, "tool-words", "Tool", "tool")
    program = (
        f"import sys; sys.path.append({str(wheel)!r});"
        "from amplifier.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "module", "validate", str(root)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert "\nvalid: " in done.stdout, done.stdout + done.stderr


VALIDATORS = {
    "tool": ToolValidator,
    "provider": ProviderValidator,
    "hook": HookValidator,
    "loop": OrchestratorValidator,
    "context": ContextValidator,
}


@pytest.mark.parametrize("module", list(VALIDATORS))
async def test_a_validator_accepts_a_module_of_its_type(module: str) -> None:
    result = await VALIDATORS[module]().validate(MODULES / f"{module}.py")

    assert result.passed, result.summary()
    assert result.summary().startswith("PASSED")


@pytest.mark.parametrize(
    ("source", "check"),
    [
        ("1/0", "module_importable"),
        ("x = 1", "mount_exists"),
        ("def mount(c, config): ...", "mount_signature"),
        ("async def mount(c): ...", "mount_signature"),
        ("async def mount(c, config): 1/0", "protocol_compliance"),
        ("async def mount(c, config): ...", "protocol_compliance"),
        (
            "async def mount(c, config): ...\ndef on_session_ready(c): ...",
            "on_session_ready_async",
        ),
        (
            (
                "class T:\n name = ''\n description = 'd'\n async def execute(self, i): ...\n"
                "async def mount(c, config): return T()"
            ),
            "tool_name",
        ),
        (
            (
                "class T:\n name = 't'\n description = 'd'\n def execute(self, i): ...\n"
                "async def mount(c, config): return T()"
            ),
            "tool_execute",
        ),
    ],
)
async def test_a_validator_names_the_check_that_failed(
    tmp_path: Path, source: str, check: str, request: pytest.FixtureRequest
) -> None:
    name = "compat_" + re.sub(r"\W", "_", request.node.name)
    path = tmp_path / name
    path.mkdir()
    (path / "__init__.py").write_text(source)
    result = await ToolValidator().validate(path)

    assert check in [each.name for each in result.errors]
    assert not result.passed


async def test_a_validator_warns_of_a_schema_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "compat_schema_that_is_none"
    path.mkdir()
    (path / "__init__.py").write_text(
        "class T:\n name = 't'\n description = 'd'\n input_schema = 7\n"
        " async def execute(self, i): ...\n"
        "async def mount(c, config): await c.mount('tools', T())"
    )
    result = await ToolValidator().validate(path)

    assert result.passed
    assert [each.name for each in result.warnings] == ["tool_input_schema"]
