"""Commands that take turns back: of the conversation, of the files that they changed, or of both."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, Literal, TypeAlias, get_args

from amplifier.app.commands.status_commands import answer_of, rows
from amplifier.app.commands.talk import TalkCommands
from amplifier.app.commands.typed_shell import as_typed
from amplifier.app.sessions.backups import (
    BackupCopy,
    SessionBackups,
    backups_of,
    copies_since,
)
from amplifier.app.store.reader import words_of
from amplifier.app.text.figures import counted
from amplifier_kit.commands import CommandAnswer, CommandError, SessionCommand
from amplifier_sdk.errors import AmplifierError

__all__ = ["RewindCommands"]

_What: TypeAlias = Literal["conversation", "files", "both"]

_PARTS: Final[tuple[_What, ...]] = get_args(_What)
_HINT: Final = f"[{'|'.join(_PARTS)}]"
_SHOWN_TURNS: Final = 40


class RewindCommands(TalkCommands):
    """The commands that go back; they wait for the end of a turn."""

    def commands(self) -> list[SessionCommand]:
        """Return them."""
        return [
            SessionCommand(name="undo", make=self.undo, argument_hint=f"[N] {_HINT}",
                           description="Take back the last turn, or N, and the files that it changed"),
            SessionCommand(name="rewind", make=self.rewind, argument_hint=f"[TURN] {_HINT}",
                           description="List the turns, or go back to before one"),
            SessionCommand(name="diff", make=self.diff, argument_hint="[N]",
                           description="Show how the files changed in this session, or in the last N turns"),
        ]  # fmt: skip

    async def undo(self, arguments: str) -> CommandAnswer:
        """Take back the last turns."""
        count, what = _read(arguments, usual=1)
        there = len(self.talk.starts)
        if not 0 < count <= there:
            raise CommandError(
                f"{counted(there, 'turn')} can be taken back; got {count}"
            )
        return await self._go_back(there - count, what)

    async def rewind(self, arguments: str) -> CommandAnswer:
        """List the turns, or go back to before one."""
        if not arguments:
            return await self._list()
        number, what = _read(arguments, usual=0)
        there = len(self.talk.starts)
        if not 0 < number <= there:
            raise CommandError(
                f"There are {counted(there, 'turn')}, counted from 1; got {number}. /rewind lists them"
            )
        return await self._go_back(number - 1, what)

    async def diff(self, arguments: str) -> CommandAnswer:
        """Compare what was copied before the first change of each file with what is there now."""
        there = len(self.talk.starts)
        count, _ = _read(arguments, usual=there)
        backups = self._backups()
        try:
            copies: Sequence[BackupCopy] = await backups.entries()
            if arguments:
                copies = copies_since(copies, self._turn_ids(max(0, there - count)))
            # The first copy of a path is what it was before; later ones lie in between.
            earliest = {copy.path: copy for copy in reversed(copies)}
            parts = [
                await backups.difference(earliest[path]) for path in sorted(earliest)
            ]
        except AmplifierError as error:
            raise CommandError(str(error)) from error
        text = "\n".join(filter(None, parts))
        return CommandAnswer(text=text or "No file is changed.", is_diff=bool(text))

    async def _go_back(self, first: int, what: _What | None) -> CommandAnswer:
        """Give up the turns from a number on, counted from 0; files first, since those may refuse."""
        if what != "files":
            self.talk.require_over()
        count = len(self.talk.starts) - first
        is_with_files = what != "conversation"
        if what is None:
            is_with_files = self._find_backups() is not None
        restored = []
        if is_with_files:
            restored = await self._restore(
                self._turn_ids(first), is_asked=what is not None
            )
        if what == "files":
            return answer_of(restored)
        await self.talk.forget(first)
        message = f"{counted(count, 'turn')} taken back, {first} left."
        if not is_with_files:
            message += " Files stay as they are."
        return answer_of([message, *restored])

    async def _restore(self, turns: Collection[str], *, is_asked: bool) -> list[str]:
        backups = self._backups()
        try:
            copies = copies_since(await backups.entries(), turns)
            if not copies:
                return ["No file was changed."] if is_asked else []
            restored = await backups.restore(copies)
        except AmplifierError as error:
            raise CommandError(f"{error}; nothing is taken back") from error
        return [
            *(f"restored: {path}" for path in restored.paths),
            *(f"not restored: {text}" for text in restored.problems),
            "What was there before is saved: /restore turn brings it back.",
        ]

    async def _list(self) -> CommandAnswer:
        talk = self.talk
        if not talk.starts:
            return CommandAnswer(text="There are no turns yet.")
        said = await talk.said()
        changed = await self._changed_files()
        table = []
        for number, start in enumerate(talk.starts, 1):
            files = changed.get(talk.turn_ids.get(start, ""), "")
            typed = (
                words_of(each) for each in said[start:] if each.get("role") == "user"
            )
            table.append((str(number), files, as_typed(next(typed, ""))))
        shown = table[-_SHOWN_TURNS:]
        message = "/rewind TURN goes back to before a turn; with 'files' or 'conversation' of that alone."
        return answer_of([*rows(shown, self.talk.columns, widest=10), message])

    async def _changed_files(self) -> dict[str, str]:
        backups = self._find_backups()
        if backups is None:
            return {}
        try:
            copies = await backups.entries()
        except AmplifierError as error:
            raise CommandError(str(error)) from error
        paths: dict[str, set[object]] = {}
        for copy in copies:
            paths.setdefault(copy.turn, set()).add(copy.path)
        return {turn: counted(len(each), "file") for turn, each in paths.items()}

    def _find_backups(self) -> SessionBackups | None:
        return backups_of(self.talk.opened.session.coordinator)

    def _backups(self) -> SessionBackups:
        found = self._find_backups()
        if found is None:
            raise CommandError(
                "This session makes no backups of files; the module hooks-backup does"
            )
        return found

    def _turn_ids(self, first: int) -> set[str]:
        ids = self.talk.turn_ids
        return {ids[start] for start in self.talk.starts[first:] if start in ids}


def _read(arguments: str, *, usual: int) -> tuple[int, _What | None]:
    """Read `[N] [conversation|files|both]`."""
    number, what = usual, None
    for word in arguments.split():
        named = next((part for part in _PARTS if part == word), None)
        if named is not None:
            what = named
        # Python refuses to read numbers of thousands of digits with an error of its own.
        elif word.isascii() and word.isdecimal() and len(word) <= 6:
            number = int(word)
        else:
            raise CommandError(
                f"Expected a number of turns, or one of {', '.join(_PARTS)}; got {word!r:.40}"
            )
    return number, what
