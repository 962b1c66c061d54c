"""Output, logs, environments, places for what is missing, and what a sandbox makes of a command."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import amplifier
from amplifier_kit import processes
from amplifier_kit.processes import (
    Capture,
    Command,
    Confinement,
    JobLog,
    Placeholders,
    _restrictions,
    allowed_environment,
    confined,
    find_sandbox,
    sandboxes,
)
from amplifier_kit.processes._logwriter import OutputLogWriter
from amplifier_kit.processes._restrictions import (
    landlock_version,
    refuse_network,
    restrict,
)

COMMAND = Command(argv=("true",), directory="/", environment={})


def test_the_package_names_what_it_offers() -> None:
    assert "run_command" in dir(processes)


@given(st.lists(st.binary(max_size=40)), st.integers(1, 60))
def test_a_capture_shows_all_or_head_and_tail(pieces: list[bytes], limit: int) -> None:
    whole = b"".join(pieces)
    capture = Capture(limit)
    for piece in pieces:
        capture.write(piece)

    assert capture.total == len(whole)
    assert capture.is_cut is (len(whole) > limit)
    if not capture.is_cut:
        assert capture.text() == whole.decode("utf-8", "replace")
    else:
        assert f"of {len(whole)} bytes are left out here" in capture.text()


@given(st.text(alphabet="aé漢🙂", min_size=30), st.integers(8, 40))
def test_a_cut_never_shows_half_a_character(text: str, limit: int) -> None:
    capture = Capture(limit)
    capture.write(text.encode())

    assert "\ufffd" not in capture.text()


def test_a_long_output_is_in_its_file(tmp_path: Path) -> None:
    capture = Capture(10, str(tmp_path / "all"))
    for piece in (b"12345", b"67890", b"12345", b""):
        capture.write(piece)
    capture.close()
    capture.close()

    assert (tmp_path / "all").read_bytes() == b"123456789012345"
    assert capture.text() == (
        f"12345\n[... 5 of 15 bytes are left out here; all of it is in {tmp_path}/all ...]\n12345"
    )


def test_a_file_that_cannot_be_written_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = Capture(10, str(tmp_path / "all"))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    capture.write(b"x" * 100)
    capture.write(b"x" * 100)

    assert (capture.spill_error, capture.spilled, capture.total) == (
        "No space left on device",
        None,
        200,
    )
    (tmp_path / "taken").touch()
    taken = Capture(10, str(tmp_path / "taken"))
    taken.write(b"x" * 100)
    assert taken.spill_error == "File exists"


@given(
    st.lists(st.binary(min_size=1, max_size=30)),
    st.integers(1, 20),
    st.integers(0, 200),
)
def test_a_log_gives_what_it_keeps(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], size: int, since: int
) -> None:
    name = str(tmp_path_factory.mktemp("log") / "job")
    whole = b"".join(pieces)
    writer = OutputLogWriter(name, size)
    for piece in pieces:
        writer.write(piece)

    page = JobLog(name).read(since, 1000)

    assert page.total == len(whole)
    assert page.data == whole[page.start : page.end]
    assert page.end == max(len(whole), min(since, page.start))
    assert len(whole) - page.start <= 2 * size


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert JobLog(str(tmp_path / "job")).read(0, 10).data == b""
    assert JobLog(str(tmp_path / "job")).total == 0


def test_only_ordinary_and_listed_variables_are_allowed() -> None:
    given_ = {
        "PATH": "/bin",
        "API_KEY": "x",
        "LC_ALL": "C",
        "MY_A": "1",
        "MY_B": "2",
        "LD_PRELOAD": "y",
    }

    assert allowed_environment(["MY_*"], {"MY_B": "3"}, of=given_) == {
        "PATH": "/bin", "LC_ALL": "C", "MY_A": "1", "MY_B": "3"
    }  # fmt: skip
    assert allowed_environment(of={}) == {"PATH": os.defpath}


def test_of_pythonpath_our_own_folder_of_names_alone_stays() -> None:
    names = Path(amplifier.__file__).parent / "compat" / "children"
    others = {"PATH": "/bin", "PYTHONPATH": f"/evil{os.pathsep}/other"}
    ours = {"PATH": "/bin", "PYTHONPATH": f"/evil{os.pathsep}{names}"}

    assert allowed_environment(of=others) == {"PATH": "/bin"}
    assert allowed_environment(of=ours) == {"PATH": "/bin", "PYTHONPATH": str(names)}


def test_placeholders_stand_while_anybody_needs_them(tmp_path: Path) -> None:
    places = Placeholders()
    (tmp_path / "there").mkdir()
    wanted = [
        f"{tmp_path}/a/b/c",
        f"{tmp_path}/a/d",
        f"{tmp_path}/there/x",
        f"{tmp_path}/there",
    ]

    with places.standing(wanted) as covered:
        with places.standing(wanted) as again:
            assert (
                again
                == covered
                == (f"{tmp_path}/a", f"{tmp_path}/there/x", f"{tmp_path}/there")
            )
        assert (tmp_path / "a").is_dir()
    assert sorted(os.listdir(tmp_path)) == ["there"]
    assert os.listdir(tmp_path / "there") == []


def test_a_placeholder_that_somebody_filled_stays(tmp_path: Path) -> None:
    with Placeholders().standing([f"{tmp_path}/a"]):
        (tmp_path / "a" / "file").touch()

    assert (tmp_path / "a" / "file").exists()


def test_bubblewraps_options_cover_what_is_protected_and_hidden(tmp_path: Path) -> None:
    for folder in ("work/.git/hooks", "hidden"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "token").touch()
    os.symlink("token", tmp_path / "work/link")
    work = str(tmp_path / "work")

    command = confined(
        COMMAND,
        Confinement(
            writable=(work,),
            protected=(
                f"{work}/.git/hooks",
                f"{work}/link",
                f"{work}/missing",
                "/etc/passwd",
            ),
            hidden=(f"{tmp_path}/hidden", f"{tmp_path}/token", f"{tmp_path}/missing"),
        ),
        "bubblewrap",
    )

    text = " ".join(command.argv)
    assert (
        f"--bind {work}/.git {work}/.git --ro-bind /etc/passwd /etc/passwd --ro-bind {work}/.git/hooks"
        in text
    )
    assert f"--tmpfs {tmp_path}/hidden --ro-bind /dev/null {tmp_path}/token" in text
    assert "link" not in text
    assert "missing" not in text
    assert "--share-net" not in text
    assert text.endswith("--chdir / -- true")


@pytest.mark.parametrize("resolver", ["/", "/nowhere"], ids=["resolved", "plain"])
def test_bubblewrap_shares_the_network_where_it_may(
    monkeypatch: pytest.MonkeyPatch, resolver: str
) -> None:
    monkeypatch.setattr(sandboxes, "_RESOLVER", resolver)
    monkeypatch.setattr(sandboxes, "_SYSTEM_SOCKETS", ("/run", "/nowhere"))

    command = confined(
        COMMAND, Confinement(writable=(), scratch="/x", network=True), "bubblewrap"
    )

    assert "--share-net" in command.argv
    assert " --bind /x /tmp" in " ".join(command.argv)


def test_none_changes_nothing_and_landlock_restricts() -> None:
    assert confined(COMMAND, Confinement(writable=()), "none") == COMMAND
    restricted = confined(
        COMMAND, Confinement(writable=("/a",), scratch="/b"), "landlock"
    )
    assert restricted.restrictions == {
        "writable": ["/a", "/b"],
        "hidden": [],
        "shown": [],
        "network": False,
    }


@pytest.mark.process
async def test_a_sandbox_is_tried_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = tmp_path / "bwrap"
    refused.write_text("#!/bin/sh\nexit 1\n")
    refused.chmod(0o755)
    monkeypatch.setattr(
        shutil, "which", lambda name, path: str(refused) if name == "bwrap" else None
    )
    monkeypatch.setattr(_restrictions, "landlock_version", lambda: 0)

    assert [await find_sandbox("bubblewrap") for _ in range(2)] == ["none", "none"]
    assert await find_sandbox("auto") == "none"
    monkeypatch.setattr(_restrictions, "landlock_version", lambda: 6)
    assert await find_sandbox("auto") == "landlock"
    assert await find_sandbox("none") == "none"
    with monkeypatch.context() as without:
        without.setattr(shutil, "which", lambda _, path: None)
        assert await find_sandbox("bubblewrap") == "none"
    monkeypatch.setattr("sys.platform", "darwin")
    assert await find_sandbox("landlock") == "none"
    refused.write_text("#!/bin/sh\n")
    monkeypatch.setattr(sandboxes, "_FOUND", {})
    assert await find_sandbox("auto") == "bubblewrap"


def in_thread(work: Callable[[], object]) -> list[BaseException]:
    """Do something in a thread of its own, which its restrictions hold for; return what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised


