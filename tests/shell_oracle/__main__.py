"""Runs the oracle: `python -m tests.shell_oracle [TEXTS] [SEED]`; fails when something ran that should not."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from amplifier_kit.shell import ShellPolicy, standard_table
from tests.shell_oracle.oracle import missing_programs, run_oracle


def main(texts: int = 200_000, seed: int = 1) -> int:
    """Run the oracle and print what it found; return the exit code."""
    missing = missing_programs()
    if missing:
        sys.stderr.write(f"the oracle needs {missing}\n")
        return 2
    evaluated = ran = found = 0
    policy = ShellPolicy([], table=standard_table())
    step = min(texts, 5_000)
    for start in range(0, texts, step):
        with tempfile.TemporaryDirectory() as folder:
            report = run_oracle(
                Path(folder).resolve(),
                policy,
                texts=step,
                seed=seed * 1_000_000 + start,
            )
        evaluated, ran, found = (
            evaluated + report.evaluated,
            ran + report.ran,
            found + len(report.findings),
        )
        for text, kind, what in report.findings:
            sys.stdout.write(f"{kind}: {what}\n    {text!r}\n")
        sys.stdout.write(f"{evaluated} texts, {ran} ran, {found} findings\n")
        sys.stdout.flush()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
