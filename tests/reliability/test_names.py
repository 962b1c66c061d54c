"""However a session is called, its log, its history and its lock stand in one folder of its own below the store."""

from __future__ import annotations

import json
import os
import stat
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from amplifier.testing import answer
from amplifier_sdk.errors import ModuleLoadError
from tests.reliability.stage import AppDirs, files_below, session

pytestmark = pytest.mark.anyio

_PARTS: Final = (
    "..",
    "/etc/passwd",
    "C:\\x",
    "a/b",
    "a\x00b",
    "~root",
    "con",
    "\u202ex",
    "é",
    "\ud83d",
)
_FRAMES: Final = ("{}", "../{}", "{}/..", " {} ", "{}.", "x{}")
_WHOLE: Final = (
    ".",
    "",
    "-rf",
    "*",
    "a" * 1000,
    "A",
    "a",
    "%2e%2e",
    "\n",
    "..\\..",
    "${HOME}",
    "nul.txt",
)
IDS: Final = (
    *dict.fromkeys(frame.format(part) for frame, part in product(_FRAMES, _PARTS)),
    *_WHOLE,
)


def test_there_are_sixty() -> None:
    assert len(set(IDS)) == len(IDS) >= 60


async def test_every_name_has_a_folder_of_its_own(
    dirs: AppDirs, anyio_backend_name: str
) -> None:
    names = (
        IDS
        if "AMPLIFIER_TABLES" in os.environ
        else IDS[anyio_backend_name == "trio" :: 2]
    )
    for name in names:
        async with session(
            dirs, answer("Done."), tools=[], hooks=["hooks-logging"], session_id=name
        ) as made:
            await made.execute("Begin.")

    store = dirs.home / ".amplifier" / "sessions"
    folders = sorted(store.iterdir())
    assert (
        len(folders) == len({folder.name.lower() for folder in folders}) == len(names)
    )
    for folder in folders:
        assert {"context-messages.jsonl", "events.jsonl"} <= {
            path.name for path in folder.iterdir()
        }
    written = [*files_below(dirs.home.parent)]
    assert [path for path in written if store not in path.parents] == []
    check_rest(written, dirs)


def check_rest(written: list[Path], dirs: AppDirs) -> None:
    """What rests is JSON in files and folders of their user alone."""
    for path in written:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for line in path.read_text("utf-8").splitlines():
            json.loads(line)
    for folder, _, _ in os.walk(dirs.home / ".amplifier"):
        assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["..", "a/b", "\ud83d"])
async def test_two_sessions_of_one_name_do_not_write_at_once(
    dirs: AppDirs, name: str
) -> None:
    async with session(dirs, tools=[], hooks=[], session_id=name):
        with pytest.raises(ModuleLoadError, match="being written by this process"):
            async with session(dirs, tools=[], hooks=[], session_id=name):
                pass
