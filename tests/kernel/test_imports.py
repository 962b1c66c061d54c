"""Packages of installed modules: of two with one name the second is refused, never replaced in silence."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from amplifier import ModuleLoader
from amplifier.kernel.modules.imports import import_package
from amplifier.kernel.modules.sources import FoundModule
from amplifier_sdk.errors import ModuleConflictError, ModuleLoadError
from tests.kernel.packages import install, tool_source


def found(
    folder: Path, package: str, *, attribute: str = "mount", dist: str = "a-tool"
) -> FoundModule:
    return FoundModule(
        "tool-a", f"{package}:{attribute}", dist, str(folder / "a_tool-1.0.dist-info")
    )


@pytest.fixture
def second_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Path) -> Path:
    """Another folder of the search path, after the first."""
    folder = tmp_path / "second"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    return folder


async def test_one_package_name_in_two_distributions_is_refused_with_both_places(
    site: Path, second_site: Path, package: str
) -> None:
    """The interpreter would import the first one for both."""
    for folder, name in ((site, "first"), (second_site, "second")):
        install(
            folder,
            f"{name}-tool",
            {f"tool-{name}": f"{package}:mount"},
            {f"{package}.py": tool_source(name)},
        )
    loader = ModuleLoader(search_paths=[], path=[str(site), str(second_site)])

    with pytest.raises(ModuleConflictError) as caught:
        await loader.load("tool-second")

    assert (
        f"Module 'tool-second' (from second-tool): it brings the package '{package}' in"
        in str(caught.value)
    )
    assert (
        f"{second_site / package}, but that name is taken by {site / package}.py"
        in str(caught.value)
    )
    assert package not in sys.modules
    await loader.load("tool-first")


async def test_the_loser_is_refused_also_when_the_other_is_imported_already(
    site: Path, second_site: Path, package: str
) -> None:
    (site / f"{package}.py").write_text("x = 1")
    (second_site / package).mkdir()
    await import_package(found(site, package), 5)

    with pytest.raises(ModuleConflictError, match="taken by"):
        await import_package(found(second_site, package), 5)


async def test_two_distributions_may_share_a_namespace(
    site: Path, second_site: Path, package: str
) -> None:
    for folder, name in ((site, "one"), (second_site, "two")):
        (folder / package).mkdir()
        (folder / package / f"{name}.py").write_text("x = 1")

    for folder, name in ((site, "one"), (second_site, "two")):
        assert (
            await import_package(found(folder, f"{package}.{name}"), 5)
        ).__name__ == f"{package}.{name}"


async def test_metadata_may_lie_elsewhere_than_its_package(
    site: Path, second_site: Path, package: str
) -> None:
    """An editable installation is like this."""
    (second_site / f"{package}.py").write_text("x = 1")

    assert (await import_package(found(site, package), 5)).__name__ == package


async def test_one_folder_under_two_spellings_is_one_folder(
    site: Path, tmp_path: Path, package: str
) -> None:
    (site / f"{package}.py").write_text("x = 1")
    (tmp_path / "link").symlink_to(site)

    assert (
        await import_package(found(tmp_path / "link", package), 5)
    ).__name__ == package


async def test_a_package_of_python_itself_is_not_replaced(site: Path) -> None:
    (site / "sys.py").write_text(tool_source("a"))

    with pytest.raises(ModuleConflictError, match=r"'sys' in .*taken by Python itself"):
        await import_package(found(site, "sys"), 5)


async def test_a_package_that_the_interpreter_cannot_reach_fails_as_an_import(
    tmp_path: Path, package: str
) -> None:
    (tmp_path / f"{package}.py").write_text("x = 1")

    with pytest.raises(ModuleLoadError, match=f"No module named '{package}'"):
        await import_package(found(tmp_path, package), 5)


async def test_a_module_without_a_specification_is_taken_as_it_is(
    site: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may put what it likes among the imported modules."""
    made = ModuleType(package)
    monkeypatch.setitem(sys.modules, package, made)

    assert await import_package(found(site, package), 5) is made
