"""Where the questions of a session stand, as whoever runs its turn uses them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import anyio
import attrs
from anyio import to_thread

from amplifier.app.store.stored_questions import changing_questions, read_questions
from amplifier.kernel.reports import report
from amplifier_sdk.errors import QuestionClosedError, StoreError, StoreUnavailableError
from amplifier_sdk.person_questions import answer_text
from amplifier_sdk.stores import Lease, SessionStore, StoredQuestion

__all__ = ["FileQuestions", "LeasedQuestions", "QuestionBook"]

_POLL: Final = 0.25
_CLOSING: Final = 5.0
_LEFT: Final = "the call, which ended"


class QuestionBook(Protocol):
    """The questions of one session, while somebody runs a turn of it."""

    async def questions(self) -> Sequence[StoredQuestion]:
        """Return all of them."""

    async def ask(self, question: StoredQuestion) -> None:
        """Store one; the same one again changes nothing."""

    async def changed(self) -> None:
        """Wait until one may have been answered."""

    async def withdraw(self, question_id: str) -> bool:
        """Let one take no answer any more, as if the person had declined; return whether it took one until now."""


@attrs.define(eq=False)
class LeasedQuestions:
    """Those of a session that is leased in a store.

    Args:
        store: the store.
        lease: on the session.
    """

    store: SessionStore
    lease: Lease
    _seen: str = ""

    async def questions(self) -> Sequence[StoredQuestion]:
        """Return all of them."""
        return await self.store.questions(self.lease.session_id)

    async def ask(self, question: StoredQuestion) -> None:
        """Store one.

        Raises:
            LeaseLostError: somebody else writes the session now.
        """
        await self.store.ask(self.lease, question)

    async def changed(self) -> None:
        """Wait until the session has changed, or for a while."""
        try:
            self._seen = await self.store.wait_for_change(
                self.lease.session_id, self._seen, max_wait=self.lease.period
            )
        except StoreUnavailableError:
            await anyio.sleep(_POLL)

    async def withdraw(self, question_id: str) -> bool:
        """Let one take no answer any more; one of a store that does not answer is closed with its turn."""
        by: str | None = None
        with anyio.move_on_after(_CLOSING, shield=True), suppress(QuestionClosedError):
            try:
                nothing = answer_text(None)
                by = (
                    await self.store.answer(question_id, nothing, by=_LEFT)
                ).answered_by
            except StoreUnavailableError as error:
                report("questions.not_withdrawn", error, question=question_id)
        return by == _LEFT


@attrs.frozen(eq=False)
class FileQuestions:
    """Those of a session whose files this process has open.

    Args:
        folder: the session's.
    """

    folder: Path

    async def questions(self) -> Sequence[StoredQuestion]:
        """Return all of them."""
        return [*(await to_thread.run_sync(read_questions, self.folder)).values()]

    async def ask(self, question: StoredQuestion) -> None:
        """Store one.

        Raises:
            StoreError: another question has its id.
        """
        await to_thread.run_sync(_ask, self.folder, question)

    async def changed(self) -> None:
        """Wait for a moment: files do not say when they change."""
        await anyio.sleep(_POLL)

    async def withdraw(self, question_id: str) -> bool:
        """Let one take no answer any more."""
        by: str | None = None
        with anyio.CancelScope(shield=True):
            by = await to_thread.run_sync(_withdraw, self.folder, question_id)
        return by == _LEFT


def _ask(folder: Path, question: StoredQuestion) -> None:
    with changing_questions(folder) as known:
        if known.setdefault(question.question_id, question).asked != question.asked:
            raise StoreError(f"Another question has the id {question.question_id!r}")


def _withdraw(folder: Path, question_id: str) -> str | None:
    with changing_questions(folder) as known:
        question = known.get(question_id)
        if question is None or question.answer is not None or question.is_void:
            return None
        known[question_id] = attrs.evolve(
            question, answer=answer_text(None), answered_by=_LEFT
        )
        return _LEFT
