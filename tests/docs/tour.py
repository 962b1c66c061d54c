"""The recorded tour: pages whose screens come from the keys that stand above them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from tests.cli.panes import SCROLLED, Pane, pane

__all__ = ["FOLDER", "Step", "legible", "pages", "play", "steps_of", "terminal_of"]

FOLDER: Final = Path(__file__).parents[2] / "docs/tour"
"""The pages."""

_SIZE: Final = re.compile(r"<!-- terminal: (?P<columns>\d+)x(?P<rows>\d+) -->")
_STEP: Final = re.compile(
    r"<!-- keys: (?P<keys>.*?) -->\n```text\n(?P<screen>.*?)```", re.DOTALL
)
_CLEAR: Final = "C-l"
_EMPTY: Final = re.compile(r">.*\n\n.* \| .*")
_FILES: Final = {
    "prices.md": "milk 1.20\nbread 3.50\nhoney 6.00\n",
    "src/till.py": "def total(prices):\n    return sum(prices)\n",
    ".gitignore": "build/\n",
    "build/out.txt": "x\n",
    ".git/HEAD": "ref: refs/heads/main\n",
}
# What differs from one run to the next, and what stands for it.
_VARYING: Final = (
    (re.compile(r"\d+\.\d s\b"), "0.1 s"),
    (re.compile(r"working \d+ s"), "working 1 s"),
    (re.compile(r"/\S*/home/shop"), "/home/you/shop"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b"), "0f3a"),
)


@attrs.frozen
class Step:
    """Some keys, and the screen after them."""

    keys: Sequence[str]
    screen: str


def pages() -> list[Path]:
    """Return the pages, sorted."""
    return sorted(FOLDER.glob("*.md"))


def steps_of(page: str) -> list[Step]:
    """Read the steps of a page."""
    return [
        Step(shlex.split(found["keys"]), found["screen"].rstrip("\n"))
        for found in _STEP.finditer(page)
    ]


@contextmanager
def terminal_of(page: Path, folder: Path) -> Iterator[Pane]:
    """Open the chat of a page, in a project of its own."""
    project = folder / "home/shop"
    for name, text in _FILES.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    found = _SIZE.search(page.read_text("utf-8"))
    assert found is not None, f"{page.name} does not say how large its terminal is"
    size = (int(found["columns"]), int(found["rows"]))
    plan, home = page.with_suffix(".json"), str(folder / "home")
    with pane(folder, plan, size=size, project=project, HOME=home) as terminal:
        yield terminal


def play(terminal: Pane, step: Step) -> None:
    """Press the keys of a step, and wait for its screen."""
    keys = step.keys
    if keys[0] == _CLEAR:
        terminal.type(_CLEAR)
        # The prompt alone, with its status: keys that came sooner would be drawn elsewhere.
        terminal.until(lambda seen: _EMPTY.fullmatch(legible(seen)))
        keys = keys[1:]
    terminal.type(*keys)
    # With what has left it at the top: on a busy machine room for the status is made by scrolling.
    terminal.until(lambda seen: legible(seen).endswith(step.screen), *SCROLLED)


def legible(screen: str) -> str:
    """Return a screen as a page shows it: without what differs each time, and without empty rows that only fill it."""
    for pattern, text in _VARYING:
        screen = pattern.sub(text, screen)
    rows = "\n".join(row.rstrip() for row in screen.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", rows).strip("\n")
