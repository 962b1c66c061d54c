"""The pytest plugin for the tests of a module: it finds the module, mounts it, and hands out what tests need.

pytest loads it wherever this distribution is installed, so nothing but pytest is imported before a fixture is
used. Async fixtures run under anyio's own plugin, on whichever backends the tests run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, TypeVar

import pytest

if TYPE_CHECKING:
    from amplifier.testing.clock import VirtualClock
    from amplifier.testing.contexts import MockContextManager
    from amplifier.testing.coordinators import TestCoordinator
    from amplifier.testing.recorder import EventRecorder
    from amplifier.testing.subjects import ModuleUnderTest
    from amplifier_sdk.contracts import (
        Cleanup,
        ContextManager,
        Orchestrator,
        Provider,
        Tool,
    )
    from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "context_module",
    "coordinator",
    "hook_cleanup",
    "is_module_context",
    "mock_deps",
    "module_config",
    "module_path",
    "module_type",
    "module_under_test",
    "mounted_coordinator",
    "orchestrator_module",
    "provider_module",
    "pytest_addoption",
    "pytest_configure",
    "tool_module",
    "virtual_clock",
]

T = TypeVar("T")


def pytest_addoption(
    parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager
) -> None:
    """Add the option `--module-path`; the plugin of an installed original, which has it too, is not used."""
    _take_precedence(pluginmanager)
    group = parser.getgroup("amplifier", "Amplifier modules")
    # the original's plugin, where it was loaded first, has added it
    with suppress(ValueError):
        group.addoption(
            "--module-path",
            metavar="PATH",
            default=None,
            help="the module under test: its project's folder or its package's; default the one the test file lies in",
        )


def _take_precedence(pluginmanager: pytest.PytestPluginManager) -> None:
    """Leave out the original's own plugin: a third of its modules bring its wheel along.

    pytest loads plugins in the order in which distributions lie on the disk. Whatever the wheel's plugin imported is
    forgotten, since no test has it yet and its name is provided here.
    """
    loaded = pluginmanager.get_plugin(_ORIGINALS_PLUGIN)
    pluginmanager.set_blocked(_ORIGINALS_PLUGIN)
    if loaded is None:
        return
    for name in [each for each in sys.modules if each.partition(".")[0] == _ORIGINAL]:
        del sys.modules[name]


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker `module_validation` known; a project of the original gets the original's fixtures."""
    config.addinivalue_line(
        "markers", "module_validation: the test validates an Amplifier module"
    )
    if _requires_original(config.rootpath):
        # only there: everywhere else nothing but pytest is imported
        from amplifier.kernel.modules.adapters import provide

        provide()
        # registered later, its fixtures go before those of the same name here
        plugin = import_module(f"{_ORIGINAL}.pytest_plugin")
        config.pluginmanager.register(plugin, f"{_ORIGINAL}.pytest_plugin")
    elif not any(isinstance(finder, _LastFinder) for finder in sys.meta_path):
        sys.meta_path.append(_LastFinder())


class _LastFinder:
    """Provides the original's name to tests that import it where nothing is installed under it."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Find the original's name; every other stays unknown."""
        if fullname.partition(".")[0] != _ORIGINAL:
            return None
        from amplifier.kernel.modules.adapters import FINDER

        return FINDER.find_spec(fullname, path, target)


_ORIGINAL: Final = "amplifier_core"
_ORIGINALS_PLUGIN: Final = "amplifier_module"
_IMPORT: Final = re.compile(rf"^[ \t]*(?:from|import) {_ORIGINAL}\b", re.MULTILINE)
_REQUIREMENT: Final = re.compile(r"""["']amplifier-core\b""")


def _requires_original(folder: Path) -> bool:
    """Whether a project requires the original, or its package imports it."""
    project = folder / "pyproject.toml"
    if project.is_file() and _REQUIREMENT.search(project.read_text("utf-8", "replace")):
        return True
    packages = [
        path.parent
        for path in (*folder.glob("*/__init__.py"), *folder.glob("src/*/__init__.py"))
        if path.parent.name.startswith("amplifier_")
    ]
    return any(
        _IMPORT.search(file.read_text("utf-8", "replace"))
        for package in packages
        for file in package.rglob("*.py")
    )


# -- the module under test


@pytest.fixture
def module_under_test(request: pytest.FixtureRequest) -> ModuleUnderTest | None:
    """Find the module under test; `None` outside a module's project."""
    from amplifier.testing.subjects import find_module

    given: str | None = request.config.getoption("--module-path")
    if given is None:
        return find_module(request.path.parent)
    module = find_module(Path(given))
    if module is None:
        raise pytest.UsageError(
            f"--module-path {given}: no module there; name its project's folder or its package's"
        )
    return module


