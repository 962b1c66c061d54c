"""What the name of a module of the SDK says: an underscore that it is private to its folder, a noun what it holds."""

from __future__ import annotations

from typing import Final

from tests.architecture.source_tree import is_inside, root_files, source_files

PACKAGE: Final = "amplifier_sdk"
FIELD_WORDS: Final = frozenset({"streaming"})
"""Nouns of the field that look like verbs."""


def _folder(module: str) -> str:
    return module.rpartition(".")[0]


def test_a_private_module_is_imported_from_its_own_folder_alone() -> None:
    private = {file.module for file in root_files() if file.module.startswith(f"{PACKAGE}.") and not file.is_public}

    breaches = [
        f"{file}:{name.line} imports {name.name}"
        for file in source_files()
        for name in file.imports
        if any(is_inside(name.name, module) and not is_inside(file.module, _folder(module)) for module in private)
    ]

    assert "amplifier_sdk.history._log" in private
    assert breaches == []


def test_no_module_is_named_by_a_gerund() -> None:
    modules = [file.module for file in root_files() if is_inside(file.module, PACKAGE)]
    words = {module: module.rpartition(".")[2].strip("_").rpartition("_")[2] for module in modules}

    assert "amplifier_sdk.streaming" in words
    assert [module for module, word in words.items() if word.endswith("ing") and word not in FIELD_WORDS] == []
