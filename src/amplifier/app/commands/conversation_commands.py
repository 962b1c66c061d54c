"""Commands that change a conversation, or keep a part of it."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import attrs
from anyio import to_thread

from amplifier.app.commands.talk import TalkCommands
from amplifier.app.sessions.composition import new_record
from amplifier.app.store.export import Form
from amplifier.app.store.export import export as exported
from amplifier.app.store.fork import fork_session
from amplifier.app.store.reader import StoredHistory
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored import StoredSession
from amplifier.app.store.transcript import TranscriptLine
from amplifier.app.text.figures import counted
from amplifier_kit.commands import CommandAnswer, CommandError, SessionCommand
from amplifier_kit.files.open_flags import NEW
from amplifier_kit.redaction import clean_message, redactor_of
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.messages import MessageDict

__all__ = ["ConversationCommands"]

_LONGEST_NAME: Final = 50
_FORMS: Final[Mapping[str, Form]] = {
    ".md": "markdown",
    ".json": "json",
    ".html": "html",
}


class ConversationCommands(TalkCommands):
    """The commands that change the conversation or what is stored of it; they wait for the end of a turn."""

    def commands(self) -> list[SessionCommand]:
        """Return them."""
        return [
            SessionCommand(name="clear", make=self.clear, description="Forget the conversation; files stay"),
            SessionCommand(name="rename", make=self.rename, description="Name the session", argument_hint="NAME"),
            SessionCommand(name="fork", make=self.fork, argument_hint="[TURNS [NAME]]",
                           description="Keep another session that begins with this one's turns"),
            SessionCommand(name="export", make=self.export, argument_hint="[FILE]",
                           description="Write the conversation to a new file, .md, .html or .json"),
        ]  # fmt: skip

    async def clear(self, _: str) -> CommandAnswer:
        """Forget the conversation."""
        count = len(self.talk.starts)
        await self.talk.clear()
        return CommandAnswer(
            text=f"The conversation is empty; {counted(count, 'turn')} forgotten. Files stay as they are."
        )

    async def rename(self, arguments: str) -> CommandAnswer:
        """Name the session."""
        writer = self.talk.opened.writer
        name = " ".join(arguments.split())
        if not name:
            raise CommandError("A name is missing: /rename NAME")
        if len(name) > _LONGEST_NAME:
            raise CommandError(
                f"A name has {_LONGEST_NAME} characters at most; this one has {len(name)}"
            )
        if writer is None:
            raise CommandError("This session is not stored, so it has no name")
        await writer.write(attrs.evolve(writer.record, name=name))
        return CommandAnswer(text=f"The session is called {name!r}.")

    async def fork(self, arguments: str) -> CommandAnswer:
        """Keep a session that begins as this one."""
        writer = self.talk.opened.writer
        if writer is None:
            raise CommandError(
                "This session is not stored, so there is nothing to fork"
            )
        first, _, rest = arguments.partition(" ")
        at_turn = None
        if first:
            at_turn = _number(first, "turns that go along")
        opened = self.talk.opened
        store = opened.store or ProjectSessions.of(opened.composition.dirs)
        session = StoredSession(folder=writer.folder, record=writer.record)
        try:
            made = await fork_session(
                store, session, at_turn=at_turn, name=" ".join(rest.split()) or None
            )
        except AmplifierError as error:
            raise CommandError(str(error)) from error
        turns = counted(made.record.turn_count, "turn")
        return CommandAnswer(
            text=f"Made session {made.record.session_id} with {turns}.\n/resume {made.record.session_id} opens it."
        )

    async def export(self, arguments: str) -> CommandAnswer:
        """Write what was said to a file that did not exist."""
        opened = self.talk.opened
        name = arguments.strip("\"'") or f"session-{opened.session.session_id[:8]}.md"
        path = _place(opened.composition.dirs.working_dir, name)
        form = _FORMS.get(path.suffix.lower())
        if form is None:
            raise CommandError(
                f"{path.name!r:.80} says no form; end the name with {', '.join(_FORMS)}"
            )
        # A session that is not stored has no record; what is exported names it all the
        # same.
        if opened.writer is None:
            session_id = opened.session.session_id
            record = attrs.evolve(new_record(opened.composition), session_id=session_id)
        else:
            record = opened.writer.record
        clean = partial(clean_message, redactor=redactor_of(opened.session.coordinator))
        lines = _lines(await self.talk.said(), self.talk.starts)
        history = StoredHistory(lines=tuple(lines))
        try:
            await to_thread.run_sync(
                lambda: _write_new(path, exported(record, history, form, clean=clean))
            )
        except FileExistsError as error:
            raise CommandError(
                f"{path} exists already; name another file: /export FILE"
            ) from error
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}") from error
        return CommandAnswer(text=f"Written: {path}")


def _lines(
    messages: Sequence[MessageDict], starts: Sequence[int]
) -> Iterator[TranscriptLine]:
    for at, message in enumerate(messages):
        # The conversation knows where turns begin, and not their ids: any text that
        # differs by turn will do.
        yield TranscriptLine(at=at, turn=str(bisect_right(starts, at)), message=message)


def _place(folder: Path, name: str) -> Path:
    return folder / os.path.expanduser(name)


def _write_new(path: Path, text: str) -> None:
    # Made by this call or not at all: a check before it would leave a moment for a
    # link.
    handle = os.open(path, NEW, 0o600)
    with open(handle, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)


def _number(text: str, what: str) -> int:
    # Python refuses to read numbers of thousands of digits with an error of its own.
    if not text.isdecimal() or len(text) > 6:
        raise CommandError(f"A number of {what} is missing; got {text!r:.40}")
    return int(text)
