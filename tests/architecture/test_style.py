"""Rules on the shape of the source; `python -m scripts.style` prints all that is measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from scripts.style import (
    PACKAGES,
    import_cycles,
    is_gerund,
    main,
    measure,
    private_imports,
    room_cycles,
    same_named_classes,
)
from tests.architecture.source_tree import SourceFile, is_inside, source_files

GERUNDS: Final = frozenset(
    {
        *("amplifier.kernel.budgets.spending", "amplifier.kernel.sessions.keeping"),
        "amplifier.kernel.sessions.mounting",
        *(
            "amplifier.validation.behaviors._cancelling",
            "amplifier.validation.behaviors._module_mounting",
        ),
        *(
            "amplifier.validation.behaviors._tool_running",
            "amplifier.validation.inspecting",
        ),
        *(
            "amplifier.validation.loading",
            "amplifier.validation.trying",
            "amplifier.validation.validating",
        ),
    }
)
"""Modules that are still called by a verb in -ing rather than by a noun; the list only gets shorter."""


SDK_LINES: Final = 10_000
"""The lines of code that the SDK stays under: who writes a module reads it in a day."""

PRIVATE_IMPORTS: Final = (
    "amplifier.validation.inspecting imports amplifier.validation.behaviors._stage",
)
"""Imports of private modules from outside of their folder that remain; the list only gets shorter."""


def test_no_modules_import_each_other_in_a_ring() -> None:
    assert import_cycles(source_files()) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_rooms_of_a_package_import_each_other_in_a_ring(package: str) -> None:
    assert room_cycles(source_files(), package) == []


def test_a_ring_of_rooms_is_found_where_their_modules_have_none(tmp_path: Path) -> None:
    names = {
        "app.a.one": "import app.b.one",
        "app.b.one": "",
        "app.b.two": "from app.a import two",
        "app.a.two": "",
    }
    files = []
    for number, (module, source) in enumerate(names.items()):
        (path := tmp_path / f"{number}.py").write_text(source)
        files.append(SourceFile(module=module, path=path))

    assert import_cycles(files) == []
    assert room_cycles(files, "app") == [["a", "b"]]


def test_a_private_module_is_imported_only_in_its_folder() -> None:
    assert [
        found
        for found in private_imports(source_files())
        if found not in PRIVATE_IMPORTS
    ] == []


def test_an_import_of_a_private_module_from_outside_is_found(tmp_path: Path) -> None:
    files = _tree(
        tmp_path,
        **{
            "a._b": "",
            "a.c": "import a._b",
            "d": "from a._b import e",
            "a._f.g": "",
            "a.h": "import a._f.g",
        },
    )

    assert private_imports(files) == ["d imports a._b"]


def test_the_sdk_stays_small() -> None:
    lines = {
        file.module: measure(file).code
        for file in source_files()
        if is_inside(file.module, "amplifier_sdk")
    }

    assert sum(lines.values()) < SDK_LINES


def test_comments_docstrings_and_blank_lines_are_no_code(tmp_path: Path) -> None:
    lines = (
        *('"""Two', 'lines."""', "", "# why"),
        *('A = """one', 'two"""', '"""What A is."""', ""),
        *("def b() -> int:", '    """Give."""', "    return 1  # one"),
    )
    (path := tmp_path / "a.py").write_text("\n".join(lines))

    assert measure(SourceFile(module="a", path=path)).code == 4


def test_no_further_module_is_called_by_a_verb_in_ing() -> None:
    assert [
        file.module
        for file in source_files()
        if is_gerund(file.module) and file.module not in GERUNDS
    ] == []


def _tree(folder: Path, **modules: str) -> Sequence[SourceFile]:
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)
    return [SourceFile(module=name, path=folder / f"{name}.py") for name in modules]


def test_a_ring_through_an_import_inside_a_function_is_found(tmp_path: Path) -> None:
    files = _tree(
        tmp_path,
        a="import b",
        b="def use():\n    from c import thing\n",
        c="import a\nimport d",
        d="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a\n",
    )

    assert import_cycles(files) == [["a", "b", "c"]]


def test_classes_of_one_name_are_found(tmp_path: Path) -> None:
    files = _tree(
        tmp_path,
        a="class Call: ...\nclass _Own: ...",
        b="class Call: ...\nclass _Own: ...",
        c="class Other: ...",
    )

    assert same_named_classes(files) == {"Call": ["a", "b"]}


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("app.changing", True),
        ("kit._spawning", True),
        ("app._tool_running", True),
        ("kit.string", False),
        ("a.ring", False),
    ],
)
def test_a_module_named_by_a_verb_in_ing_is_found(
    module: str, *, expected: bool
) -> None:
    assert is_gerund(module) is expected


def test_the_script_prints_every_view(capsys: pytest.CaptureFixture[str]) -> None:
    main(["table", "tree", "lists", "--of", "amplifier_sdk"])

    printed = capsys.readouterr().out
    assert "| characters a line |" in printed
    assert "src/amplifier_sdk" in printed
