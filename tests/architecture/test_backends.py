"""Everything runs on asyncio and on trio: shipped code imports neither."""

from __future__ import annotations

from typing import Final

import pytest

from tests.architecture.source_tree import SourceFile, source_files

BACKENDS: Final = frozenset({"asyncio", "trio"})

EXCEPTIONS: Final = {
    "src/amplifier/testing/clock.py": "the virtual clock: anyio has no clock that could be replaced",
    "src/amplifier/cli/_chat/_keyboard.py": "the prompt: prompt_toolkit needs asyncio, and gets it in a thread",
}
"""Each file that may import a backend, with its reason."""


def _imports_backend(file: SourceFile) -> list[int]:
    return [name.line for name in file.imports if name.root in BACKENDS and not name.typing_only]


@pytest.mark.parametrize("file", source_files(), ids=str)
def test_a_shipped_file_imports_no_backend(file: SourceFile) -> None:
    if str(file) in EXCEPTIONS:
        return

    assert _imports_backend(file) == []


def test_every_exception_is_still_needed() -> None:
    needed = {str(file) for file in source_files() if _imports_backend(file)}

    assert sorted(EXCEPTIONS.keys() - needed) == []
