"""Everything runs on asyncio and on trio: shipped code imports neither."""

from __future__ import annotations

from typing import Final

from tests.architecture.source_tree import SourceFile, source_files

BACKENDS: Final = frozenset({"asyncio", "trio"})

EXCEPTIONS: Final = {
    "src/amplifier/testing/clock.py": "the virtual clock: anyio has no clock that could be replaced",
    "src/amplifier/cli/_chat/_keyboard.py": "the prompt: prompt_toolkit needs asyncio, and gets it in a thread",
}
"""Each file that may import a backend, with its reason."""


def _imports_of_backends(file: SourceFile) -> list[str]:
    return [
        f"{file}:{name.line} imports {name.name}"
        for name in file.imports
        if name.root in BACKENDS and not name.typing_only
    ]


def test_shipped_files_import_no_backend() -> None:
    offenders = [
        offender
        for file in source_files()
        if str(file) not in EXCEPTIONS
        for offender in _imports_of_backends(file)
    ]

    assert offenders == []


def test_every_exception_is_still_needed() -> None:
    needed = {str(file) for file in source_files() if _imports_of_backends(file)}

    assert sorted(EXCEPTIONS.keys() - needed) == []
