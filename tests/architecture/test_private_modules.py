"""What begins with an underscore in the SDK, a module or a folder, is private to the folder it stands in."""

from __future__ import annotations

from typing import Final

from tests.architecture.source_tree import is_inside, root_files, source_files

PACKAGE: Final = "amplifier_sdk"


def _folder(module: str) -> str:
    """Return the folder in which the first private part of a module's name stands."""
    parts = module.split(".")
    private = next(i for i, part in enumerate(parts) if part.startswith("_"))
    return ".".join(parts[:private])


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
