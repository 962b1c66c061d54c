"""The tour is what the program shows: its keys are typed, and its screens compared."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.docs.tour import pages, play, steps_of, terminal_of


@pytest.mark.process
@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_each_screen_comes_from_its_keys(page: Path) -> None:
    steps = steps_of(page.read_text("utf-8"))
    assert steps
    # A path that is as long each time: where a line is wrapped depends on it.
    with (
        TemporaryDirectory(dir="/tmp") as folder,
        terminal_of(page, Path(folder)) as terminal,
    ):
        for step in steps:
            play(terminal, step)
