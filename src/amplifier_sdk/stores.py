"""Where sessions are stored: what an application asks of a store, however that stores them.

A session is its *record* (who it is), *logs* (the journal of the running turn, the transcript, and the events of
served turns), *documents* (files of its own, such as what it was made of) and *questions* to a person. All of it is
JSON data or bytes, and comes back exactly as it went in, the order of keys included.

Whoever writes holds a *lease*. It ends when its holder has not renewed it for its period, by the store's clock
and not by the writer's, or when the holder releases it. Each lease on a session has a higher *fencing token*
than those before it. A store compares the token in the same step in which it writes, so that a writer that
was paused and wakes up after its lease ended writes nothing. Readers need no lease.

`amplifier.testing.stores` checks whether a store guarantees all this.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import attrs

from amplifier_sdk.errors import QuestionClosedError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.values import NO_EXTRAS, Value

__all__ = [
    "Lease",
    "LogEntry",
    "LogName",
    "NamespacedStore",
    "SessionLog",
    "SessionStore",
    "StoreOpener",
    "StoredQuestion",
]

LogName: TypeAlias = Literal["journal", "transcript", "events"]
"""What a session has logs of: what its running turn does, what was said in it, and what watchers were shown."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Lease(Value):
    """The right to write a session.

    Args:
        session_id: the session.
        owner: who has it, for whoever is refused.
        token: the fencing token; a later lease on the same session has a higher one.
        period: seconds after which it ends unless it is renewed.
    """

    session_id: str
    owner: str
    token: int
    period: float


@attrs.frozen(kw_only=True, eq=False, repr=False)
class LogEntry(Value):
    """One entry of a log.

    Args:
        kind: what it is, for whoever reads the log.
        data: its JSON data.
        at: when it was written, in seconds since the epoch; for people, since clocks jump.
    """

    kind: str
    data: JSONValue
    at: float


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SessionLog(Value):
    """A log, or its end.

    Args:
        entries: in the order in which they were written.
        began: when the log was begun, in seconds since the epoch; `None` where nothing was ever written.
    """

    entries: tuple[LogEntry, ...] = ()
    began: float | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class StoredQuestion(Value):
    """A question to a person that waits in the store and holds no worker.

    Args:
        question_id: its id, in the whole store.
        session_id: the session that asks.
        prompt: what the person reads.
        options: what they may answer; none where the answer has a `schema`.
        details: what else belongs to it, such as the tool, its arguments and their hash, and the schema of the answer.
        expires: when it takes no answer any more, in seconds since the epoch by the store's clock; `None` for never.
        answer: what was answered, an option or the JSON text of a value; `None` while nothing was.
        answered_by: who did.
        is_void: whether its session takes no answer to it any more.
    """

    question_id: str
    session_id: str
    prompt: str
    options: tuple[str, ...]
    details: Mapping[str, JSONValue] = NO_EXTRAS
    expires: float | None = None
    answer: str | None = None
    answered_by: str | None = None
    is_void: bool = False

    @property
    def asked(self) -> StoredQuestion:
        """The question as it was asked, whatever became of it."""
        return attrs.evolve(self, answer=None, answered_by=None, is_void=False)

    @property
    def schema(self) -> Mapping[str, JSONValue] | None:
        """The JSON Schema of an answer that is a value; `None` where it is one of the options."""
        known = self.details.get("schema")
        return known if isinstance(known, Mapping) and not self.options else None

    def with_answer(self, answer: str, *, by: str, now: float) -> StoredQuestion:
        """Return the question as it is answered; for stores, which put it in the place of this one in the same step.

        Raises:
            QuestionClosedError: it was answered otherwise, expired or voided, or has no such option.
        """
        if self.answer == answer:
            return self  # a person's second click, or a request that was sent again
        problem = None
        if self.answer is not None:
            problem = f"was answered {self.answer!r} by {self.answered_by}"
        elif self.is_void:
            problem = "was withdrawn by its session"
        elif self.expires is not None and self.expires <= now:
            problem = "has expired"
        else:
            problem = self._misfit(answer)
        if problem is not None:
            raise QuestionClosedError(f"Question {self.question_id!r} {problem}")
        return attrs.evolve(self, answer=answer, answered_by=by)

    def _misfit(self, answer: str) -> str | None:
        """Say why a text is no answer to it."""
        if self.schema is None:
            if answer in self.options:
                return None
            return f"takes {', '.join(map(repr, self.options))}; got {answer!r:.80}"
        from amplifier_sdk.person_questions import (  # few questions have a schema
            answer_of,
            misfit_of,
        )

        try:
            problem = misfit_of(self.schema, answer_of(answer))
        except ValueError as error:
            problem = f"expected JSON: {error}"
        return None if problem is None else f"does not take {answer!r:.80}: {problem}"


