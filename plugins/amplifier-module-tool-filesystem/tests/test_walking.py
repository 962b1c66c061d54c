"""A walk through a tree that changes meanwhile stays inside it and goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from anyio import to_thread

from amplifier_module_tool_filesystem.walking import Budget, walk_tree


async def walk_while(root: Path, change: Callable[[str], None]) -> tuple[list[str], Budget]:
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


async def test_a_directory_that_becomes_a_link_is_not_entered(root: Path, tmp_path: Path) -> None:
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

    names, budget = await walk_while(root, lambda name: (root / "b").unlink(missing_ok=True))

    assert names == ["a", "c"]
    assert budget.report() == {}
