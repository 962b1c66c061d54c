"""What is still there when something should have been released."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from amplifier.validation.leftovers import Leftovers, settle


async def test_where_nothing_is_left_there_is_nothing(tmp_path: Path) -> None:
    before = Leftovers.baseline()
    (tmp_path / "file").write_text("written and closed")
    # the worker thread stays for the next call
    await to_thread.run_sync(threading.get_ident)

    assert await settle(before) == []


async def test_a_thread_is_left_until_it_ends() -> None:
    before = Leftovers.baseline()
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="lasting")
    thread.start()

    assert Leftovers.now().since(before) == ["the thread 'lasting'"]
    release.set()
    thread.join()
    assert await settle(before) == []


async def test_a_file_is_left_until_it_is_closed(tmp_path: Path) -> None:
    before = Leftovers.baseline()
    with open(tmp_path / "file", "w"):
        (left,) = Leftovers.now().since(before)

    assert left.startswith("the open file")
    assert await settle(before) == []


async def test_a_task_is_left_until_it_ends() -> None:
    before = Leftovers.baseline()
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep_forever, name="waiting")

        assert any(
            "the task" in left and "waiting" in left
            for left in Leftovers.now().since(before)
        )
        group.cancel_scope.cancel()

    assert await settle(before) == []


@pytest.mark.process
@pytest.mark.skipif(
    sys.platform != "linux",
    reason="elsewhere the system does not list a process's children",
)
async def test_a_process_is_left_until_it_is_waited_for() -> None:
    before = Leftovers.baseline()
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert process.stdin is not None

    left = Leftovers.now().since(before)
    with process:
        process.stdin.close()

    assert f"the process {process.pid}" in left
    assert await settle(before) == []


async def test_what_does_not_end_is_told_after_a_moment() -> None:
    before = Leftovers.baseline()
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="lasting")
    thread.start()
    try:
        with anyio.fail_after(10):
            assert await settle(before) == ["the thread 'lasting'"]
    finally:
        release.set()
        thread.join()
