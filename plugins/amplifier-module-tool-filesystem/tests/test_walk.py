"""A walk through a tree that changes meanwhile stays inside it and goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from anyio import to_thread

from amplifier_module_tool_filesystem.walk import Budget, walk_tree


async def walk_while(
    root: Path, change: Callable[[str], None]
) -> tuple[list[str], Budget]:
    """Walk through everything, changing the tree after each entry."""
    budget = Budget(max_visited=100, seconds=10)

    def walk() -> list[str]:
        handle = os.open(root, os.O_RDONLY)
        try:
            names: list[str] = []
            for entry in walk_tree(handle, budget, lambda parts: True):
                names.append(entry.name)
                change(entry.name)
            return names
        finally:
            os.close(handle)

    return await to_thread.run_sync(walk), budget


async def test_a_directory_that_becomes_a_link_is_not_entered(
    root: Path, tmp_path: Path
) -> None:
    (root / "sub").mkdir()
    (root / "z").touch()

    def swap(name: str) -> None:
        if name == "sub":
            (root / "sub").rmdir()
            (root / "sub").symlink_to(tmp_path)

    names, budget = await walk_while(root, swap)

    assert names == ["sub", "z"]
    assert budget.report() == {"unreadable_directories": 1}


async def test_an_entry_that_goes_away_is_passed_over(root: Path) -> None:
    for name in ("a", "b", "c"):
        (root / name).touch()

    names, budget = await walk_while(
        root, lambda name: (root / "b").unlink(missing_ok=True)
    )

    assert names == ["a", "c"]
    assert budget.report() == {}


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
async def test_a_directory_that_opens_and_cannot_be_listed_is_counted() -> None:
    """The network of a process that ended, and that nobody waited for, is such a directory."""
    budget = Budget(max_visited=1000, seconds=10)
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

        def walk() -> list[str]:
            handle = os.open(f"/proc/{child.pid}", os.O_RDONLY)
            try:
                return [
                    entry.name
                    for entry in walk_tree(
                        handle, budget, lambda parts: parts == ("net",)
                    )
                ]
            finally:
                os.close(handle)

        names = await to_thread.run_sync(walk)

    assert {"net", "status"} <= set(names)
    assert budget.report() == {"unreadable_directories": 1}