@runtime_checkable
class SessionStore(Protocol):
    """A store of sessions; whoever opened it closes it with `aclose`.

    Every method may raise `StoreUnavailableError` where the store is on a server, and `OSError` where it is on a
    disk: nothing was written then, or, where the connection broke in the last step, all of it. A method with a
    lease raises `LeaseLostError` when that has ended, and writes nothing.
    """

    async def acquire(self, session_id: str, *, owner: str, period: float) -> Lease:
        """Take the lease on a session; it need not be there yet.

        Args:
            session_id: the session.
            owner: who takes it, for whoever is refused.
            period: seconds after which it ends unless it is renewed.

        Raises:
            LeaseHeldError: somebody has it, perhaps the same owner.
        """

    async def renew(self, lease: Lease) -> None:
        """Have a lease end a whole period from now; call it every third of the period (the heartbeat)."""

    async def release(self, lease: Lease) -> None:
        """End a lease; one that has ended is left as it is."""

    async def holder(self, session_id: str) -> str | None:
        """Return who may write a session at the moment; `None` for nobody, or where there is no such session."""

    async def write_record(self, lease: Lease, record: JSONObject) -> None:
        """Write who a session is; a session begins with that.

        The store reads `session_id`, `parent_id`, `name`, `tags`, `prompt`, `created` and `updated` of it, where they
        are there. The rest is the application's.

        Raises:
            StoreError: it is the record of another session.
            ConfigError: the store cannot hold it.
        """

    async def append(
        self, lease: Lease, log: LogName, entries: Sequence[LogEntry]
    ) -> None:
        """Add entries to the end of a log, all of them or none.

        Raises:
            StoreError: the session has no record yet.
        """

    async def replace(self, lease: Lease, log: LogName, content: SessionLog) -> None:
        """Put other entries in the place of all that a log has, at once.

        Raises:
            StoreError: the session has no record yet.
        """

    async def write_document(self, lease: Lease, name: str, content: bytes) -> None:
        """Write a file of a session's own, all at once.

        Raises:
            StoreError: the session has no record yet, or the name is none of a document.
        """

    async def ask(self, lease: Lease, question: StoredQuestion) -> None:
        """Store a question; the same one again changes nothing, so that a turn that is repeated asks once.

        One that comes from another store is stored with what became of it there.

        Raises:
            StoreError: the session has no record yet, or another question has the id.
        """

    async def void_questions(self, lease: Lease) -> None:
        """Let the questions of a session that nobody answered take no answer any more."""

    async def forget_questions(
        self, lease: Lease, question_ids: Collection[str]
    ) -> None:
        """Delete questions of a session, answered or not; ids of others are passed over."""

    async def answer(self, question_id: str, answer: str, *, by: str) -> StoredQuestion:
        """Answer a question, once; the same answer again is no error and changes nothing. It needs no lease.

        Raises:
            QuestionClosedError: it was answered otherwise, expired or voided, or has no such option, or there is none.
        """

    async def questions(
        self, session_id: str | None = None
    ) -> tuple[StoredQuestion, ...]:
        """Return the questions of a session, or of all, in the order of their ids."""

    async def read_record(self, session_id: str) -> JSONObject | None:
        """Return who a session is; `None` where there is none."""

    async def read_log(
        self, session_id: str, log: LogName, *, after: int = 0
    ) -> SessionLog:
        """Return what a log has behind its first `after` entries; nothing where there is no such session."""

    async def read_documents(self, session_id: str) -> Mapping[str, bytes]:
        """Return the documents of a session by name."""

    async def list_sessions(
        self, *, limit: int, children: bool = False
    ) -> tuple[JSONObject, ...]:
        """Return the records of sessions, those in which something happened last first.

        Args:
            limit: how many at most.
            children: those that other sessions made as well.
        """

    async def children(self, session_id: str) -> tuple[str, ...]:
        """Return the ids of the sessions that a session made, the first one first."""

    async def search(self, text: str, *, limit: int) -> tuple[str, ...]:
        """Return the ids of the sessions in which a text stands, the latest first; case does not matter.

        It is looked for at the beginning of their ids, in their names, tags, prompts, and in what was said.
        """

    async def delete(
        self, session_id: str, *, leases: Sequence[Lease] = ()
    ) -> tuple[str, ...]:
        """Delete a session and all that came of it; return the ids, children before their parents.

        Args:
            session_id: the session.
            leases: those that the caller has on them: what they are on is deleted.

        Raises:
            LeaseHeldError: somebody writes one of them; nothing is deleted.
        """

    async def cleanup(self, before: float) -> tuple[str, ...]:
        """Delete the sessions in which, and in all that came of them, nothing has happened since; return the ids.

        One that has a name stays, or that somebody writes, and its whole family with it.

        Args:
            before: seconds since the epoch.
        """

    async def wait_for_change(
        self, session_id: str, seen: str, *, max_wait: float
    ) -> str:
        """Wait until a session is no more as it was, and return a mark of how it is now.

        Args:
            session_id: the session; one that is not there has a mark as well.
            seen: the mark that a call returned before; empty to get one at once.
            max_wait: seconds after which the mark is returned though nothing changed.
        """

    async def aclose(self) -> None:
        """Close the store; a second call does nothing. Leases are not released by it."""
        ...


@runtime_checkable
class NamespacedStore(SessionStore, Protocol):
    """A store whose connections serve several namespaces, such as the tenants of a server."""

    def in_namespace(self, namespace: str) -> SessionStore:
        """Return the sessions of another namespace over the same connections, which end with this store.

        Args:
            namespace: whose sessions are meant; nothing of another one is seen.
        """
        ...


class StoreOpener(Protocol):
    """What an entry point of the group `amplifier.stores` names; the entry point's name is the scheme of its URLs."""

    async def __call__(self, url: str, *, namespace: str) -> SessionStore:
        """Open a store; whoever asks for it closes it.

        Args:
            url: where it is.
            namespace: whose sessions are meant; nothing of another one is seen.

        Raises:
            StoreError: it cannot be opened; the message names the place without a password, and what helps.
        """
        ...
