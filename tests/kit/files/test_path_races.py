"""Who swaps directories and files while they are used gets no access outside, neither to read nor to write."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from amplifier_kit.files import openat2
from amplifier_kit.files.atomic import write_atomically
from amplifier_kit.files.path_errors import PathError
from amplifier_kit.files.paths import ConfinedPaths

pytestmark = pytest.mark.figures

SECONDS = float(os.environ.get("AMPLIFIER_RACE_SECONDS", "1"))
"""How long each race lasts; `AMPLIFIER_RACE_SECONDS=10` gives the figures that are published."""

Swap = Callable[[Path, Path], None]


@pytest.fixture(params=["kernel", "walk"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "walk":
        monkeypatch.setattr(openat2, "kernel_opener", lambda: None)
    elif openat2.kernel_opener() is None:
        pytest.skip("this system has no openat2")
    return str(request.param)


def swap_directory(root: Path, outside: Path) -> None:
    """The directory becomes a link to outside, and a directory again."""
    os.rename(root / "sub", root / "aside")
    os.rename(root / "bait", root / "sub")
    os.rename(root / "sub", root / "bait")
    os.rename(root / "aside", root / "sub")


def swap_file(root: Path, outside: Path) -> None:
    """The file becomes a link to a secret, and a file again."""
    os.rename(root / "sub" / "file", root / "sub" / "kept")
    with suppress(FileExistsError):  # a write that had begun took the name
        os.symlink(outside / "file", root / "sub" / "file")
    os.replace(root / "sub" / "kept", root / "sub" / "file")


def swap_deep(root: Path, outside: Path) -> None:
    """What stands above the directory becomes a link, whose target has a directory of the same name."""
    os.rename(root / "upper", root / "aside")
    os.symlink(outside.parent, root / "upper")
    os.unlink(root / "upper")
    os.rename(root / "aside", root / "upper")


def move_deeper(root: Path, outside: Path) -> None:
    """The directory moves to another depth and back, so that `..` leads elsewhere."""
    os.rename(root / "upper" / "outside" / "deep", root / "moved")
    os.rename(root / "moved", root / "upper" / "outside" / "deep")


SHAPES = {
    "directory": (swap_directory, ("sub/file", "sub/../sub/file")),
    "file": (swap_file, ("sub/file",)),
    "above": (swap_deep, ("upper/outside/file",)),
    "dots": (
        move_deeper,
        (
            "upper/outside/deep/../../../sub/file",
            "upper/outside/deep/../../../../outside/file",
        ),
    ),
}


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """The root, and a directory outside of it with a secret."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("secret")
    (root / "upper" / "outside" / "deep").mkdir(parents=True)
    (root / "sub").mkdir()
    for directory in (root / "sub", root / "upper" / "outside"):
        (directory / "file").write_text("inside")
    (root / "bait").symlink_to(outside)
    return root, outside


@contextmanager
def swapping(swap: Swap, root: Path, outside: Path) -> Iterator[None]:
    """Swap again and again in a thread while the block runs."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            swap(root, outside)

    swapper = threading.Thread(target=run)
    swapper.start()
    try:
        yield
    finally:
        stop.set()
        swapper.join()


@pytest.mark.timeout(SECONDS + 30)
@pytest.mark.parametrize("shape", SHAPES)
def test_no_race_leads_outside(places: tuple[Path, Path], shape: str) -> None:
    root, outside = places
    swap, paths = SHAPES[shape]
    confined = ConfinedPaths([root], base=root, purpose="write")
    read: list[bytes] = []
    done = 0
    end = time.monotonic() + SECONDS
    with swapping(swap, root, outside):
        # a busy machine may not come to one access in that time
        while time.monotonic() < end or not done:
            for path in paths:
                with suppress(PathError, OSError), confined.locate(path) as resolved:
                    with resolved.open_file() as file:
                        read.append(file.read())
                    write_atomically(
                        resolved.name, b"inside", dir_fd=resolved.directory
                    )
                    done += 1

    assert {*read} == {b"inside"}
    assert os.listdir(outside) == ["file"]
    assert (outside / "file").read_text() == "secret"
