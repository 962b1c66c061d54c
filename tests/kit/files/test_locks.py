"""One writer: who holds the lock, who is refused, and what a dead process leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from errno import ENOSPC
from pathlib import Path

import pytest

from amplifier_kit.files.locks import LockedError, LockOwner, WriterLock

HOLDER = """
import sys
from pathlib import Path
from amplifier_kit.files.locks import WriterLock
lock = WriterLock.take(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "notes.jsonl"


def test_lock_file_names_this_process_and_goes_with_lock(target: Path) -> None:
    lock = WriterLock.take(target)

    signed = json.loads(lock.path.read_text("utf-8"))
    assert signed["pid"] == os.getpid()
    assert 0 < signed["started"] <= signed["since"] <= time.time()
    assert lock.path.stat().st_mode & 0o777 == 0o600
    lock.release()
    lock.release()
    assert not lock.path.exists()


@pytest.mark.process
def test_a_process_that_was_killed_holds_nothing(target: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(
            LockedError,
            match=f"It is being written by process {child.pid} on .*, started at ",
        ):
            WriterLock.take(target, timeout=0)
        child.kill()
        child.wait()

        WriterLock.take(target, timeout=0).release()


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"pid": "many"}', "nonsense", '{"pid": null}']
)
def test_whoever_left_no_legible_name_is_refused_without_one(
    target: Path, text: str
) -> None:
    lock = WriterLock.take(target)
    lock.path.write_text(text, "utf-8")

    with pytest.raises(
        LockedError, match="It is being written by a process that left no name"
    ) as refusal:
        WriterLock.take(target, timeout=0)
    lock.release()

    assert refusal.value.owner is None


def test_a_full_disk_leaves_the_lock_without_a_name_and_held(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handle: int, data: bytes, offset: int) -> int:
        raise OSError(ENOSPC, os.strerror(ENOSPC))

    monkeypatch.setattr(os, "pwrite", refuse)
    lock = WriterLock.take(target)

    with pytest.raises(LockedError, match="left no name"):
        WriterLock.take(target, timeout=0)
    lock.release()


def test_unknown_start_time_falls_back_to_first_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(path: Path, encoding: str) -> str:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_text", refuse)
    owner = LockOwner.this()
    assert owner.started <= owner.since
    assert str(owner).startswith("this process itself on ")
