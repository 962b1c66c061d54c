"""Every example runs as a reader runs it, and on both backends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from importlib.util import module_from_spec, spec_from_file_location
from itertools import zip_longest
from pathlib import Path
from types import ModuleType
from typing import Final

import anyio
import pytest

FOLDER: Final = Path(__file__).resolve().parents[2] / "examples"

STREAMED: Final = """\
text     I add them.
call     add {"left": 19, "right": 23}
usage    5
started  add
finished add -> 42
text     19 plus 23\x20
text     is 42.
usage    8
answer   19 plus 23 is 42.
"""

PRINTED: Final = {
    "word_count_tool": "It has 6 words.\n",
    "asyncio_app": STREAMED,
    "trio_app": STREAMED,
    "own_module_type": (
        "starboard: the right side of a ship\n"
        "knot: one nautical mile an hour\n"
        "Error: No glossary knows 'keel'\n"
        "Starboard is on the right.\n"
    ),
    "policy_hook": (
        "I may not delete plan.txt.\n"
        'list_files: ["notes.txt", "plan.txt"]\n'
        "delete_file: Error: Denied by Policy.check: this session is read-only\n"
    ),
}
"""What each example prints, whatever runs it."""


def test_every_example_is_run() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(PRINTED)


@pytest.mark.process
@pytest.mark.parametrize("name", PRINTED)
def test_an_example_runs_as_a_program(name: str, tmp_path: Path) -> None:
    program = subprocess.run(
        [sys.executable, "-W", "error", str(FOLDER / f"{name}.py")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env=os.environ,
    )

    assert (program.stdout, program.stderr, program.returncode) == (
        PRINTED[name],
        "",
        0,
    )


@pytest.mark.parametrize("name", PRINTED)
async def test_an_example_runs_inside_a_running_program(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main: Callable[[], Awaitable[None]] = _load(name, f"examples_{name}").main

    with anyio.fail_after(30):
        await main()

    assert capsys.readouterr().out == PRINTED[name]


def _load(name: str, module_name: str) -> ModuleType:
    spec = spec_from_file_location(module_name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[module_name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_two_apps_differ_in_one_line_of_code() -> None:
    lines = [
        (FOLDER / f"{name}_app.py").read_text("utf-8").splitlines()
        for name in ("asyncio", "trio")
    ]

    differing = [pair for pair in zip_longest(*lines) if pair[0] != pair[1]]

    assert [[line.strip() for line in pair] for pair in differing] == [
        [
            'anyio.run(main, parser.parse_args().provider, backend="asyncio")',
            'anyio.run(main, parser.parse_args().provider, backend="trio")',
        ]
    ]


@pytest.mark.process
@pytest.mark.model
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["asyncio_app", "trio_app"])
def test_the_apps_run_with_the_embedded_model(name: str, tmp_path: Path) -> None:
    program = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), "--provider", "provider-local"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=tmp_path,
        env=os.environ,
    )

    lines = program.stdout.splitlines()
    assert program.returncode == 0, program.stderr
    assert "started  add" in lines
    assert any(line.startswith("finished add -> ") for line in lines)
    assert any(line.startswith("answer   ") for line in lines)
