"""The backups of a session and its children: copied before changes, listed, compared, restored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from difflib import unified_diff
from functools import partial
from pathlib import Path
from time import time
from typing import ClassVar, Final

import anyio
import attrs
from anyio import to_thread

from amplifier_kit.files.appendlog import AppendLog, LogFormatError
from amplifier_kit.files.locks import LockedError
from amplifier_module_hooks_backup._capture import (
    BackupConfig,
    PathsToCopy,
    Taker,
    open_regular,
)
from amplifier_module_hooks_backup._objects import Objects
from amplifier_module_hooks_backup._restore import (
    earliest_states,
    restore_mode,
    restore_state,
)
from amplifier_module_hooks_backup.entries import (
    BackupEntry,
    BackupError,
    State,
    entry_problem,
)

__all__ = ["BACKUPS", "Backups", "Restored"]

BACKUPS: Final = "session.backups"
"""The capability under which a session's `Backups` are offered."""

RESTORE: Final = "restore"
"""What the turns of a restore are called, and the tool of its entries."""

_DAY: Final = 86_400.0
_SHARE: Final = 0.8
"""The fraction of the maximum size to which the oldest copies are removed."""
_MAX_COMPARED: Final = 200_000
_MAX_LINES: Final = 5_000
_MAX_ENTRIES: Final = 20_000


@attrs.frozen(kw_only=True)
class Restored:
    """What came of a restore: the paths that are as they were, and what could not be done."""

    paths: tuple[str, ...]
    problems: tuple[str, ...] = ()


