"""The samples of the module source protocol: the same calls and names, in a real session.

The sample's `load` asks the resolver for its hint as `profile_hint`; so does ours, and it knows the other two
spellings. A resolver is mounted without `await`, as the sample does it.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

import attrs
import pytest

from amplifier import (
    AmplifierModuleLoader,
    AmplifierSession,
    ModuleCoordinator,
    ModuleLoader,
)
from amplifier_sdk import (
    ModuleLoadError,
    ModuleNotFoundError,
    ModuleSource,
    ModuleSourceResolver,
)

MODULE = '''
from amplifier_sdk import tool

@tool
def greet(name: str) -> str:
    """Greet."""
    return f"Hello {name}"
'''
DISTRIBUTION = """
[project]
name = "amplifier-module-{module_id}"
version = "1"

[project.entry-points."amplifier.modules"]
{module_id} = "{package}:greet"
"""
NUMBERS = count()


class FileSource:
    """Resolves local filesystem paths."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def resolve(self) -> Path:
        return self.path


class MyCustomResolver:
    """Example custom resolver (app-layer policy)."""

    def __init__(self, overrides: dict[str, Path]) -> None:
        self.overrides = overrides
        self.hints: list[object] = []

    def resolve(self, module_id: str, profile_hint: object = None) -> ModuleSource:
        self.hints.append(profile_hint)

        # App-specific logic
        if module_id in self.overrides:
            return FileSource(self.overrides[module_id])

        # Fall back to profile hint
        if profile_hint:
            return self.parse_profile_hint(profile_hint)

        raise ModuleNotFoundError(module_id, "neither an override nor a hint names it")

    def parse_profile_hint(self, profile_hint: object) -> ModuleSource:
        return FileSource(Path(str(profile_hint)))


@attrs.frozen
class Folder:
    """A folder that holds a module, as a resolver gives it; each test has a module of its own."""

    path: Path
    module_id: str
    package: Path


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    module_id = f"tool-greet-{next(NUMBERS)}"
    package = tmp_path / f"amplifier_module_{module_id.replace('-', '_')}"
    package.mkdir()
    (package / "__init__.py").write_text(MODULE)
    (tmp_path / "pyproject.toml").write_text(
        DISTRIBUTION.format(module_id=module_id, package=package.name)
    )
    return Folder(tmp_path, module_id, package)


def a_session(module_id: str, source: str | None = None) -> AmplifierSession:
    return AmplifierSession(
        {
            "session": {"orchestrator": "loop-basic", "context": "context-simple"},
            "providers": [
                {"module": "provider-scripted", "config": {"responses": ["Hi."]}}
            ],
            "tools": [{"module": module_id, **({"source": source} if source else {})}],
        }
    )


def test_the_samples_satisfy_the_protocols(tmp_path: Path) -> None:
    assert isinstance(FileSource(tmp_path), ModuleSource)
    assert isinstance(MyCustomResolver({}), ModuleSourceResolver)


async def test_a_custom_resolver_says_where_a_module_comes_from(folder: Folder) -> None:
    resolver = MyCustomResolver({folder.module_id: folder.path})
    session = a_session(folder.module_id)
    session.coordinator.mount("module-source-resolver", resolver)  # type: ignore[unused-awaitable]  # as the sample does

    async with session:
        result = await session.coordinator.tools["greet"].execute({"name": "Ada"})

    assert result.output == "Hello Ada"


async def test_the_plans_source_reaches_the_resolver_as_its_hint(
    folder: Folder,
) -> None:
    resolver = MyCustomResolver({})
    session = a_session(folder.module_id, source=str(folder.path))
    await session.coordinator.mount("module-source-resolver", resolver)

    async with session:
        assert list(session.coordinator.tools) == ["greet"]

    assert str(folder.path) in resolver.hints


async def test_what_no_resolver_knows_is_a_module_that_is_not_found() -> None:
    session = a_session("tool-unheard-of")
    await session.coordinator.mount("module-source-resolver", MyCustomResolver({}))

    async with session:
        (failure,) = session.failures

    assert isinstance(failure, ModuleNotFoundError)
    assert "neither an override nor a hint names it" in str(failure)


async def test_module_found_and_cannot_be_imported_is_load_error(
    folder: Folder,
) -> None:
    (folder.package / "__init__.py").write_text("import nothing_of_this_name")
    session = a_session(folder.module_id)
    await session.coordinator.mount(
        "module-source-resolver", MyCustomResolver({folder.module_id: folder.path})
    )

    async with session:
        (failure,) = session.failures

    assert isinstance(failure, ModuleLoadError)
    assert "nothing_of_this_name" in str(failure)


async def test_without_a_resolver_entry_points_are_searched() -> None:
    async with a_session("tool-unheard-of") as session:
        (failure,) = session.failures
        assert list(session.coordinator.providers) == ["scripted"]

    assert isinstance(failure, ModuleNotFoundError)
    assert failure.module_id == "tool-unheard-of"


def test_loader_may_be_made_with_coordinator_as_sample_does() -> None:
    coordinator = ModuleCoordinator()
    coordinator.mount("module-source-resolver", MyCustomResolver({}))  # type: ignore[unused-awaitable]  # as the sample does

    loader = AmplifierModuleLoader(coordinator)

    assert isinstance(loader, ModuleLoader)
    assert loader.coordinator is coordinator
