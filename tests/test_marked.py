"""Which files a run of marked tests leaves out, and that none of them has a test that it wants."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.marked import is_left_out

REST: Final = "not (not process and not model and not figures)"
"""The tests that the read-me's command leaves out."""


@pytest.mark.parametrize(
    ("expression", "plain", "process"),
    [
        ("", False, False),
        (REST, True, False),
        ("process", True, False),
        ("process and not model", True, False),
        ("model", True, True),
        ("not process and not model and not figures", False, False),
        ("not slow", False, False),
        # others are borne without a mention
        ("anyio", False, False),
        ("process or anyio", False, False),
    ],
)
def test_file_is_left_out_that_mentions_no_marker_of_those_wanted(
    tmp_path: Path, expression: str, *, plain: bool, process: bool
) -> None:
    without, bearing = tmp_path / "test_plain.py", tmp_path / "test_process.py"
    without.write_text("def test_it(): ...\n", "utf-8")
    bearing.write_text("import pytest\npytestmark = pytest.mark.process\n", "utf-8")

    assert is_left_out(without, expression) is plain
    assert is_left_out(bearing, expression) is process


@pytest.mark.process
def test_a_marker_that_its_file_does_not_mention_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text(
        "import pytest\nMARKS = pytest.mark.process\n", "utf-8"
    )
    (tmp_path / "test_borrowing.py").write_text(
        "from shared import MARKS\n\npytestmark = MARKS\n\ndef test_it(): ...\n",
        "utf-8",
    )
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {tmp_path} {Path(__file__).parents[1]}\nmarkers = process: x\n",
        "utf-8",
    )

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.marked"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "does not mention mark.process of test_it" in done.stderr
