"""What is committed works anywhere: nothing names a package registry or pins what one machine resolved."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.source_tree import PLUGINS, ROOT

LOCK_FILES: Final = frozenset(
    {"Pipfile.lock", "package-lock.json", "pdm.lock", "poetry.lock", "pylock.toml", "uv.lock"}
)
REGISTRIES: Final = tuple(
    ".".join(parts).encode()  # joined here, or this file would name them
    for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"), ("debian", "org"))
)


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.process
def test_no_lock_file_is_committed() -> None:
    assert [path for path in _tracked() if path.name in LOCK_FILES] == []


@pytest.mark.process
def test_no_file_names_a_registry() -> None:
    naming = [
        f"{path.relative_to(ROOT)}: {host.decode()}"
        for path in _tracked()
        for host in REGISTRIES
        if host in path.read_bytes()
    ]

    assert naming == []


def _missing_of(plugin: Path) -> list[str]:
    wanted = (f"src/{plugin.name.replace('-', '_')}/py.typed", "README.md", "tests/test_*.py")
    return [f"{plugin.name}/{pattern}" for pattern in wanted if not any(plugin.glob(pattern))]


def test_plugins_are_typed_described_and_tested() -> None:
    assert [missing for plugin in PLUGINS for missing in _missing_of(plugin)] == []
