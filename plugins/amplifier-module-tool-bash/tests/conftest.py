"""Both backends, a workspace, and the module mounted on a real coordinator."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import anyio
import pytest

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_module_tool_bash import Bash
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.modules import definition_of
from amplifier_sdk.progress import ToolContext

Run = Callable[..., Awaitable[Mapping[str, object]]]  # type: ignore[explicit-any]  # its options go by name
Mount = Callable[..., Bash]  # type: ignore[explicit-any]  # its options go by name


@pytest.fixture(scope="session", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The session's working directory."""
    root = (tmp_path / "work").resolve()
    root.mkdir()
    return root


@pytest.fixture
def coordinator(root: Path) -> ModuleCoordinator:
    coordinator = ModuleCoordinator()
    coordinator.register_capability("session.working_dir", str(root))
    return coordinator


@pytest.fixture
def mount(coordinator: ModuleCoordinator) -> Iterator[Mount]:
    """Build the module from a configuration, as the loader does; rules let everything run unless a test says more."""
    mounted: list[Bash] = []

    def mount(**config: JSONValue) -> Bash:
        settings: Mapping[str, JSONValue] = {
            "default_rules": False,
            "unlisted": "allow",
            "sandbox": "none",
            **config,
        }
        definition = definition_of(Bash)
        assert definition is not None
        instance = definition.build(coordinator, settings)
        assert isinstance(instance, Bash)
        mounted.append(instance)
        return instance

    yield mount
    for instance in mounted:
        anyio.run(instance.aclose)


@pytest.fixture
def shell(mount: Mount) -> Bash:
    """The module with no rules and no sandbox."""
    return mount()


@pytest.fixture
def run() -> Run:
    """Run a command, and return all that its result says."""

    async def run(
        shell: Bash,
        command: str,
        timeout: float | None = None,
        *,
        background: bool = False,
    ) -> Mapping[str, object]:
        shell.permission.assess(command)  # what is asked about has been allowed
        with anyio.fail_after(30):
            result = await shell.bash(command, ToolContext(), timeout, background)
        found = result.output if result.success else result.error
        assert isinstance(found, Mapping)
        return {**found, "success": result.success}

    return run


@pytest.fixture
def running() -> Callable[[str], list[str]]:
    """The command lines, in words, of the live processes whose line begins with a text."""

    def running(wanted: str) -> list[str]:
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                line = (
                    Path(f"/proc/{pid}/cmdline")
                    .read_text(errors="replace")
                    .replace("\0", " ")
                )
            except OSError:
                continue
            if line.startswith(wanted):
                found.append(line)
        return found

    return running
