"""Runs the conformance kits of stores and engines and counts what passed: `python -m scripts.conformance`.

It fails where one did not, or was skipped, for example since no PostgreSQL server is installed.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import attrs
import pytest

__all__ = ["SUITES", "Outcomes", "main", "table"]

SUITES: Final[Mapping[str, str]] = {
    "tests/app/store/test_file_store.py::TestFileStore": "stores: files",
    "plugins/amplifier-module-store-postgres/tests/test_conformance.py::TestPostgres": "stores: PostgreSQL",
    "tests/testing/test_engines.py::TestInMemoryEngine": "engines: in memory",
    "plugins/amplifier-module-engine-dbos/tests/test_conformance.py::TestSQLite": "engines: DBOS on SQLite",
    "plugins/amplifier-module-engine-dbos/tests/test_conformance.py::TestPostgreSQL": "engines: DBOS on PostgreSQL",
}
"""The tests of each subject of a kit."""


@attrs.define(eq=False)
class Outcomes:
    """A plugin of pytest that notes what became of the behaviors of each suite."""

    passed: defaultdict[str, set[str]] = attrs.field(factory=lambda: defaultdict(set))
    other: defaultdict[str, set[str]] = attrs.field(factory=lambda: defaultdict(set))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that ended, or failed in its set-up."""
        if report.when != "call" and report.passed:
            return
        suite, _, case = report.nodeid.partition("::test_behavior[")
        known = self.passed if report.passed else self.other
        known[suite].add(case.removesuffix("]"))


def table(outcomes: Outcomes) -> str:
    """Write the outcomes as a table in Markdown."""
    lines = [
        "| kit and subject | behaviors | event loops | passed |",
        "| --- | ---: | --- | ---: |",
    ]
    for suite, name in SUITES.items():
        passed, other = outcomes.passed[suite], outcomes.other[suite]
        cases = [case.partition("-") for case in passed | other]
        loops = ", ".join(sorted({loop for loop, _, _ in cases}))
        behaviors = len({behavior for _, _, behavior in cases})
        lines.append(
            f"| {name} | {behaviors} | {loops} | {len(passed)} of {len(cases)} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Run the suites and print the table."""
    outcomes = Outcomes()
    tests = [f"{suite}::test_behavior" for suite in SUITES]
    code = int(pytest.main(["-q", "-n", "0", *tests], plugins=[outcomes]))
    print(f"\n{table(outcomes)}")
    missing = [name for suite, name in SUITES.items() if not outcomes.passed[suite]]
    if missing or any(outcomes.other.values()):
        print(f"Not all passed: {', '.join(missing) or 'see above'}", file=sys.stderr)
        return code or 1
    return code


if __name__ == "__main__":
    sys.exit(main())
