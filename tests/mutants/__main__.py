"""Breaks the product: `python -m tests.mutants [COUNT] [SEED] [FOLDER]`; fails when tests pass on too many faults.

Each mutant is a copy of `src` with one fault, and the tests of its package run against that copy. Some faults change
nothing that anybody could see, so that not all are found.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.mutants.mutating import mutants_of

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final[Mapping[str, tuple[str, ...]]] = {
    # its own tests first: they are quick, and notice most
    "src/amplifier_sdk": ("tests/sdk", "tests/loops", "tests/agent", "tests/kernel"),
    "src/amplifier/kernel": ("tests/kernel",),
    "src/amplifier_kit/shell": (
        "tests/kit/shell",
        "tests/kit/rules",
        "plugins/amplifier-module-tool-bash/tests/test_corpora.py",
        "plugins/amplifier-module-tool-bash/tests/test_permission.py",
    ),
    "src/amplifier_kit/http/netguard": (
        "tests/kit/http/netguard",
        "plugins/amplifier-module-tool-web/tests",
    ),
}
"""Each package that is broken, and the tests that must notice."""

QUICK: Final = "not process and not model and not figures"
MIN_SHARE: Final = 0.8
"""The share of mutants that tests must notice."""


def main(count: str = "40", seed: str = "1", only: str = "src") -> int:
    """Break the sources in a folder and print which faults nobody noticed; return the exit code."""
    chance = random.Random(int(seed))
    chosen = {
        folder: tests for folder, tests in TESTS.items() if folder.startswith(only)
    }
    files = [
        (file, tests)
        for folder, tests in chosen.items()
        for file in sorted((ROOT / folder).rglob("*.py"))
    ]
    for folder, tests in chosen.items():
        file = ROOT / folder / "__init__.py"
        if _is_noticed(file.relative_to(ROOT / "src"), file.read_text("utf-8"), tests):
            sys.stderr.write(f"{' '.join(tests)} fails where nothing is broken\n")
            return 2
    found = tried = 0
    while tried < int(count):
        file, tests = chance.choice(files)
        mutants = list(mutants_of(file.read_text("utf-8")))
        if not mutants:
            continue
        mutant = chance.choice(mutants)
        tried += 1
        if _is_noticed(file.relative_to(ROOT / "src"), mutant.source, tests):
            found += 1
        else:
            sys.stdout.write(
                f"{file.relative_to(ROOT)}:{mutant.line}: {mutant.change}\n"
            )
            sys.stdout.flush()
    sys.stdout.write(f"{found} of {tried} mutants noticed, seed {seed}\n")
    return 0 if found >= MIN_SHARE * tried else 1


def _is_noticed(file: Path, source: str, tests: Sequence[str]) -> bool:
    """Run tests against a copy of the sources in which one file is another."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "src"
        shutil.copytree(
            ROOT / "src", folder, ignore=shutil.ignore_patterns("__pycache__")
        )
        (folder / file).write_text(source, "utf-8")
        try:
            ended = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-x",
                    "-q",
                    "-n",
                    "auto",
                    "-m",
                    QUICK,
                    "-p",
                    "no:cacheprovider",
                    *tests,
                ],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(folder)},
                capture_output=True,
                timeout=600,
                check=False,
            )
        except subprocess.TimeoutExpired:  # a fault may never end
            return True
    return ended.returncode != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
