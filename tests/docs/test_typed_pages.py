"""What a reader copies from any page passes both type checkers, as the rest of a program would."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Final

import pytest

from tests.docs.pages import Page, read_page

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = (
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("plugins/*/README.md")),
)
INDEPENDENT: Final = ROOT / "docs/concepts/side-by-side.md"
"""A page whose examples share nothing but what the first block says."""

MADE_AT_RUN_TIME: Final = 'Import "amplifier_core'
"""What pyright cannot find: `amplifier.compat.install()` makes it."""

RULES: Final = (
    "# mypy: allow-redefinition-new, local-partial-types",
    # the pages may name things anew, and pydantic's fields are of any type
    '# mypy: disable-error-code="no-redef, explicit-any"',
    "from __future__ import annotations",
)
"""How a page is checked; in the module, so that mypy's cache of everything else serves as it is."""


def program(page: Page) -> str:
    """Return a page's blocks as a module: in functions, where they may await."""
    blocks = [block.text for block in page.blocks if block.kind == "code"]
    parts = [blocks]
    if page.path == INDEPENDENT:
        parts = [[blocks[0], block] for block in blocks[1:]]
    given = "url: str" if page.needs_server else ""
    functions = [
        f"async def part_{number}({given}) -> None:\n{indent(''.join(part), '    ')}"
        for number, part in enumerate(parts)
    ]
    return "\n\n".join([*RULES, *functions])


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for path in PAGES:
        page = read_page(path)
        if any(block.kind == "code" for block in page.blocks):
            name = "_".join(path.relative_to(ROOT).with_suffix("").parts)
            target = folder / f"{name.replace('-', '_')}.py"
            target.write_text(program(page), "utf-8")
    return folder


@pytest.mark.process
@pytest.mark.timeout(240)
def test_mypy_accepts_the_pages(programs: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--no-error-summary"]
    result = subprocess.run(
        [*command, str(programs)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.stdout == ""


@pytest.mark.process
@pytest.mark.timeout(240)
def test_pyright_accepts_the_pages(programs: Path) -> None:
    command = [sys.executable, "-m", "pyright", "--outputjson"]
    result = subprocess.run(
        [*command, "--pythonpath", sys.executable, str(programs)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert list(_errors(result.stdout)) == []


def _errors(report: str) -> Iterator[str]:
    for found in json.loads(report)["generalDiagnostics"]:
        message = found["message"]
        if found["severity"] == "error" and not message.startswith(MADE_AT_RUN_TIME):
            line = found["range"]["start"]["line"] + 1
            yield f"{Path(found['file']).name}:{line}: {message}"
