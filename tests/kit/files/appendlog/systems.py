"""An operating system that fails where a test wants it to."""

from __future__ import annotations

import errno
import os
from typing import Final

import attrs
import pytest

from amplifier_kit.files import private_append
from amplifier_kit.files.appendlog import _disk, file

CALLS: Final = ("open", "write", "ftruncate", "fsync", "fdatasync", "rename", "close")
"""The system calls that can fail."""


class KilledError(BaseException):
    """The process was killed: nothing after this call happened."""


@attrs.define(eq=False)
class System:
    """Stands for `os` where a log writes: notes the calls, and fails or dies at one of them.

    Args:
        fails_at: the number of the call that fails, from 1; 0 for none.
        error: what it fails with; `None` kills the process.
        for_good: all calls after it fail as well.
        share: how much of its bytes a write has written before it fails.
    """

    fails_at: int = 0
    error: int | None = errno.ENOSPC
    for_good: bool = False
    share: float = 0.5
    log: list[str] = attrs.field(factory=list)

    def __getattr__(self, name: str) -> object:
        real: object = getattr(os, name)
        if name not in CALLS:
            return real

        def call(*arguments: object, **options: object) -> object:
            self.log.append(name)
            if self._fails():
                if name == "write":
                    handle, data = arguments
                    assert isinstance(handle, int)
                    assert isinstance(data, (bytes, memoryview))
                    os.write(handle, bytes(data)[: int(len(data) * self.share)])
                if name == "close":  # a handle is gone also when that fails
                    real(*arguments)  # type: ignore[operator]  # it is a function
                if self.error is None:
                    raise KilledError
                raise OSError(self.error, os.strerror(self.error))
            # What the disk would do takes a second for a few hundred tests, and none of them cuts the power.
            assert callable(real)
            return None if "sync" in name else real(*arguments, **options)

        return call

    def _fails(self) -> bool:
        count = len(self.log)
        return self.fails_at > 0 and (
            count == self.fails_at or (self.for_good and count > self.fails_at)
        )

    def install(self, monkeypatch: pytest.MonkeyPatch) -> System:
        """Put this in the place of `os`."""
        for module in (_disk, private_append, file):
            monkeypatch.setattr(module, "os", self)
        return self
