"""Packages of installed modules: of two with one name the second is refused, never replaced in silence."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from threading import Event
from threading import enumerate as threads
from types import ModuleType, SimpleNamespace
from typing import Final
from weakref import ref

import anyio
import anyio.to_thread
import pytest

from amplifier import ModuleLoader
from amplifier.kernel.modules.imports import import_package
from amplifier.kernel.modules.sources import FoundModule
from amplifier_sdk.errors import ModuleConflictError, ModuleLoadError
from amplifier_sdk.threads import abandoned
from tests.kernel.packages import install, tool_source

_CALLER: Final[ContextVar[object]] = ContextVar("caller")


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


async def test_package_in_two_distributions_names_both_places(
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


async def test_loser_is_refused_also_when_other_is_imported_already(
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


async def test_package_that_interpreter_cannot_reach_fails_as_import(
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


# -- at once


async def test_an_import_waits_for_no_other_thread(site: Path, package: str) -> None:
    """Its deadline is about its own time, not about that of a queue."""
    (site / f"{package}.py").write_text("x = 1")
    limiter = anyio.to_thread.current_default_thread_limiter()
    borrowers = [object() for _ in range(int(limiter.total_tokens))]
    for borrower in borrowers:
        limiter.acquire_on_behalf_of_nowait(borrower)
    try:
        assert (await import_package(found(site, package), 5)).__name__ == package
    finally:
        for borrower in borrowers:
            limiter.release_on_behalf_of(borrower)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """What a package waits for while it is imported, and how often it was."""
    gate = SimpleNamespace(opened=Event(), imports=[])
    monkeypatch.setitem(sys.modules, "kernel_test_gate", gate)
    yield gate
    gate.opened.set()


GATED: Final = """
import kernel_test_gate as gate
gate.imports.append(__name__)
gate.opened.wait(20)
"""


async def test_a_thousand_sessions_share_one_import(
    site: Path, package: str, gate: SimpleNamespace
) -> None:
    (site / f"{package}.py").write_text(GATED)
    imported: list[ModuleType] = []

    async def take() -> None:
        imported.append(await import_package(found(site, package), 10))

    async with anyio.create_task_group() as group:
        for _ in range(1000):
            group.start_soon(take)
        await anyio.wait_all_tasks_blocked()
        assert [each.name for each in threads()].count(f"import {package}") == 1
        gate.opened.set()

    assert len(imported) == 1000
    assert {module.__name__ for module in imported} == {package}
    assert gate.imports == [package]


async def test_an_import_that_failed_is_begun_anew(
    site: Path, package: str, gate: SimpleNamespace
) -> None:
    gate.opened.set()
    (site / f"{package}.py").write_text(GATED + "raise OSError('no')")
    for _ in range(2):
        with pytest.raises(ModuleLoadError, match="OSError: no"):
            await import_package(found(site, package), 5)

    assert gate.imports == [package] * 2


@pytest.mark.parametrize("code", ["", "raise OSError('no')\n"], ids=["works", "fails"])
async def test_an_import_refers_to_no_caller_when_it_ended(
    site: Path, package: str, gate: SimpleNamespace, code: str
) -> None:
    class Caller:
        pass

    async def import_it() -> ref[Caller]:
        caller = Caller()
        _CALLER.set(caller)
        with suppress(ModuleLoadError):
            await import_package(found(site, package), 5)
        return ref(caller)

    gate.opened.set()
    (site / f"{package}.py").write_text(GATED + code)
    callers: list[ref[Caller]] = []

    async def note() -> None:
        callers.append(await import_it())

    async with anyio.create_task_group() as group:
        group.start_soon(note)
    for thread in threads():
        if thread.name == f"import {package}":
            await anyio.to_thread.run_sync(thread.join)
    gc.collect()

    assert callers[0]() is None


async def test_who_waits_may_leave_without_the_others(
    site: Path, package: str, gate: SimpleNamespace
) -> None:
    (site / f"{package}.py").write_text(GATED)
    async with anyio.create_task_group() as group:
        group.start_soon(import_package, found(site, package), 10)
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0):
            await import_package(found(site, package), 10)
        assert abandoned() == ()
        gate.opened.set()

    assert package in sys.modules


async def test_import_that_nobody_waits_for_is_listed_while_it_runs(
    site: Path, package: str, gate: SimpleNamespace
) -> None:
    (site / f"{package}.py").write_text(GATED)
    for _ in range(2):
        with pytest.raises(ModuleLoadError, match=r"took longer than 0\.01 s"):
            await import_package(found(site, package), 0.01)

    assert [entry.name for entry in abandoned()] == [f"import {package}"]
    gate.opened.set()
    with anyio.fail_after(5):
        while abandoned():
            await anyio.lowlevel.checkpoint()


async def test_an_import_that_was_in_time_counts_on_a_busy_event_loop(
    site: Path, package: str, gate: SimpleNamespace
) -> None:
    (site / f"{package}.py").write_text(GATED)
    imported: list[ModuleType] = []

    async def take() -> None:
        imported.append(await import_package(found(site, package), 0.1))

    async with anyio.create_task_group() as group:
        group.start_soon(take)
        await anyio.wait_all_tasks_blocked()
        end = anyio.current_time() + 0.2
        gate.opened.set()
        while anyio.current_time() < end:  # the event loop sees nothing of it
            pass

    assert [module.__name__ for module in imported] == [package]
