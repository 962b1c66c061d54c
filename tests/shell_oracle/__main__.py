"""Runs the oracle: `python -m tests.shell_oracle [TEXTS] [SEED] [FILE]`; fails when something ran that should not.

What came of each 5,000 texts is a line of the file. A run that was interrupted resumes behind the last one, and one
with another seed adds to it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

import attrs

from amplifier_kit.shell import ShellPolicy, standard_table
from tests.shell_oracle.oracle import Report, missing_programs, run_oracle

STEP = 5_000


def main(texts: str = "200000", seed: str = "1", file: str = "") -> int:
    """Run the oracle and print what it found; return the exit code."""
    missing = missing_programs()
    if missing:
        sys.stderr.write(f"the oracle needs {missing}\n")
        return 2
    policy = ShellPolicy([], table=standard_table())
    done = _earlier(file)
    count = int(texts)
    for start in range(0, count, STEP):
        first = int(seed) * 1_000_000 + start
        if first in done:
            continue
        with tempfile.TemporaryDirectory() as folder:
            report = run_oracle(
                Path(folder).resolve(),
                policy,
                texts=min(STEP, count - start),
                seed=first,
            )
        done[first] = report
        if file:
            with Path(file).open("a", encoding="utf-8") as log:
                log.write(json.dumps({"seed": first, **attrs.asdict(report)}) + "\n")
        for text, kind, what in report.findings:
            sys.stdout.write(f"{kind}: {what}\n    {text!r}\n")
        sys.stdout.write(f"{_sums(done.values())}\n")
        sys.stdout.flush()
    return 1 if any(report.findings for report in done.values()) else 0


def _earlier(file: str) -> dict[int, Report]:
    """Return what came of earlier texts, by the seed that made them."""
    if not file or not Path(file).exists():
        return {}
    lines = map(json.loads, Path(file).read_text("utf-8").splitlines())
    return {line.pop("seed"): Report(**line) for line in lines}


def _sums(reports: Collection[Report]) -> str:
    texts = sum(report.evaluated for report in reports)
    ran = sum(report.ran for report in reports)
    waited = sum(report.waited for report in reports)
    found = sum(len(report.findings) for report in reports)
    return f"{texts} texts, {ran} ran, {waited} of them were ended, {found} findings"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
