"""What type checkers accept and refuse of the public API.

The files of `tests/typing` are checked, never run. A line that must be an error ends in `# error: CODE, …`,
mypy's codes; pyright must refuse the same lines, in its own words. `# mypy error: CODE` marks what only mypy
reports.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.source_tree import ROOT

FILES: Final = tuple(sorted((ROOT / "tests" / "typing").glob("*.py")))
EXPECTATION: Final = re.compile(
    r"# (?P<only>mypy )?error: (?P<codes>[\w-]+(?:, [\w-]+)*)$"
)

Errors = Mapping[tuple[str, int], set[str]]


def _expected(*, by_mypy: bool) -> Errors:
    return {
        (path.name, number): set(match["codes"].split(", "))
        for path in FILES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if (match := EXPECTATION.search(line)) and (by_mypy or not match["only"])
    }


def _reported_by_mypy() -> Iterator[tuple[str, int, str]]:
    command = [sys.executable, "-m", "mypy", "--output", "json"]
    result = subprocess.run(
        [*command, *map(str, FILES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stderr == ""
    for line in result.stdout.splitlines():
        report = json.loads(line)
        if (
            report["severity"] == "error"
            and Path(report["file"]).parent.name == "typing"
        ):
            yield Path(report["file"]).name, report["line"], report["code"]


def _reported_by_pyright() -> Iterator[tuple[str, int, str]]:
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--outputjson",
        "--pythonpath",
        sys.executable,
    ]
    result = subprocess.run(
        [*command, *map(str, FILES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    for report in json.loads(result.stdout)["generalDiagnostics"]:
        if report["severity"] == "error":
            yield (
                Path(report["file"]).name,
                report["range"]["start"]["line"] + 1,
                report.get("rule", "syntax"),
            )


def _by_line(reports: Iterator[tuple[str, int, str]]) -> Errors:
    lines: dict[tuple[str, int], set[str]] = defaultdict(set)
    for file, line, code in reports:
        lines[file, line].add(code)
    return dict(lines)


@pytest.mark.process
@pytest.mark.timeout(240)
def test_mypy_refuses_the_marked_lines_and_no_others() -> None:
    reported = _by_line(_reported_by_mypy())

    assert reported == _expected(by_mypy=True)


@pytest.mark.process
@pytest.mark.timeout(240)
def test_pyright_refuses_the_marked_lines_and_no_others() -> None:
    reported = _by_line(_reported_by_pyright())

    assert sorted(reported) == sorted(_expected(by_mypy=False))


def test_every_file_expects_errors() -> None:
    files = {file for file, _ in _expected(by_mypy=False)}

    assert sorted(path.name for path in FILES) == sorted(files)