@pytest.fixture
def module_path(module_under_test: ModuleUnderTest | None) -> Path | None:
    """The folder of the package under test; `None` outside a module's project."""
    if module_under_test is None:
        return None
    return module_under_test.path


@pytest.fixture
def module_type(module_under_test: ModuleUnderTest | None) -> str | None:
    """The type of the module under test, such as `tool`; `None` when nothing says it."""
    if module_under_test is None:
        return None
    return module_under_test.type


@pytest.fixture
def is_module_context(module_under_test: ModuleUnderTest | None) -> bool:
    """Whether the tests lie in a module's project."""
    return module_under_test is not None


@pytest.fixture
def module_config() -> Mapping[str, JSONValue]:
    """The configuration with which the module under test is mounted: none, until a project overrides this."""
    return {}


# -- what a module is tested with


@pytest.fixture
def coordinator() -> TestCoordinator:
    """A fresh coordinator; the module under test is mounted on it by the fixtures that return it."""
    from amplifier.testing.coordinators import TestCoordinator

    return TestCoordinator()


@pytest.fixture
def mock_deps() -> tuple[
    MockContextManager, dict[str, Provider], dict[str, Tool], EventRecorder
]:
    """What an orchestrator is called with: context, providers, tools and hooks."""
    from amplifier.testing import (
        EventRecorder,
        MockContextManager,
        MockTool,
        ScriptedProvider,
    )

    provider = ScriptedProvider("Mock response", name="mock", repeat=True)
    tool = MockTool("test_tool", "test result")
    return (
        MockContextManager(),
        {"default": provider},
        {tool.name: tool},
        EventRecorder(),
    )


@pytest.fixture
def virtual_clock(anyio_backend: object) -> Iterator[VirtualClock]:
    """Let the test run in virtual time: sleeps and deadlines pass at once.

    Fixtures that are set up before and that run in the event loop keep it at its own time: ask for this first.
    """
    from anyio.pytest_plugin import extract_backend_and_options, get_runner

    from amplifier.testing.clock import VirtualClock

    clock = VirtualClock()
    name, options = extract_backend_and_options(anyio_backend)
    # over the test's own options, as only these make the time jump
    virtual = clock.backend(name)[1]
    with get_runner(name, options | virtual) as runner:
        # anyio shares one loop between a test and its fixtures: the first decides which
        if not runner.run_fixture(_is_virtual, {}):
            raise pytest.UsageError(
                "virtual_clock: an async fixture came first; ask for virtual_clock before it"
            )
        yield clock


# -- the module, mounted


@pytest.fixture
async def mounted_coordinator(
    anyio_backend: object,
    module_under_test: ModuleUnderTest | None,
    coordinator: TestCoordinator,
    module_config: Mapping[str, JSONValue],
) -> AsyncIterator[TestCoordinator]:
    """The coordinator, with the module under test mounted; it is released at the end."""
    if module_under_test is None:
        pytest.skip("the test lies in no module's project; name one with --module-path")
    from amplifier.testing.subjects import mounted_module

    async with mounted_module(module_under_test, coordinator, module_config):
        yield coordinator


@pytest.fixture
def provider_module(mounted_coordinator: TestCoordinator) -> Provider:
    """The first provider that the module under test mounts."""
    return _first(mounted_coordinator, mounted_coordinator.providers, "provider")


@pytest.fixture
def tool_module(mounted_coordinator: TestCoordinator) -> Tool:
    """The first tool that the module under test mounts."""
    return _first(mounted_coordinator, mounted_coordinator.tools, "tool")


@pytest.fixture
def hook_cleanup(mounted_coordinator: TestCoordinator) -> Cleanup:
    """The hook module under test, mounted: an async function that releases it; it is called at the end if need be."""
    return mounted_coordinator.cleanup


@pytest.fixture
def orchestrator_module(mounted_coordinator: TestCoordinator) -> Orchestrator:
    """The orchestrator that the module under test mounts."""
    return _first(
        mounted_coordinator, {"": mounted_coordinator.orchestrator}, "orchestrator"
    )


@pytest.fixture
def context_module(mounted_coordinator: TestCoordinator) -> ContextManager:
    """The context manager that the module under test mounts."""
    return _first(
        mounted_coordinator, {"": mounted_coordinator.context}, "context manager"
    )


def _first(
    coordinator: TestCoordinator, mounted: Mapping[str, T | None], kind: str
) -> T:
    """Return what is mounted; a module that mounted none of its kind fails the test."""
    for instance in mounted.values():
        if instance is not None:
            return instance
    points = {
        point for point in coordinator.mount_points if coordinator.get_mounted(point)
    }
    pytest.fail(
        f"the module mounted no {kind}; it mounted at: {', '.join(sorted(points)) or 'nothing'}"
    )


async def _is_virtual() -> bool:
    from amplifier.testing.clock import VirtualClock

    return VirtualClock.is_running()
