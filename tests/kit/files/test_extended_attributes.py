"""What a file that takes another's place takes over of it besides its content and mode."""

from __future__ import annotations

import errno
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from amplifier_kit.files.atomic import write_atomically

if sys.platform != "linux":
    pytest.skip("only Linux has attributes that Python knows", allow_module_level=True)

ACCESS: Final = "system.posix_acl_access"
DEFAULT: Final = "system.posix_acl_default"
NOBODY: Final = 0xFFFF_FFFF
OWNER, USER, GROUP, MASK, OTHERS = 0x01, 0x02, 0x04, 0x10, 0x20


def access_list(*entries: tuple[int, int, int]) -> bytes:
    """Write an access control list as Linux keeps it: a tag, permissions and an id an entry."""
    return struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", *entry) for entry in entries
    )


NAMED: Final = access_list(
    (OWNER, 6, NOBODY),
    (USER, 6, 12345),
    (GROUP, 4, NOBODY),
    (MASK, 6, NOBODY),
    (OTHERS, 0, NOBODY),
)
"""The owner and the user 12345 may write, the group may read."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "f"
    file.write_bytes(b"old")
    file.chmod(0o660)
    try:
        os.setxattr(file, "user.probe", b"")
        os.setxattr(file, ACCESS, NAMED)
    except OSError as error:
        pytest.skip(f"this file system keeps no attributes: {error}")
    os.removexattr(file, "user.probe")
    os.removexattr(file, ACCESS)
    file.chmod(0o660)
    return file


@pytest.fixture
def directory(file: Path) -> Iterator[int]:
    handle = os.open(file.parent, os.O_RDONLY)
    yield handle
    os.close(handle)


def test_file_keeps_access_list_and_what_programs_noted_at_it(
    file: Path, directory: int
) -> None:
    os.setxattr(file, ACCESS, NAMED)
    os.setxattr(file, "user.origin", b"\x00here")

    write_atomically("f", b"new", dir_fd=directory)

    assert file.read_bytes() == b"new"
    assert {name: os.getxattr(file, name) for name in os.listxattr(file)} == {
        ACCESS: NAMED,
        "user.origin": b"\x00here",
    }


def test_default_acl_grants_nobody_access_to_old_file(
    file: Path, directory: int
) -> None:
    os.setxattr(file.parent, DEFAULT, NAMED)

    write_atomically("f", b"new", dir_fd=directory)
    write_atomically("fresh", b"new", dir_fd=directory)

    assert os.listxattr(file) == []
    assert file.stat().st_mode & 0o777 == 0o660
    assert os.listxattr(file.parent / "fresh") == [ACCESS]


def test_without_attributes_of_own_file_system_takes_every_file(
    file: Path, directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handle: int) -> list[str]:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, "listxattr", refuse)

    write_atomically("f", b"new", dir_fd=directory)

    assert file.read_bytes() == b"new"


def test_a_file_whose_attributes_cannot_be_kept_stays_as_it_is(
    file: Path, directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handle: int) -> list[str]:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "listxattr", refuse)

    with pytest.raises(OSError, match="Input/output error"):
        write_atomically("f", b"new", dir_fd=directory)
    assert os.listdir(file.parent) == ["f"]
    assert file.read_bytes() == b"old"


def test_where_no_attributes_are_known_file_keeps_permissions(
    file: Path, directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.setxattr(file, "user.origin", b"here")
    monkeypatch.setattr(sys, "platform", "darwin")

    write_atomically("f", b"new", dir_fd=directory)

    assert (file.read_bytes(), os.listxattr(file)) == (b"new", [])
    assert file.stat().st_mode & 0o777 == 0o660
