"""The commands that a person types: list, compare and restore copies."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

import attrs
from anyio import to_thread

from amplifier_kit.commands import CommandAnswer, CommandError, SessionCommand
from amplifier_kit.terminal import visible
from amplifier_module_hooks_backup.backups import Backups
from amplifier_module_hooks_backup.entries import BackupEntry, BackupError

__all__ = ["commands_of"]

_SOURCE: Final = "hooks-backup"
_MOST: Final = 50


def commands_of(
    backups: Backups, directory: Path, redact: Callable[[str], str]
) -> list[SessionCommand]:
    """Make the commands of a session.

    Args:
        backups: the session's copies.
        directory: where relative paths that are typed start.
        redact: takes secrets out of what is shown.
    """
    typed = _Typed(backups, directory, redact)
    return [
        SessionCommand(
            name="backups",
            make=typed.list_or_compare,
            description="List the copies of files that changed, or compare one with what it is now.",
            argument_hint="[FILE]",
            source=_SOURCE,
        ),
        SessionCommand(
            name="restore",
            make=typed.restore,
            description="Bring back a file, one entry of the list, what the last turn changed, or everything.",
            argument_hint="FILE | #NUMBER | turn | all",
            source=_SOURCE,
        ),
    ]


@attrs.frozen
class _Typed:
    """What the commands do."""

    backups: Backups
    directory: Path
    redact: Callable[[str], str]

    async def list_or_compare(self, arguments: str) -> CommandAnswer:
        """List the copies; with a file compare the latest copy with what is there now."""
        wanted = arguments.strip()
        try:
            if wanted:
                entries = await self._of_path(wanted)
            else:
                entries = await self.backups.entries()
            compared = []
            if wanted:
                compared = [
                    await self.backups.difference(entry) for entry in _latest(entries)
                ]
        except BackupError as error:
            raise CommandError(str(error)) from error
        if not entries:
            return CommandAnswer(text="Nothing was saved in this session.")
        more = []
        if len(entries) > _MOST:
            more = [f"... and {len(entries) - _MOST:,} earlier ones"]
        return self._answer([*more, *map(_line, entries[-_MOST:]), *compared])

    async def restore(self, arguments: str) -> CommandAnswer:
        """Bring back what is typed, and say what came of it."""
        try:
            restored = await self.backups.restore(await self._chosen(arguments.strip()))
        except BackupError as error:
            raise CommandError(str(error)) from error
        done = [f"restored: {path}" for path in restored.paths]
        failed = [f"not restored: {text}" for text in restored.problems]
        return self._answer(
            [
                *done,
                *failed,
                "What was there before is saved: /restore turn brings it back.",
            ]
        )

    async def _chosen(self, wanted: str) -> Sequence[BackupEntry]:
        """Return the entries that a person means.

        Raises:
            BackupError: there are none, or nothing was said.
        """
        entries = await self.backups.entries()
        if not wanted:
            raise BackupError(
                "Say what: a file, #NUMBER of the list (/backups), turn, or all"
            )
        if wanted not in ("all", "turn") and not wanted.startswith("#"):
            return [
                part
                for entry in _latest(await self._of_path(wanted))
                # A directory is an entry by itself; what was in it are others.
                for part in _parts(entry, entries)
            ]
        found = [
            entry for entry in entries if _is_meant(entry, wanted, entries[-1].turn)
        ]
        if not found:
            raise BackupError(
                f"Nothing that {wanted!r} means was saved in this session"
            )
        return found

    async def _of_path(self, wanted: str) -> Sequence[BackupEntry]:
        """Return the copies of a path, and of what it led to when it was a link: that is what changed then."""
        path = await to_thread.run_sync(partial(_real, self.directory, wanted))
        found = await self.backups.entries(path)
        if not found:
            raise BackupError(f"Nothing was saved of {path!r} in this session")
        if found[-1].state.kind != "link":
            return found
        led_to = await to_thread.run_sync(
            os.path.realpath, found[-1].path.parent / found[-1].state.target
        )
        return sorted(
            [*found, *await self.backups.entries(led_to)],
            key=lambda entry: entry.number,
        )

    def _answer(self, lines: Sequence[str]) -> CommandAnswer:
        return CommandAnswer(text=visible(self.redact("\n".join(lines))))


def _is_meant(entry: BackupEntry, wanted: str, last_turn: str) -> bool:
    if wanted == "all":
        return True
    if wanted == "turn":
        return entry.turn == last_turn
    return f"#{entry.number}" == wanted


def _latest(entries: Sequence[BackupEntry]) -> list[BackupEntry]:
    """Return the latest entry of each path."""
    return list({entry.state.path: entry for entry in entries}.values())


def _parts(whole: BackupEntry, entries: Sequence[BackupEntry]) -> list[BackupEntry]:
    """Return an entry, and of a directory what was in it then: as its call or an earlier one of its turn copied it."""
    if whole.state.kind != "directory":
        return [whole]
    turn = [entry for entry in entries if entry.turn == whole.turn]
    last = max(entry.number for entry in turn if entry.call == whole.call)
    inside = [
        entry
        for entry in turn
        if entry.number <= last and whole.path in entry.path.parents
    ]
    return [whole, *_latest(inside)]


def _real(directory: Path, wanted: str) -> str:
    """Return a path with the links of its directory resolved, but not one at its end."""
    # leaves the home of nobody as it is; `Path.expanduser` raises
    path = directory / os.path.expanduser(wanted)
    return os.path.join(os.path.realpath(path.parent), path.name)


def _line(entry: BackupEntry) -> str:
    state = entry.state
    when = datetime.fromtimestamp(entry.at).astimezone()
    if state.kind == "file":
        what = f"{state.size:,} bytes"
    else:
        what = "not there" if state.kind == "absent" else state.kind
    return f"#{entry.number}  {when:%d %b %H:%M:%S}  before {entry.tool}: {state.shown} ({what})"
