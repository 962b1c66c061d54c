"""Atomic writes: the old content or the new, never a part, and nothing left over."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amplifier_kit.files.atomic import (
    FileVersion,
    StaleFileError,
    take_free_name,
    write_atomically,
    write_private,
)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    handle = os.open(tmp_path, os.O_RDONLY)
    yield handle
    os.close(handle)


def test_private_file_is_named_by_path_and_is_owner_s_alone(
    tmp_path: Path,
) -> None:
    assert write_private(tmp_path / "f", b"one").created
    assert not write_private(tmp_path / "f", b"two").created
    assert ((tmp_path / "f").read_bytes(), (tmp_path / "f").stat().st_mode & 0o777) == (
        b"two",
        0o600,
    )
    with pytest.raises(FileNotFoundError):
        write_private(tmp_path / "nowhere/f", b"")
    (tmp_path / "link").symlink_to(tmp_path / "f")
    with pytest.raises(OSError, match=r".+"):
        write_private(tmp_path / "link", b"")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["f", "link"]


@pytest.mark.parametrize("fails", ["fsync", "rename"])
def test_a_full_disk_is_told_with_the_file_that_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def full(*names: object, **_: object) -> None:
        raise OSError(
            errno.ENOSPC,
            os.strerror(errno.ENOSPC),
            *(["old", None, "new"] if fails == "rename" else []),
        )

    monkeypatch.setattr(os, fails, full)
    with pytest.raises(OSError, match=r"No space left on device: .*/f'$"):
        write_private(tmp_path / "f", b"one")
    assert list(tmp_path.iterdir()) == []


def run_in_child(program: str, *arguments: str) -> str:
    """Run a program in a process of its own, whose limits and user may be changed."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(contents=st.lists(st.binary(max_size=100_000), min_size=1, max_size=3))
def test_a_file_holds_what_was_written_last(
    tmp_path: Path, directory: int, contents: list[bytes]
) -> None:
    (tmp_path / "f").unlink(missing_ok=True)

    created = [
        write_atomically("f", content, dir_fd=directory).created for content in contents
    ]

    assert (tmp_path / "f").read_bytes() == contents[-1]
    assert created == [True] + [False] * (len(contents) - 1)
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o640])
def test_an_existing_file_keeps_its_mode(
    tmp_path: Path, directory: int, mode: int
) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f").chmod(mode)

    write_atomically("f", b"new", dir_fd=directory, mode=0o666)

    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == mode


def test_a_new_file_has_the_mode_asked_for_less_the_umask(
    tmp_path: Path, directory: int
) -> None:
    umask = os.umask(0o027)
    try:
        write_atomically("f", b"", dir_fd=directory)
        write_atomically("private", b"", dir_fd=directory, mode=0o600)
    finally:
        os.umask(umask)

    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600


def test_new_content_does_not_run_as_somebody_else(
    tmp_path: Path, directory: int
) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f").chmod(0o4755)

    write_atomically("f", b"new", dir_fd=directory)

    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_keeps_its_owner_where_that_is_possible(
    tmp_path: Path, directory: int
) -> None:
    (tmp_path / "f").write_bytes(b"old")
    os.chown(tmp_path / "f", 12345, 54321)

    write_atomically("f", b"new", dir_fd=directory)

    status = (tmp_path / "f").stat()
    assert (status.st_uid, status.st_gid) == (12345, 54321)


