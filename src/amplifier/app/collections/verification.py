"""Comparing collections with what was installed."""

from __future__ import annotations

from collections.abc import Collection as Names
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from amplifier.app.fetched.lock import FetchedEntry, FetchedLock
from amplifier.app.sources.kinds import explain
from amplifier.app.sources.trees import hash_tree
from amplifier_sdk.errors import ConfigError

__all__ = ["State", "Verification", "evaluate", "verify"]

State: TypeAlias = Literal["sound", "changed", "missing", "own", "bundled"]
"""How a collection is: as it was installed, other, gone, not installed by this program, or a part of it."""


@attrs.frozen(kw_only=True)
class Verification:
    """How a collection is, in words where that needs any."""

    name: str
    state: State
    path: Path
    reason: str = ""


def verify(lock: FetchedLock, names: Names[str] = ()) -> list[Verification]:
    """Compare the collections of a level with its lock file; the function blocks.

    Args:
        lock: what was installed.
        names: which; default all that were installed or stand in the folder.

    Raises:
        ConfigError: the lock file is damaged, or a name was not installed.
        OSError: the lock file cannot be read.
    """
    verdicts = [evaluate(entry, lock) for entry in lock.chosen(names)]
    if names:
        return verdicts
    locked = {verdict.name for verdict in verdicts}
    folder = lock.folder / "collections"
    for path in folder.iterdir() if folder.is_dir() else ():
        if (
            path.is_dir()
            and not path.name.startswith((".", "_"))
            and path.name not in locked
        ):
            reason = "it was not installed by this program"
            own = Verification(name=path.name, state="own", path=path, reason=reason)
            verdicts.append(own)
    return sorted(verdicts, key=lambda verdict: verdict.name)


def evaluate(entry: FetchedEntry, lock: FetchedLock) -> Verification:
    """Compare one collection with what was installed; the reason says what helps."""
    path = lock.folder / entry.path
    name = f"{entry.name}{' --scope project' if lock.is_local else ''}"
    update = f"'amplifier collection update {name}' fetches it anew"
    if not path.is_dir():
        reason = f"its folder is gone; {update}, 'amplifier collection remove {name}' forgets it"
        return Verification(name=entry.name, state="missing", path=path, reason=reason)
    try:
        if hash_tree(path) == entry.hash:
            return Verification(name=entry.name, state="sound", path=path)
        problem = f"the files in {path} are not the ones that were installed"
    # A tree that cannot be read or that has links out of it is not what was installed.
    except (ConfigError, OSError) as error:
        problem = explain(error)
    reason = (
        f"{problem}; 'amplifier collection accept {name}' keeps it as it is, {update}"
    )
    return Verification(name=entry.name, state="changed", path=path, reason=reason)
