"""What a reader copies from the pages about agents passes both type checkers, as the rest of a program would."""

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
    "README.md",
    "docs/concepts/hooks.md",
    "docs/concepts/side-by-side.md",
    "docs/how-to/agents.md",
    "docs/how-to/evals.md",
    "docs/how-to/media.md",
    "docs/how-to/serving.md",
    "docs/how-to/typed-output.md",
)
INDEPENDENT: Final = "docs/concepts/side-by-side.md"
"""A page whose examples share nothing but what the first block says."""

RULES: Final = (
    "--allow-redefinition-new",
    "--local-partial-types",
    # the pages may name things anew, and pydantic's fields are of any type
    "--disable-error-code=no-redef",
    "--disable-error-code=explicit-any",
)


def program(page: Page, *, is_independent: bool) -> str:
    """Return a page's blocks as a module: in functions, where they may await."""
    blocks = [block.text for block in page.blocks if block.kind == "code"]
    parts = [[blocks[0], block] for block in blocks[1:]] if is_independent else [blocks]
    functions = [
        f"async def part_{number}() -> None:\n{indent(''.join(part), '    ')}"
        for number, part in enumerate(parts)
    ]
    return "\n\n".join(["from __future__ import annotations", *functions])


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    for name in PAGES:
        page = read_page(ROOT / name)
        text = program(page, is_independent=name == INDEPENDENT)
        (folder / f"{Path(name).stem.replace('-', '_')}.py").write_text(text, "utf-8")
    return folder


@pytest.mark.process
@pytest.mark.timeout(240)
def test_mypy_accepts_the_pages(programs: Path, pytestconfig: pytest.Config) -> None:
    command = [sys.executable, "-m", "mypy", *RULES, "--no-error-summary"]
    cache = pytestconfig.cache.mkdir("mypy-pages")
    result = subprocess.run(
        [*command, "--cache-dir", str(cache), str(programs)],
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
        if found["severity"] == "error":
            line = found["range"]["start"]["line"] + 1
            yield f"{Path(found['file']).name}:{line}: {found['message']}"
