"""Both backends, a working directory with a secret beside it, and the module mounted on a real coordinator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier_module_tool_filesystem import Filesystem
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.modules import definition_of


@pytest.fixture(scope="session", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The session's working directory; the directory above it holds a secret."""
    (tmp_path / "secret.txt").write_text("top secret\n")
    (tmp_path / "work-evil").mkdir()
    (tmp_path / "work-evil" / "secret.txt").write_text("top secret\n")
    root = tmp_path / "work"
    root.mkdir()
    return root


@pytest.fixture
def coordinator(root: Path) -> ModuleCoordinator:
    coordinator = ModuleCoordinator()
    coordinator.register_capability("session.working_dir", str(root))
    return coordinator


@pytest.fixture
def events(coordinator: ModuleCoordinator) -> list[tuple[str, object, object]]:
    """Every artifact event: its name, path and bytes."""
    heard: list[tuple[str, object, object]] = []

    def hear(event: str, data: dict[str, object]) -> None:
        heard.append((event, data["path"], data["bytes"]))

    coordinator.hooks.register("artifact:*", hear)
    return heard


@pytest.fixture
def mount(
    coordinator: ModuleCoordinator,
) -> Callable[[Mapping[str, JSONValue]], Filesystem]:
    """Build the module from a configuration, as the loader does."""

    def mount(config: Mapping[str, JSONValue]) -> Filesystem:
        definition = definition_of(Filesystem)
        assert definition is not None
        instance = definition.build(coordinator, config)
        assert isinstance(instance, Filesystem)
        return instance

    return mount


@pytest.fixture
def careful(mount: Callable[[Mapping[str, JSONValue]], Filesystem]) -> Filesystem:
    """The module with its defaults: a file is read before it is written over."""
    return mount({})


@pytest.fixture
def files(mount: Callable[[Mapping[str, JSONValue]], Filesystem]) -> Filesystem:
    """The module, which here writes over files that it has not read."""
    return mount({"read_before_write": False})