def test_a_reader_never_sees_a_part(tmp_path: Path, directory: int) -> None:
    contents = {b"a" * 300_000, b"b" * 200_000}
    write_atomically("f", b"a" * 300_000, dir_fd=directory)
    stop = threading.Event()
    seen: set[bytes] = set()

    def watch() -> None:
        while not stop.is_set():
            seen.add((tmp_path / "f").read_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(20):
        for content in contents:
            write_atomically("f", content, dir_fd=directory)
    stop.set()
    watcher.join()

    assert seen <= contents


@pytest.mark.parametrize("kind", ["directory", "link", "fifo"])
def test_only_a_regular_file_is_replaced(
    tmp_path: Path, directory: int, kind: str
) -> None:
    target = tmp_path / "f"
    if kind == "directory":
        target.mkdir()
    elif kind == "link":
        target.symlink_to("elsewhere")
    else:
        os.mkfifo(target)

    with pytest.raises(OSError, match="not a regular file"):
        write_atomically("f", b"new", dir_fd=directory)
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.process
def test_a_write_that_fails_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    """With a limit of 8 KB on files, writing 100 KB fails in the middle."""
    (tmp_path / "f").write_text("old")

    reported = run_in_child(
        "import os, resource, sys\n"
        "from amplifier_kit.files.atomic import write_atomically\n"
        "directory = os.open(sys.argv[1], os.O_RDONLY)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
        "try:\n    write_atomically('f', b'x' * 100_000, dir_fd=directory)\n"
        "except OSError as error:\n    print(error.errno)\n",
        str(tmp_path),
    )

    assert int(reported) == errno.EFBIG
    assert (tmp_path / "f").read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("file_mode", "directory_mode"), [(0o444, 0o755), (0o644, 0o555)]
)
def test_a_read_only_file_or_directory_is_respected(
    tmp_path: Path, file_mode: int, directory_mode: int
) -> None:
    """Renaming over a read-only file would work; refusing is what its mode asks for."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "f").write_text("old")
    if os.geteuid() == 0:
        os.chown(home, 65534, 65534)
        os.chown(home / "f", 65534, 65534)
    (home / "f").chmod(file_mode)
    home.chmod(directory_mode)

    reported = run_in_child(
        "import os, sys\n"
        "from amplifier_kit.files.atomic import write_atomically\n"
        "directory = os.open(sys.argv[1], os.O_RDONLY)\n"
        "if os.geteuid() == 0:\n    os.setgid(65534)\n    os.setuid(65534)\n"
        "try:\n    write_atomically('f', b'new', dir_fd=directory)\n"
        "except PermissionError:\n    print('refused')\n",
        str(home),
    )

    home.chmod(0o755)
    assert reported == "refused"
    assert (home / "f").read_text() == "old"
    assert os.listdir(home) == ["f"]


def test_a_file_of_the_expected_version_is_replaced(
    tmp_path: Path, directory: int
) -> None:
    (tmp_path / "f").write_bytes(b"read")

    write_atomically(
        "f", b"new", dir_fd=directory, expected=FileVersion.of((tmp_path / "f").stat())
    )

    assert (tmp_path / "f").read_bytes() == b"new"


@pytest.mark.parametrize("change", ["rewritten", "replaced", "removed"])
def test_a_file_that_changed_since_it_was_read_is_left_alone(
    tmp_path: Path, directory: int, change: str
) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"read")
    version = FileVersion.of(file.stat())
    if change == "rewritten":
        file.write_bytes(b"other")
    elif change == "replaced":
        (tmp_path / "g").write_bytes(b"read")
        os.utime(tmp_path / "g", ns=(version.modified, version.modified))
        (tmp_path / "g").rename(file)
    else:
        file.unlink()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    with pytest.raises(StaleFileError, match="changed since it was read"):
        write_atomically("f", b"new", dir_fd=directory, expected=version)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_that_must_be_new_takes_the_place_of_nothing(
    tmp_path: Path, directory: int
) -> None:
    assert write_atomically("f", b"one", dir_fd=directory, must_be_new=True).created
    with pytest.raises(FileExistsError):
        write_atomically("f", b"two", dir_fd=directory, must_be_new=True)

    assert (tmp_path / "f").read_bytes() == b"one"
    assert ((tmp_path / "f").stat().st_nlink, os.listdir(tmp_path)) == (1, ["f"])


def test_of_many_who_write_a_new_file_at_once_one_does(
    tmp_path: Path, directory: int
) -> None:
    written: list[bytes] = []
    together = threading.Barrier(8)

    def write(content: bytes) -> None:
        together.wait(10)
        with suppress(FileExistsError):
            write_atomically("f", content, dir_fd=directory, must_be_new=True)
            written.append(content)

    writers = [
        threading.Thread(target=write, args=(b"%d" % number,)) for number in range(8)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert written == [(tmp_path / "f").read_bytes()]
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize(
    "code", [errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS]
)
def test_without_hard_links_name_looked_at_before_it_taken(
    tmp_path: Path, directory: int, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)

    with pytest.raises(FileExistsError):
        take_free_name("a", "b", src_dir_fd=directory, dst_dir_fd=directory)
    take_free_name("a", "c", src_dir_fd=directory, dst_dir_fd=directory)

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "b": "b",
        "c": "a",
    }
