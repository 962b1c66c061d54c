"""A worker compiles its share of the tests, and runs nothing of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.bytecode import compile_files

MODULE = """
from pathlib import Path

Path("ran").touch()

class Ran:
    ran = Path("ran").touch()
"""


@pytest.mark.parametrize("text", [MODULE, MODULE.replace("from pathlib", "# ")])
def test_what_is_compiled_is_stored_and_not_run(
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    (tmp_path / "mine.py").write_text(text, "utf-8")

    compile_files(pytestconfig, [tmp_path / "mine.py"])

    (stored,) = (tmp_path / "__pycache__").iterdir()
    assert stored.name.startswith("mine.")
    assert "pytest" in stored.name
    assert not (tmp_path / "ran").exists()
