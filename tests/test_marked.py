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
    ("expression", "plain", "some", "every"),
    [
        ("", False, False, False),
        (REST, True, False, False),
        ("process", True, False, False),
        ("process and not model", True, False, False),
        ("model", True, True, True),
        ("not process and not model and not figures", False, False, True),
        ("not model", False, False, False),
        # others are borne without a mention
        ("anyio", False, False, False),
        ("process or anyio", False, False, False),
        ("not process and not anyio", False, False, False),
    ],
)
def test_file_is_left_out_none_of_whose_tests_can_fit(
    tmp_path: Path, expression: str, *, plain: bool, some: bool, every: bool
) -> None:
    sources = {
        "def test_it(): ...": plain,
        "@pytest.mark.process\ndef test_it(): ...": some,
        "pytestmark = pytest.mark.process": every,
        "pytestmark = [\n    pytest.mark.timeout(9),\n    pytest.mark.process,\n]": every,
    }

    for source, expected in sources.items():
        file = tmp_path / "test_it.py"
        file.write_text(source, "utf-8")
        assert is_left_out(file, expression) is expected, source


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
