"""How the module under test is found and mounted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from amplifier.testing import TestCoordinator
from amplifier.testing.subjects import ModuleUnderTest, find_module, mounted_module
from amplifier_sdk.errors import ModuleLoadError

TOOL = '''
from amplifier_sdk import tool

@tool
def weather(city: str) -> str:
    """Tells the weather."""
    return f"Sunny in {city}"
'''

LOOP = """
__amplifier_module_type__ = "orchestrator"

from amplifier.testing import ScriptedOrchestrator

async def mount(coordinator, config):
    await coordinator.mount("orchestrator", ScriptedOrchestrator([config["answer"]]))
    return lambda: config.clear()
"""


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Forget the packages that a test brought, so that the next may bring its own."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(
            ("amplifier_module_weather", "forecast", "amplifier_module_loop_mine")
        ):
            del sys.modules[name]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose folder's name says nothing and whose `pyproject.toml` says it all."""
    folder = tmp_path / "forecast"
    points = '"tool-weather" = "forecast.tools:weather"\n"hooks-weather" = "forecast_hooks:mount"\n'
    write(
        folder / "pyproject.toml",
        f'[project]\nname = "x"\n[project.entry-points."amplifier.modules"]\n{points}',
    )
    write(folder / "src" / "forecast" / "__init__.py", "")
    write(folder / "src" / "forecast" / "tools.py", TOOL)
    write(
        folder / "src" / "forecast_hooks.py",
        "async def mount(coordinator, config): ...",
    )
    write(folder / "tests" / "test_it.py", "")
    return folder


@pytest.mark.parametrize(
    "start", [".", "tests", "tests/test_it.py", "src", "src/forecast"]
)
def test_a_project_is_found_from_anything_in_it(project: Path, start: str) -> None:
    assert find_module(project / start) == ModuleUnderTest(
        id="tool-weather",
        type="tool",
        path=project / "src" / "forecast",
        folder=project,
    )


def test_of_several_modules_the_path_decides(project: Path) -> None:
    file = project / "src" / "forecast_hooks.py"

    assert find_module(file) == ModuleUnderTest(
        id="hooks-weather", type="hook", path=file, folder=project
    )


def test_a_folder_of_the_usual_name_needs_no_metadata(tmp_path: Path) -> None:
    folder = tmp_path / "amplifier-module-loop-mine"
    source = write(folder / "amplifier_module_loop_mine" / "__init__.py", LOOP)

    assert find_module(folder / "tests") == ModuleUnderTest(
        id="loop-mine", type="orchestrator", path=source.parent, folder=folder
    )


def test_what_module_declares_goes_before_what_its_id_suggests(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "amplifier-module-weather"
    write(
        folder / "amplifier_module_weather" / "__init__.py",
        LOOP.replace("orchestrator", "context", 1),
    )
    found = find_module(folder)

    assert found is not None
    assert (found.id, found.type) == ("weather", "context")


def test_a_module_need_not_tell_its_type(tmp_path: Path) -> None:
    folder = tmp_path / "amplifier-module-weather"
    write(folder / "amplifier_module_weather" / "__init__.py", TOOL)
    found = find_module(folder)

    assert found is not None
    assert found.type is None


def test_a_package_alone_is_a_module(tmp_path: Path) -> None:
    package = write(
        tmp_path / "amplifier_module_tool_alone" / "__init__.py", TOOL
    ).parent

    assert find_module(package) == ModuleUnderTest(
        id="tool-alone", type="tool", path=package, folder=package
    )


def test_elsewhere_there_is_none(tmp_path: Path) -> None:
    assert find_module(tmp_path) is None


def test_folders_above_the_repository_are_not_looked_at(project: Path) -> None:
    repository = project / "vendored"
    (repository / ".git").mkdir(parents=True)

    assert find_module(repository / "tests") is None


def test_a_project_that_cannot_be_read_is_an_error(project: Path) -> None:
    (project / "pyproject.toml").write_text("[", "utf-8")

    with pytest.raises(ModuleLoadError, match=r"pyproject\.toml cannot be read"):
        find_module(project)


async def test_a_module_is_imported_from_its_own_folder_and_mounted(
    project: Path,
) -> None:
    module, coordinator, path = find_module(project), TestCoordinator(), list(sys.path)
    assert module is not None

    async with mounted_module(module, coordinator, {}):
        assert list(coordinator.get_mounted("tools")) == ["weather"]
        assert (
            await coordinator.tools["weather"].execute({"city": "Rome"})
        ).output == "Sunny in Rome"

    assert sys.path == path
    assert sys.modules["forecast"].__file__ == str(
        project / "src" / "forecast" / "__init__.py"
    )


async def test_it_gets_its_configuration_and_is_released(tmp_path: Path) -> None:
    folder = tmp_path / "amplifier-module-loop-mine"
    write(folder / "amplifier_module_loop_mine" / "__init__.py", LOOP)
    module, coordinator = find_module(folder), TestCoordinator()
    assert module is not None

    async with mounted_module(module, coordinator, {"answer": "Hi"}):
        assert coordinator.mount_history[0]["mount_point"] == "orchestrator"

    assert await coordinator.cleanup() == []


async def test_a_module_that_cannot_be_imported_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "amplifier-module-tool-broken"
    write(
        folder / "amplifier_module_tool_broken" / "__init__.py",
        "raise OSError('no disk')",
    )
    module = find_module(folder)
    assert module is not None

    with pytest.raises(ModuleLoadError, match="OSError: no disk"):
        async with mounted_module(module, TestCoordinator(), {}):
            pass
