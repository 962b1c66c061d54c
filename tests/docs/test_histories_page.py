"""The page about histories lists every problem that a diagnosis may find."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, get_args

from amplifier_sdk.history import HistoryProblem

PAGE: Final = (
    Path(__file__).resolve().parents[2] / "docs" / "concepts" / "histories.md"
).read_text("utf-8")


def test_the_page_lists_every_problem_once() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)

    assert sorted(listed) == sorted(get_args(HistoryProblem))