needs_landlock = pytest.mark.skipif(
    landlock_version() < 2, reason="the kernel has no Landlock"
)


@needs_landlock
@pytest.mark.parametrize("version", [2, 3, 4, 6])
def test_older_versions_restrict_as_far_as_they_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    if landlock_version() < version:
        pytest.skip(f"the kernel's Landlock is older than version {version}")
    monkeypatch.setattr(_restrictions, "landlock_version", lambda: version)
    (tmp_path / "in").mkdir()
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/file").touch()
    os.symlink("/", tmp_path / "link")

    def work() -> None:
        restrict(
            {
                "writable": [str(tmp_path / "in"), "/nowhere"],
                "hidden": [str(tmp_path / "hidden")],
                "network": version == 3,
            }
        )
        (tmp_path / "in/new").touch()
        for path, mode in (("out", "w"), ("hidden/file", "r")):
            with pytest.raises(PermissionError):
                open(tmp_path / path, mode).close()

    assert in_thread(work) == []
    (tmp_path / "out").touch()


@needs_landlock
def test_what_the_kernel_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def __init__(self, refused: str) -> None:
            self.refused = refused

        def __getattr__(self, name: str) -> object:
            return (lambda *_: -1) if name == self.refused else getattr(real, name)

    real = _restrictions._LIBC  # noqa: SLF001  # the kernel is not asked to refuse
    for refused, message in (
        ("syscall", "Landlock refused"),
        ("prctl", "restricted"),
        ("capset", "capabilities"),
    ):
        monkeypatch.setattr(_restrictions, "_LIBC", Refusing(refused))
        monkeypatch.setattr(_restrictions, "landlock_version", lambda: 2)
        (error,) = in_thread(
            lambda: restrict({"writable": [], "hidden": ["/"], "network": True})
        )
        assert message in str(error)


def test_an_unknown_machine_keeps_its_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[object] = []
    monkeypatch.setattr(_restrictions, "_control", lambda *_: called.append(1))

    refuse_network("pdp11")
    assert called == []
    refuse_network("aarch64")
    assert called == [1]
    assert ctypes.sizeof(ctypes.c_void_p) == 8


def test_new_file_appears_and_never_replaces_a_concurrent_one(
    tmp_path: Path,
) -> None:
    (tmp_path / ".git").mkdir()
    places = Placeholders({".git/commondir": ".\n"})
    path = tmp_path / ".git/commondir"

    with places.standing([str(path)]) as covered:
        assert (covered, path.read_text()) == ((str(path),), ".\n")
    assert not path.exists()

    with places.standing([str(path)]):
        path.write_text("elsewhere")
    assert path.read_text() == "elsewhere"
