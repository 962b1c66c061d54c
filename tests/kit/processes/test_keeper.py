"""The keeping process, run inside this one."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from amplifier_kit.processes import JobLog, _keeper
from amplifier_kit.processes._keeper import keep, main
from amplifier_kit.processes._restrictions import landlock_version

pytestmark = pytest.mark.process

Keep = Callable[..., dict[str, object]]  # type: ignore[explicit-any]  # its options go by name


@pytest.fixture
def stored() -> Iterator[Keep]:
    """Order a command from a keeper in this process; what it has changed is put back."""
    before = os.getcwd()
    handles: list[socket.socket] = []

    def stored(
        text: str, *, cut: float | None = None, **order: object
    ) -> dict[str, object]:
        ours, theirs = socket.socketpair()
        handles.extend((ours, theirs))
        full = {
            "argv": ["bash", "-c", text],
            "directory": "/",
            "environment": {"PATH": os.environ["PATH"]},
            "grace": 0.1,
            **order,
        }
        ours.sendall(json.dumps(full).encode() + b"\n")
        if cut is not None:
            threading.Timer(cut, ours.shutdown, [socket.SHUT_WR]).start()
        keep(theirs)
        theirs.close()
        found: dict[str, object] = json.loads(ours.recv(10_000))
        return found

    yield stored
    os.chdir(before)
    ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)
    for handle in handles:
        handle.close()


def test_it_reports_how_the_command_ended(stored: Keep) -> None:
    assert stored("cd /usr; pwd >&60; exit 4") == {
        "code": 4,
        "directory": "/usr",
        "leftover": 0,
        "survivors": 0,
    }
    assert stored("kill -9 $$")["code"] == 137


def test_it_ends_what_is_left(stored: Keep) -> None:
    assert stored("(trap '' TERM; sleep 98) & (sleep 98 &) ; exit 0")["leftover"] in (
        2,
        3,
    )


def test_it_ends_everything_when_it_is_told_to(stored: Keep) -> None:
    assert stored("sleep 99 & sleep 99", cut=0.2)["code"] == 128 + signal.SIGTERM


def test_it_writes_a_log(stored: Keep, tmp_path: Path) -> None:
    name = str(tmp_path / "log")

    stored(
        "echo out; echo err >&2; sleep 0.1; exec >&- 2>&-; sleep 0.1",
        log=name,
        max_log_bytes=100,
    )

    assert JobLog(name).read(0, 100).data == b"out\nerr\n"


def test_what_cannot_be_started_is_reported(stored: Keep, tmp_path: Path) -> None:
    assert (
        stored("true", argv=["no-such-program"])["error"]
        == "there is no program 'no-such-program'"
    )
    assert stored("true", argv=["sh", "b\0"])["error"] == "embedded null byte"
    assert (
        stored("true", directory="/nowhere/at-all")["error"]
        == "No such file or directory: '/nowhere/at-all'"
    )
    assert (
        stored("true", log=str(tmp_path / "x"), max_log_bytes=1, argv=["nothing"])[
            "code"
        ]
        == 127
    )


def test_without_handles_for_processes_it_looks_again_and_again(
    stored: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    monkeypatch.setattr("sys.platform", "plan9")

    assert stored("sleep 0.05; exit 6")["code"] == 6


@pytest.mark.skipif(landlock_version() < 2, reason="the kernel has no Landlock")
def test_restrictions_hold_for_the_command_alone(stored: Keep, tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    restrictions = {"writable": [str(inside)], "hidden": [], "network": False}

    report = stored(f"touch {inside}/a; touch {outside}/b", restrictions=restrictions)

    assert report["code"] == 1
    assert (os.listdir(inside), os.listdir(outside)) == (["a"], [])
    (outside / "mine").touch()
    assert "there is no program" in str(
        stored("", restrictions=restrictions, argv=["nothing"])["error"]
    )
    assert "null byte" in str(
        stored("", restrictions=restrictions, argv=["sh", "\0"])["error"]
    )


def test_what_cannot_be_killed_is_counted(
    stored: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_keeper, "_KILL_SECONDS", 0.05)
    kill = os.kill
    spared: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: spared.append(pid))

    assert stored("sleep 0.6 & exit 0")["survivors"] == 1
    assert stored("sleep 0.6", cut=0.05) == {
        "code": 128 + signal.SIGKILL,
        "leftover": 0,
        "survivors": 1,
    }

    for pid in set(spared):
        kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_whoever_ordered_it_may_be_gone() -> None:
    before = os.getcwd()
    ours, theirs = socket.socketpair()
    with theirs:
        order = {
            "argv": ["true"],
            "directory": "/",
            "environment": {"PATH": os.environ["PATH"]},
            "grace": 0,
        }
        ours.sendall(json.dumps(order).encode() + b"\n")
        ours.close()

        assert keep(theirs) == 0
    os.chdir(before)


def test_without_an_order_it_ends() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    with theirs, pytest.raises(SystemExit, match="no order was given"):
        keep(theirs)


def test_it_is_ordered_on_its_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    monkeypatch.setattr(
        _keeper, "keep", lambda control: 5 if control == "socket 0" else 6
    )
    monkeypatch.setattr(socket, "socket", lambda *, fileno: f"socket {fileno}")
    monkeypatch.setattr(os, "_exit", seen.append)

    main()

    assert seen == [5]


@pytest.mark.parametrize(
    "has_memory_files", [True, False], ids=["in memory", "on disk"]
)
def test_a_command_reads_its_input_from_a_file_without_a_name(
    stored: Keep,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_memory_files: bool,
) -> None:
    if not has_memory_files:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    stored(f"cat > {tmp_path}/read", input="öne\n" * 1_000)

    assert (tmp_path / "read").read_text() == "öne\n" * 1_000


def test_it_gives_the_command_the_input_that_is_ordered(stored: Keep) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"4")
    os.close(writer)

    assert stored("read -r code; exit ${code:-4}", input_handle=reader)["code"] == 4
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(reader)