@attrs.define(eq=False)
class Backups:
    """The copies; one operation runs at a time, in worker threads.

    Nothing is on the disk before the first entry. Whoever opens backups closes them with `aclose`.

    Args:
        folder: where they are, for their user alone.
        config: how much is copied.
        session_id: the outermost session.
        turn: its turn of now.
    """

    folder: Path
    config: BackupConfig
    session_id: str
    turn: str = ""
    _objects: Objects = attrs.field(init=False)
    _log: AppendLog | None = None
    _entries: list[BackupEntry] = attrs.field(factory=list)
    _latest: dict[str, BackupEntry] = attrs.field(factory=dict)
    _last: int = 0
    _lock: anyio.Lock = attrs.field(factory=anyio.Lock)

    OPEN: ClassVar[dict[str, Backups]] = {}
    """The backups of this process, by session: a child finds its parent's here."""

    def __attrs_post_init__(self) -> None:
        self._objects = Objects(self.folder / "objects")

    async def keep(
        self,
        wanted: PathsToCopy,
        *,
        directory: Path,
        tool: str,
        call: str,
        session: str,
    ) -> list[BackupEntry]:
        """Copy what is at some paths; return the new entries, none for what its turn has copied unchanged.

        Args:
            wanted: the paths.
            directory: where relative ones start.
            tool: the tool that may change them.
            call: the id of its call.
            session: whose call it is.

        Raises:
            BackupError: something could not be copied; nothing of this call is stored.
        """
        async with self._lock:
            await self._open()
            taker = Taker(self.config, self._objects, directory, wanted.depth)
            try:
                states = await to_thread.run_sync(
                    partial(_take_all, taker, wanted.paths)
                )
                await self._make_room(states)
                return await self._add(
                    states, turn=self.turn, tool=tool, call=call, session=session
                )
            except (BackupError, OSError) as error:
                with suppress(OSError):
                    # copies that were made before it failed are nobody's
                    await self._leave(self._entries)
                if isinstance(error, BackupError):
                    raise
                raise BackupError(
                    f"The backup cannot be written: {error.strerror or error}"
                ) from error

    async def entries(self, path: Path | str | None = None) -> tuple[BackupEntry, ...]:
        """Return the copies, the earliest first; with a path those of this path alone."""
        async with self._lock:
            if not self.folder.exists():
                return ()
            await self._open()
            return tuple(
                entry
                for entry in self._entries
                if path is None or entry.state.path == str(path)
            )

    async def difference(self, entry: BackupEntry) -> str:
        """Compare a copy with the present file, line by line; other things are described in words.

        Raises:
            BackupError: the copy is gone.
        """
        return await to_thread.run_sync(
            partial(_difference, entry.state, self._objects)
        )

    async def restore(self, entries: Iterable[BackupEntry]) -> Restored:
        """Restore paths to their earliest state among some entries; what is there now is copied before.

        The copy of what is there now is a turn of its own, which can be restored as well. No copy makes room for
        it until the next call is copied: what could not be restored can be retried.

        Raises:
            BackupError: what is there now cannot be copied; nothing is changed then.
        """
        states = earliest_states(entries)
        async with self._lock:
            await self._open()
            lost = await self._keep_now(
                [state for state in states if state.kind != "left out"]
            )
            return await to_thread.run_sync(
                partial(_restore_all, states, lost, self._objects)
            )

    async def aclose(self) -> None:
        """Close the backups; they stay on the disk. A second call does nothing."""
        if self.OPEN.get(self.session_id) is self:
            del self.OPEN[self.session_id]
        log, self._log = self._log, None
        if log is not None:
            await log.aclose()

    async def _keep_now(self, states: Sequence[State]) -> tuple[State, ...]:
        """Keep what is there now; return what could not be, since it is left out."""
        # Every path that comes back, and as much below those that go as one call may change.
        config = attrs.evolve(
            self.config, max_files=self.config.max_files + len(states)
        )
        taker = Taker(config, self._objects, Path("/"), depth="all")
        turn = f"{RESTORE}-{self._last + 1}"
        try:
            now = await to_thread.run_sync(partial(_take_now, taker, states))
            await self._add(
                now, turn=turn, tool=RESTORE, call="", session=self.session_id
            )
        except OSError as error:
            raise BackupError(
                f"What is there now cannot be saved: {error.strerror or error}"
            ) from error
        return tuple(state for state in now if state.kind == "left out")

    async def _open(self) -> None:
        if self._log is not None:
            return
        try:
            log = await AppendLog.open(
                self.folder / "entries.jsonl", holds="backups", check=entry_problem
            )
            await self._take_over(log)
        except (LockedError, LogFormatError) as error:
            raise BackupError(f"The backups cannot be opened: {error}") from error
        except OSError as error:
            raise BackupError(
                f"The backups cannot be opened: {error.strerror or error}"
            ) from error

    async def _take_over(self, log: AppendLog) -> None:
        """Read an open log, and forget what is too old."""
        try:
            # once nobody else writes there
            await to_thread.run_sync(self._objects.open)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await log.aclose()
            raise
        self._log = log
        self._entries = [BackupEntry.from_record(record) for record in log.take()]
        self._last = max((entry.number for entry in self._entries), default=0)
        oldest = time() - self.config.max_age_days * _DAY
        # a full disk keeps nobody from what there is; it is forgotten another time
        with suppress(OSError):
            await self._leave([entry for entry in self._entries if entry.at >= oldest])

    async def _add(
        self, states: Sequence[State], *, turn: str, tool: str, call: str, session: str
    ) -> list[BackupEntry]:
        log = self._log
        assert log is not None  # `_open` was called
        added = []
        for state in states:
            latest = self._latest.get(state.path)
            if latest is not None and latest.turn == turn and latest.state == state:
                continue  # a call of this turn has it already
            at, number = round(time(), 3), self._last + 1
            entry = BackupEntry(
                number=number,
                at=at,
                turn=turn,
                session=session,
                call=call,
                tool=tool,
                state=state,
            )
            record = entry.to_record()
            await log.append(record.kind, record.data)
            log.take()
            self._last = number
            self._entries.append(entry)
            self._latest[state.path] = entry
            added.append(entry)
        return added

    async def _make_room(self, states: Sequence[State]) -> None:
        """Forget the oldest entries when the copies take more than they may."""
        limit, new = self.config.max_total_bytes, {state.digest for state in states}
        if len(self._entries) > _MAX_ENTRIES:
            await self._leave(self._entries[_MAX_ENTRIES // 2 :], new)
        if self._objects.total <= limit:
            return
        taken = self._objects.size_of(new)
        if taken > limit:
            raise BackupError(
                f"The copies take more than {limit:,} bytes (max_total_bytes)"
            )
        digests, first = set(new), len(self._entries)
        for entry in reversed(self._entries):
            taken += self._objects.size_of({entry.state.digest} - digests)
            if taken > limit * _SHARE:
                break
            digests.add(entry.state.digest)
            first -= 1
        await self._leave(self._entries[first:], new)

    async def _leave(self, entries: list[BackupEntry], new: Iterable[str] = ()) -> None:
        """Leave these entries alone in the log, and the copies that they and some new states need."""
        log = self._log
        assert log is not None  # `_open` was called
        if len(entries) < len(self._entries):
            await log.replace([entry.to_record() for entry in entries])
            self._entries = entries
        self._latest = {entry.state.path: entry for entry in entries}
        needed = {*new, *(entry.state.digest for entry in entries)}
        await to_thread.run_sync(partial(self._objects.keep, needed))


def _take_all(taker: Taker, paths: Sequence[str]) -> list[State]:
    for path in paths:
        taker.take(path)
    return taker.states()


def _take_now(taker: Taker, states: Sequence[State]) -> list[State]:
    for state in states:
        taker.take_exactly(state.path, is_deep=state.kind == "absent")
    return taker.states()


def _restore_all(
    states: Sequence[State], lost: Sequence[State], objects: Objects
) -> Restored:
    """Restore what can be; what is there now and was not copied stays."""
    done: list[State] = []
    problems: list[str] = []
    for state in states:
        inside = [each for each in lost if Path(each.path).is_relative_to(state.path)]
        if inside and state.kind != "directory":
            problems.append(
                f"{inside[0].shown!r} stays as it is, since it is not copied: {inside[0].reason}"
            )
        elif _is_done(partial(restore_state, state, objects), problems):
            done.append(state)
    # What is in a directory that may not be written comes back before its permissions do.
    done = [
        state
        for state in reversed(done)
        if _is_done(partial(restore_mode, state), problems)
    ]
    return Restored(
        paths=tuple(state.shown for state in reversed(done)), problems=tuple(problems)
    )


def _is_done(step: Callable[[], None], problems: list[str]) -> bool:
    try:
        step()
    except BackupError as error:
        problems.append(str(error))
        return False
    return True


def _difference(state: State, objects: Objects) -> str:
    if state.kind != "file":
        return f"{state.shown}: was {'not there' if state.kind == 'absent' else state.kind}"
    try:
        with objects.open_copy(state.digest) as copy:
            old = copy.read(_MAX_COMPARED + 1)
    except OSError as error:
        raise BackupError(
            f"The copy of {state.shown!r} is gone: {error.strerror}"
        ) from error
    try:
        with open_regular(state.path) as file:
            new = file.read(_MAX_COMPARED + 1)
    except OSError as error:
        return f"{state.shown}: {error.strerror}; it had {state.size:,} bytes"
    if max(len(old), len(new)) > _MAX_COMPARED or b"\0" in old + new:
        same = "another content"
        if old == new:
            same = "the same beginning"
        return f"{state.shown}: {same}; too large or no text, so that no lines are compared"
    before, after = (
        data.decode("utf-8", "replace").splitlines()[:_MAX_LINES] for data in (old, new)
    )
    lines = unified_diff(
        before, after, f"{state.shown} (before)", f"{state.shown} (now)", lineterm=""
    )
    return "\n".join(lines)
