"""Who may write a session that is not open in a process of this machine: the file `lease.json` in its folder.

The lock of the session's journal is held for each step alone, so that a lease ends by the clock also while its
holder is stopped. Who has the session open holds that lock all the time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import attrs

from amplifier.app.store.writer import JOURNAL
from amplifier_kit.files.atomic import write_private
from amplifier_kit.files.documents import read_document
from amplifier_kit.files.private_append import make_folders
from amplifier_sdk.configuration import read_config
from amplifier_sdk.convert import to_json
from amplifier_sdk.errors import (
    ConfigError,
    LeaseHeldError,
    LeaseLostError,
    StoreUnavailableError,
)
from amplifier_sdk.stores import Lease

__all__ = ["LEASE", "LeaseState", "holding", "require_unleased", "take_lease"]

LEASE: Final = "lease.json"
"""The file's name. It stays when a lease ends: the next one has a higher token."""


@attrs.frozen(kw_only=True)
class LeaseState:
    """The last lease on a session.

    Args:
        owner: who had it, or has it.
        token: its fencing token.
        expires: when it ends, in seconds since the epoch; 0 where it was released.
    """

    owner: str = ""
    token: int = 0
    expires: float = 0.0

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the lease of the session of a folder.

        Raises:
            ConfigError: the file cannot be understood. Nobody can know then who may write.
        """
        subject = f"session {str(folder)!r}"
        try:
            data = read_document(folder / LEASE)
            if isinstance(data, dict):
                return read_config(cls, data, subject=subject)
            problem = f"a mapping; got {type(data).__name__}"
        except ConfigError as error:
            if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                return cls()
            problem = error.in_one_line
        remedy = "delete the file when nobody writes the session"
        raise ConfigError.of(LEASE, f"{problem}; {remedy}", subject=subject)

    @property
    def is_live(self) -> bool:
        """Whether somebody has it now."""
        return self.expires > time.time()

    def write(self, folder: Path) -> None:
        """Store it; call it while the session is locked."""
        data = json.dumps(to_json(self), indent=1).encode()
        write_private(folder / LEASE, data + b"\n")


def require_unleased(
    folder: Path, session_id: str, leases: Sequence[Lease] = ()
) -> None:
    """Raise where somebody has the lease of a session; call it while the session is locked.

    Args:
        folder: where the session is stored.
        session_id: the session.
        leases: those that the caller has.

    Raises:
        LeaseHeldError: somebody has it.
        ConfigError: the lease cannot be understood.
    """
    state = LeaseState.read(folder)
    own = {lease.token for lease in leases if lease.session_id == session_id}
    if state.is_live and state.token not in own:
        raise LeaseHeldError(session_id, state.owner)


def take_lease(folder: Path, session_id: str, owner: str, period: float) -> Lease:
    """Take the lease of a session, whose folder is made where it is missing.

    Raises:
        LeaseHeldError: somebody has it, or has the session open.
        ConfigError: the lease cannot be understood.
        OSError: the system refuses.
    """
    from amplifier_kit.files.locks import LockedError, WriterLock

    make_folders(folder)
    try:
        lock = WriterLock.take(folder / JOURNAL)
    except LockedError as error:
        raise LeaseHeldError(session_id, str(error.owner or "a process")) from error
    with lock:
        require_unleased(folder, session_id)
        # A session that was deleted and made again knows no token: time has gone on.
        token = max(LeaseState.read(folder).token + 1, time.time_ns())
        state = LeaseState(owner=owner, token=token, expires=time.time() + period)
        state.write(folder)
    return Lease(session_id=session_id, owner=owner, token=token, period=period)


@contextmanager
def holding(folder: Path, lease: Lease) -> Iterator[None]:
    """Keep everybody else from a session while its lease holds.

    Whoever wants the lease waits for the lock, so that it cannot be lost in the block, however long that takes.

    Raises:
        LeaseLostError: the lease has ended.
        StoreUnavailableError: somebody else holds the lock for longer than a step takes.
    """
    from amplifier_kit.files.locks import STEP_TIMEOUT, LockedError, WriterLock

    _require(folder, lease)  # no lock is made where the session was deleted
    try:
        # nobody has the session open while its lease holds
        lock = WriterLock.take(folder / JOURNAL, timeout=STEP_TIMEOUT)
    except LockedError as error:
        _require(folder, lease)
        raise StoreUnavailableError(str(error)) from error
    with lock:
        _require(folder, lease)
        yield


def _require(folder: Path, lease: Lease) -> None:
    state = LeaseState.read(folder)
    if state.token != lease.token or not state.is_live:
        raise LeaseLostError(lease.session_id)
