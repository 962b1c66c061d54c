"""Ending what is leased and reserved in files, as if its time had passed."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import attrs

from amplifier.app.store.file_quotas import QUOTAS
from amplifier.app.store.leases import LEASE, LeaseState

__all__ = ["expire"]


def expire(root: Path) -> None:
    """End all leases and reservations below a folder."""
    for file in root.glob(f"sessions/*/{LEASE}"):
        state = LeaseState.read(file.parent)
        attrs.evolve(state, expires=1.0).write(file.parent)
    if (root / QUOTAS).exists():
        with closing(sqlite3.connect(root / QUOTAS)) as connection, connection:
            past = (time.time() - 1,)
            connection.execute("UPDATE reservations SET expires = ?", past)
