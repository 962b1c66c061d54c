"""One environment: a module of the original beside ours of the same name, installed by pip, and chosen by each plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

PACKAGE = "amplifier_module_tool_bash"
SOURCE = """
from amplifier_core import ModuleCoordinator, ToolResult

__amplifier_module_type__ = "tool"


async def mount(coordinator: ModuleCoordinator, config=None):
    await coordinator.mount("tools", Bash(), name="bash")


class Bash:
    name = "bash"
    description = "the original's"
    input_schema = {"type": "object"}

    async def execute(self, input):
        return ToolResult(success=True, output="the original")
"""
METADATA = {
    "METADATA": "Metadata-Version: 2.1\nName: amplifier-module-tool-bash\nVersion: 1.0.0\n"
    "Requires-Dist: amplifier-core\n",
    "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "entry_points.txt": f"[amplifier.modules]\ntool-bash = {PACKAGE}:mount\n",
    "RECORD": "",
}
PROGRAM = """
import sys, anyio
from amplifier import AmplifierSession, ModuleLoader
from amplifier.testing import MockContextManager, MockOrchestrator, ScriptedProvider, mounting
from amplifier_sdk import ModuleNotFoundError

class Resolver:
    def resolve(self, module_id, source_hint=None):
        if source_hint is None:
            raise ModuleNotFoundError("nobody said where")
        return Source()

class Source:
    def resolve(self):
        return "originals"

loader = ModuleLoader(search_paths=[], modules={"o": mounting(MockOrchestrator()),
    "c": mounting(MockContextManager()), "p": mounting(ScriptedProvider("hi"))})

async def main():
    for source in sys.argv[1:]:
        entry = {"module": "tool-bash"} | ({"source": source} if source else {})
        plan = {"session": {"orchestrator": "o", "context": "c"}, "providers": ["p"], "tools": [entry]}
        session = AmplifierSession(plan, loader)
        session.coordinator.mount("module-source-resolver", Resolver())
        async with session:
            print(*map(str, session.failures))
            print([type(tool).__module__ for tool in session.coordinator.tools.values()])

anyio.run(main)
"""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `originals`, into which pip has installed a wheel that has our plugin's name."""
    place = tmp_path_factory.mktemp("environment")
    wheel = place / f"{PACKAGE}-1.0.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{PACKAGE}/__init__.py", SOURCE)
        for name, text in METADATA.items():
            archive.writestr(f"{PACKAGE}-1.0.0.dist-info/{name}", text)
    installed = run(
        "-m", "pip", "install", "-q", "--no-deps", "--no-index",
        "--target", "originals", wheel.name, cwd=place,
    )  # fmt: skip
    assert installed.returncode == 0, installed.stderr
    (place / "program.py").write_text(PROGRAM)
    return place


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**variables, "AMPLIFIER_HOME": str(cwd / "home")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("source", "module"),
    [("", "amplifier_sdk.tools"), ("originals", "amplifier.compat.tools")],
)
def test_each_plan_says_which_of_the_two_it_means(
    folder: Path, source: str, module: str
) -> None:
    done = run("program.py", source, cwd=folder)

    failures, mounted = done.stdout.splitlines()
    assert failures == "", done.stderr
    assert module in mounted


def test_one_process_has_one_of_the_two(folder: Path) -> None:
    done = run("program.py", "", "originals", cwd=folder)

    _, _, failure, mounted = done.stdout.splitlines()
    assert "that name is taken" in failure
    assert str(folder / "originals") in failure
    assert mounted == "[]"


def test_the_command_line_takes_the_folder_as_a_source(folder: Path) -> None:
    call = {
        "tool_calls": [{"name": "bash", "arguments": {"command": "no-such-program"}}]
    }
    plan = {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [
            {"module": "provider-scripted", "config": {"responses": [call, "Done."]}}
        ],
        "tools": [{"module": "tool-bash", "source": "./originals"}],
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    arguments = ("run", "--plan", "plan.json", "--output", "json", "go")
    done = run("-m", "amplifier", *arguments, cwd=folder)

    answer = json.loads(done.stdout)
    assert answer["text"] == "Done.", done.stderr
    # ours would have failed: there is no program of that name
    assert [each["success"] for each in answer["tools"]] == [True]
