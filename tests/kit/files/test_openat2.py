"""Directories below a directory: the kernel's way and the walk by handles lead to the same places."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import pytest

from amplifier_kit.files.open_flags import PASS
from amplifier_kit.files.openat2 import (
    DirectoryOpener,
    kernel_opener,
    open_beneath,
    walk_beneath,
)


@pytest.fixture(autouse=True)
def fresh_probe() -> Iterator[None]:
    """Probe the system anew, before and after."""
    kernel_opener.cache_clear()
    yield
    kernel_opener.cache_clear()


@pytest.fixture(params=["kernel", "walk"])
def opener(request: pytest.FixtureRequest) -> DirectoryOpener:
    if request.param == "walk":
        return walk_beneath
    by_kernel = kernel_opener()
    if by_kernel is None:
        pytest.skip("this system has no openat2")
    return by_kernel


@pytest.fixture
def handle(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "a" / "ü" / "c").mkdir(parents=True)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "a" / "out").symlink_to("/")
    handle = os.open(tmp_path, PASS)
    yield handle
    os.close(handle)


@pytest.mark.parametrize("parts", [(), ("a",), ("a", "ü", "c")])
def test_names_lead_to_their_directory(
    opener: DirectoryOpener, handle: int, tmp_path: Path, parts: Sequence[str]
) -> None:
    opened = opener(handle, parts)
    try:
        assert os.path.samestat(os.fstat(opened), os.stat(tmp_path.joinpath(*parts)))
        assert not os.get_inheritable(opened)
    finally:
        os.close(opened)


@pytest.mark.parametrize(
    ("parts", "codes"),
    [
        (("link",), (errno.ELOOP, errno.ENOTDIR)),
        (("link", "ü"), (errno.ELOOP, errno.ENOTDIR)),
        (("a", "out", "etc"), (errno.ELOOP, errno.ENOTDIR)),
        (("file",), (errno.ENOTDIR,)),
        (("file", "x"), (errno.ENOTDIR,)),
        (("nothing",), (errno.ENOENT,)),
        (("x" * 300,), (errno.ENAMETOOLONG,)),
    ],
)
def test_link_file_or_refusal_leaves_no_open_handle(
    opener: DirectoryOpener, handle: int, parts: Sequence[str], codes: Sequence[int]
) -> None:
    before = len(os.listdir("/proc/self/fd"))

    with pytest.raises(OSError) as caught:  # noqa: PT011  # its code is looked at below
        opener(handle, parts)

    assert caught.value.errno in codes
    assert len(os.listdir("/proc/self/fd")) == before


@attrs.define(eq=False, slots=False)
class ScriptedLibrary:
    """A C library whose `syscall` fails with a code: always, or after it opened a directory once."""

    code: int
    succeeds_first: bool = False
    calls: int = 0

    @property
    def syscall(self) -> ScriptedLibrary:
        return self

    def __call__(self, *arguments: object) -> int:
        self.calls += 1
        if self.succeeds_first and self.calls == 1:
            return os.open("/", PASS)
        ctypes.set_errno(self.code)
        return -1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the call")
@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EPERM])
def test_a_system_that_refuses_the_call_is_walked(
    monkeypatch: pytest.MonkeyPatch, handle: int, tmp_path: Path, code: int
) -> None:
    monkeypatch.setattr(
        ctypes, "CDLL", lambda *arguments, **options: ScriptedLibrary(code)
    )

    assert kernel_opener() is None
    opened = open_beneath(handle, ("a", "ü"))
    assert os.path.samestat(os.fstat(opened), os.stat(tmp_path / "a" / "ü"))
    os.close(opened)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the call")
def test_uncertain_kernel_is_retried_and_then_walked(
    monkeypatch: pytest.MonkeyPatch, handle: int, tmp_path: Path
) -> None:
    library = ScriptedLibrary(errno.EAGAIN, succeeds_first=True)
    monkeypatch.setattr(ctypes, "CDLL", lambda *arguments, **options: library)

    opened = open_beneath(handle, ("a",))

    assert os.path.samestat(os.fstat(opened), os.stat(tmp_path / "a"))
    assert 2 < library.calls < 20
    os.close(opened)


def test_another_system_is_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert kernel_opener() is None
