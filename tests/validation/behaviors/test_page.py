"""The page of behaviours lists every one, as the suites have it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from amplifier.validation.behaviors import Behavior, behaviors
from amplifier.validation.behaviors.subject import SAMPLES

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "behaviors.md"


def _row(behavior: Behavior) -> str:
    cells = (f"`{behavior.id}`", behavior.says, behavior.fix)
    return "".join(f"| {cell.replace('|', chr(92) + '|')} " for cell in cells) + "|"


def _rows() -> Iterator[str]:
    """Yield the rows of the page, each behaviour once."""
    seen: set[str] = set()
    for kind in SAMPLES:
        for behavior in behaviors(kind):
            if behavior.id not in seen:
                seen.add(behavior.id)
                yield _row(behavior)


def test_the_page_has_a_row_for_each_behavior() -> None:
    rows = [
        line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")
    ]

    assert rows == list(_rows())
