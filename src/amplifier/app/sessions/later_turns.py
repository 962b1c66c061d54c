"""A turn that nobody sits beside: what it asks waits in the store, and any later program continues it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import anyio
import attrs
from anyio import to_thread

from amplifier.app.questions.books import FileQuestions, LeasedQuestions, QuestionBook
from amplifier.app.questions.stored_approvals import (
    StoredApprovals,
    is_open,
    is_waited_for,
)
from amplifier.app.questions.stored_prompts import prompt_from_json, prompt_to_json
from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.reader import interrupted_turn
from amplifier.app.store.replica import SessionReplica
from amplifier.app.store.stored_questions import read_questions, void_questions
from amplifier_kit.files.atomic import write_private
from amplifier_sdk.configuration import read_config
from amplifier_sdk.convert import to_json
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

if TYPE_CHECKING:
    from pathlib import Path

    from amplifier.app.sessions.opened import OpenSession
    from amplifier.app.store.writer import SessionWriter
    from amplifier_sdk.media import Prompt
    from amplifier_sdk.stores import SessionStore, StoredQuestion

__all__ = ["LATER", "LaterTurn", "left_turn"]

LATER: Final = "later.json"
"""The document of a session that has the last turn whose questions wait."""


@attrs.frozen(kw_only=True)
class LaterTurn:
    """One turn whose questions wait in the store of its session.

    Args:
        turn_id: its id: 32 hexadecimal digits.
        content: its prompt, as JSON data without secrets.
        typed: the part of that which the person typed.
        schema: the JSON Schema of its answer, where it has one.
        accepted: the kinds of calls that are accepted without a question.
        is_begun: whether it was begun before, and is to be continued.
    """

    turn_id: str = attrs.field(factory=lambda: uuid4().hex)
    content: JSONValue
    typed: str = ""
    schema: Mapping[str, JSONValue] | None = None
    accepted: tuple[str, ...] = ()
    is_begun: bool = False

    @classmethod
    def of(
        cls,
        prompt: Prompt,
        typed: str,
        *,
        schema: Mapping[str, JSONValue] | None = None,
        accepted: frozenset[str] = frozenset(),
    ) -> LaterTurn:
        """Describe a turn that begins."""
        return cls(
            content=prompt_to_json(prompt),
            typed=str(prompt_to_json(typed)),
            schema=schema,
            accepted=tuple(sorted(accepted)),
        )

    @classmethod
    async def of_session(cls, store: SessionStore, session_id: str) -> LaterTurn | None:
        """Return the last turn of a session whose questions wait, or waited; `None` where there never was one.

        Args:
            store: where the session stands.
            session_id: the session.

        Raises:
            ConfigError: the document cannot be understood.
        """
        if isinstance(store, FileSessionStore):
            # modules keep folders beside it, which no store takes along
            folder = store.files.folder(session_id)
            return await to_thread.run_sync(_of_folder, folder)
        data = (await store.read_documents(session_id)).get(LATER)
        return None if data is None else _read(data, session_id)

    @classmethod
    async def asking(
        cls, store: SessionStore, question: StoredQuestion
    ) -> LaterTurn | None:
        """Return the turn that asked a question; `None` where it was another one than the session's last of its kind.

        Raises:
            ConfigError: as `of_session`.
        """
        known = await cls.of_session(store, question.session_id)
        is_ours = known and question.details.get("turn_id") == known.turn_id
        return known if is_ours else None

    async def open_questions(
        self, store: SessionStore, session_id: str
    ) -> tuple[StoredQuestion, ...]:
        """Return what the turn was suspended for and nobody answered yet."""
        return tuple(
            each
            for each in await store.questions(session_id)
            if is_waited_for(each, self.turn_id) and is_open(each)
        )

    @property
    def prompt(self) -> Prompt:
        """What was asked, as far as it is stored."""
        return prompt_from_json(self.content)

    def is_over(self, opened: OpenSession) -> bool:
        """Whether the turn ended, or another one was begun in its place.

        Args:
            opened: its session, which was opened with the turn's id.
        """
        recorded = opened.turn
        is_left = recorded is not None and recorded.is_begun
        return opened.has_turn or (self.is_begun and not is_left)

    def asks(
        self, shows: Callable[[JSONObject], None]
    ) -> Callable[[OpenSession], StoredApprovals]:
        """Return what makes the approval provider of a session in which the turn runs.

        Args:
            shows: takes what is asked, as the event that it is.
        """

        def made(opened: OpenSession) -> StoredApprovals:
            assert opened.writer is not None  # else nothing could wait
            return StoredApprovals(
                session_id=opened.session.session_id,
                turn_id=self.turn_id,
                book=_questions_of(opened.writer),
                coordinator=opened.session.coordinator,
                shows=shows,
                is_patient=True,
            )

        return made

    @asynccontextmanager
    async def under_way(self, opened: OpenSession) -> AsyncIterator[None]:
        """Have the turn stored with its session while it runs; where it ended what it asked takes no answer any more.

        Raises:
            OSError: it was not stored.
        """
        writer, recorded = opened.writer, opened.turn
        assert writer is not None
        if recorded is None or not recorded.is_begun:
            writer.journal.before_turn.append(partial(self._store, writer.folder))
        try:
            yield
        finally:
            # one that was refused leaves the turn that waits
            if not opened.left and not opened.session.is_suspended:
                with anyio.CancelScope(shield=True):
                    await self._withdraw(writer)

    async def _store(self, folder: Path) -> None:
        content = json.dumps(to_json(attrs.evolve(self, is_begun=True))).encode()
        await to_thread.run_sync(write_private, folder / LATER, content)

    async def _withdraw(self, writer: SessionWriter) -> None:
        await to_thread.run_sync(void_questions, writer.folder, self.turn_id)
        replica = writer.journal.replica
        if isinstance(replica, SessionReplica):
            await replica.store.void_questions(replica.lease)


def left_turn(folder: Path) -> tuple[LaterTurn, tuple[StoredQuestion, ...]] | None:
    """Return the last turn of a session that waits for answers, or was given them and not continued, and what it asked.

    `None` where there is none. It blocks: call it in a thread. Only who has the session open knows whether it runs.

    Args:
        folder: the session's.

    Raises:
        ConfigError: a file of it cannot be understood.
        OSError: the system refuses.
    """
    later = _of_folder(folder)
    if later is None:
        return None
    asked = tuple(
        each
        for each in read_questions(folder).values()
        if is_waited_for(each, later.turn_id)
        and (each.answer is not None or is_open(each))
    )
    turn = interrupted_turn(folder) if asked else None
    if turn is None or turn.turn_id != later.turn_id or turn.has_ended:
        return None
    return later, asked


def _of_folder(folder: Path) -> LaterTurn | None:
    try:
        data = (folder / LATER).read_bytes()
    except FileNotFoundError:
        return None
    return _read(data, folder.name)


def _read(data: bytes, session_id: str) -> LaterTurn:
    subject = f"{LATER} of session {session_id!r}"
    try:
        written = json.loads(data)
    except ValueError as error:
        raise ConfigError.of("", str(error), subject=subject) from error
    return read_config(LaterTurn, written, subject=subject)


def _questions_of(writer: SessionWriter) -> QuestionBook:
    """Return where the questions of an open session stand: in a store of several machines, or in its files."""
    replica = writer.journal.replica
    if isinstance(replica, SessionReplica):
        return LeasedQuestions(replica.store, replica.lease)
    return FileQuestions(writer.folder)
