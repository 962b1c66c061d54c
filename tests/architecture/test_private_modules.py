"""A module of the SDK whose name begins with an underscore is private to its folder."""

from __future__ import annotations

from typing import Final

from tests.architecture.source_tree import is_inside, root_files, source_files

PACKAGE: Final = "amplifier_sdk"


def _folder(module: str) -> str:
    return module.rpartition(".")[0]


def test_a_private_module_is_imported_from_its_own_folder_alone() -> None:
    private = {
        file.module
        for file in root_files()
        if file.module.startswith(f"{PACKAGE}.") and not file.is_public
    }

    breaches = [
        f"{file}:{name.line} imports {name.name}"
        for file in source_files()
        for name in file.imports
        if any(
            is_inside(name.name, module) and not is_inside(file.module, _folder(module))
            for module in private
        )
    ]

    assert "amplifier_sdk.history._log" in private
    assert breaches == []
