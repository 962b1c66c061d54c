"""The files of a log are opened as they are at one moment, whatever a rotation does."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import count, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ParamSpec, TypeVar

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from amplifier_kit.logs.files import is_open_as, open_log, rotated_name

P = ParamSpec("P")
R = TypeVar("R")


def write_and_rotate(path: Path) -> Iterator[None]:
    """Write a number a file without end; each step leaves what a reader may find."""
    for number in count():
        path.write_bytes(b"%d" % number)
        yield
        for place in (3, 2, 1):
            name = rotated_name(path, place - 1) if place > 1 else path
            if name.exists():
                name.replace(rotated_name(path, place))
                yield


class Interleaving:
    """Lets a writer take steps after each call that a reader makes to the system."""

    def __init__(self, writer: Iterator[None], steps: Sequence[int]) -> None:
        self._writer = writer
        self._steps = iter(steps)
        self._is_writing = False

    def install(self, patch: pytest.MonkeyPatch) -> None:
        scan = os.scandir
        patch.setattr(
            os, "scandir", self._before_steps(lambda path: listed(scan, path))
        )
        patch.setattr(os, "stat", self._before_steps(os.stat))
        patch.setattr(io, "open", self._before_steps(io.open))

    def _before_steps(self, call: Callable[P, R]) -> Callable[P, R]:
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return call(*args, **kwargs)
            finally:
                self._take_steps()

        return run

    def _take_steps(self) -> None:
        if self._is_writing:
            return
        self._is_writing = True
        for _ in range(next(self._steps, 0)):
            next(self._writer)
        self._is_writing = False


def listed(
    scan: Callable[[Path], os._ScandirIterator[str]], path: Path
) -> nullcontext[list[os.DirEntry[str]]]:
    """List a folder at once, as the system does for a short one."""
    with scan(path) as entries:
        return nullcontext([*entries])


@given(ahead=st.integers(0, 30), steps=st.lists(st.integers(0, 20), max_size=24))
@example(ahead=12, steps=[0, 0, 0, 0, 3, 0, 0, 0, 1])  # two listings lack one file
@example(ahead=30, steps=[0, 0, 16, *[0] * 7, 16])  # an inode number that came back
def test_no_file_is_missed_whatever_is_renamed_meanwhile(
    ahead: int, steps: list[int]
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "events.jsonl"
        writer = write_and_rotate(path)
        for _ in range(ahead):
            next(writer)
        Interleaving(writer, steps).install(patch)
        with open_log(path) as files:
            patch.undo()
            numbers = [int(file.read()) for file in files]

    assert all(later == earlier + 1 for earlier, later in pairwise(numbers))
    assert len(numbers) >= min(3, ahead // 4)


def test_files_that_are_none_of_the_log_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    rotated_name(path, 2).write_bytes(b"old")
    rotated_name(path, 1).symlink_to(tmp_path / "nowhere")
    path.mkdir()
    (tmp_path / "events.01.jsonl").write_bytes(b"other")

    with open_log(path) as files:
        assert [file.read() for file in files] == [b"old"]
    with open_log(tmp_path / "none" / "events.jsonl") as files:
        assert files == []


def test_a_renamed_file_is_known_by_its_new_name(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"old")
    with path.open("rb") as file:
        assert is_open_as(file, path)
        path.rename(rotated_name(path, 1))
        assert not is_open_as(file, path)
        path.write_bytes(b"new")
        assert not is_open_as(file, path)
        assert is_open_as(file, rotated_name(path, 1))
