"""The smallest modules of the documentation do what their types promise: each is sound as a package of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from amplifier.validation import validate

_PAGE: Final = (
    Path(__file__).parents[2] / "docs" / "get-started" / "modules-in-ten-lines.md"
)
_BLOCK: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MODULES: Final = {
    "tool-count": ("tool", "count_words"),
    "provider-echo": ("provider", "Echo"),
    "hooks-keep-files": ("hook", "keep_files"),
    "loop-ask-and-act": ("orchestrator", "AskAndAct"),
    "context-latest": ("context", "LatestMessages"),
}
"""The modules of the page, as its session names them, each with its type and the name in the code."""

_PROJECT: Final = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "amplifier-module-{id}"
version = "0.1.0"
description = "A module of the documentation."
requires-python = ">=3.11"
dependencies = ["amplifier"]

[project.entry-points."amplifier.modules"]
{id} = "{package}:{name}"
"""


def block_of(name: str) -> str:
    """Return the page's code that defines a name."""
    (found,) = (
        code
        for code in _BLOCK.findall(_PAGE.read_text("utf-8"))
        if re.search(rf"^(?:class|def|async def) {name}\b", code, re.MULTILINE)
    )
    return str(found)


@pytest.mark.process
@pytest.mark.parametrize("id", sorted(_MODULES))
def test_a_minimal_module_passes_every_behavior_of_its_type(
    tmp_path: Path, id: str
) -> None:
    kind, name = _MODULES[id]
    package = f"amplifier_module_{id.replace('-', '_')}"
    folder = tmp_path / "src" / package
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(
        f'"""A module of the documentation."""\n\n{block_of(name)}', "utf-8"
    )
    project = _PROJECT.format(id=id, package=package, name=name)
    (tmp_path / "pyproject.toml").write_text(project, "utf-8")

    report = validate(tmp_path, behavioral=True)

    failed = [result for result in report.all_results if result.status == "error"]
    assert [str(result) for result in failed] == []
    assert report.count("error") == 0
    assert [(module.id, module.type) for module in report.modules] == [(id, kind)]
    assert any(result.backend == "trio" for result in report.all_results)
