"""What the shell policy lets run unasked does no more than it said; `nox -s shell_oracle` tries 200,000."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier_kit.shell import ShellPolicy, standard_table
from tests.shell_oracle.oracle import missing_programs, run_oracle

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        bool(missing_programs()), reason=f"the oracle needs {missing_programs()}"
    ),
]


def test_unasked_command_runs_and_opens_only_what_policy_names(
    tmp_path: Path,
) -> None:
    report = run_oracle(
        tmp_path, ShellPolicy([], table=standard_table()), texts=300, seed=11
    )

    assert (report.evaluated, report.findings) == (300, ())
    assert report.ran > 100


def test_oracle_notices_what_policy_that_allows_all_lets_run(
    tmp_path: Path,
) -> None:
    report = run_oracle(tmp_path, ShellPolicy([], unlisted="allow"), texts=300, seed=11)

    assert {"canary", "git", "secret"} <= {kind for _, kind, _ in report.findings}
