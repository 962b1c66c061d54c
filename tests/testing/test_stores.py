"""The suite of stores finds what is wrong with a store: each fault here breaks the behaviour beside it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import attrs
import pytest

from amplifier.app.store.file_quotas import QUOTAS, FileQuotas
from amplifier.app.store.file_store import FileSessionStore
from amplifier.app.store.leases import LeaseState
from amplifier.app.store.store import ProjectSessions
from amplifier.app.store.stored_questions import changing_questions
from amplifier.testing.stores import QUOTA_BEHAVIORS, STORE_BEHAVIORS
from amplifier.validation.behaviors import BehaviorFailed
from amplifier_kit.quotas import Claim, Refusal, Reservation
from amplifier_sdk.errors import QuestionClosedError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import (
    Lease,
    LogEntry,
    LogName,
    SessionLog,
    SessionStore,
    StoredQuestion,
)
from tests.app.store.expiry import expire


class _Unfenced(FileSessionStore):
    """Writes with whatever lease was given last."""

    async def append(
        self, lease: Lease, log: LogName, entries: Sequence[LogEntry]
    ) -> None:
        state = LeaseState.read(self.files.folder(lease.session_id))
        if not state.is_live:
            attrs.evolve(state, expires=9e9).write(self.files.folder(lease.session_id))
        await super().append(attrs.evolve(lease, token=state.token), log, list(entries))


class _Sorting(FileSessionStore):
    """Sorts the keys of records, as databases do."""

    async def read_record(self, session_id: str) -> JSONObject | None:
        found = await super().read_record(session_id)
        if found is None:
            return None
        return dict(sorted(found.items()))


class _Forgetful(FileSessionStore):
    """Returns all of a log, from wherever it is read."""

    async def read_log(
        self, session_id: str, log: LogName, *, after: int = 0
    ) -> SessionLog:
        return await super().read_log(session_id, log)


class _Lenient(FileSessionStore):
    """Takes every answer as if it were the one that is stored."""

    async def answer(self, question_id: str, answer: str, *, by: str) -> StoredQuestion:
        try:
            return await super().answer(question_id, answer, by=by)
        except QuestionClosedError:
            (question,) = await self.questions("s1")
            return question


class _Sweeping(FileSessionStore):
    """Forgets whatever is named, whosesoever it is."""

    async def forget_questions(
        self, lease: Lease, question_ids: Collection[str]
    ) -> None:
        for folder in self.files.sessions.iterdir():
            with changing_questions(folder) as questions:
                for question_id in question_ids:
                    questions.pop(question_id, None)


class _Deaf(FileSessionStore):
    """Reports no change."""

    async def wait_for_change(
        self, session_id: str, seen: str, *, max_wait: float
    ) -> str:
        return "same"


class _Careless(FileQuotas):
    """Reserves what is left, and not what is wanted."""

    async def reserve(
        self, claims: Sequence[Claim], *, period: float
    ) -> Reservation | Refusal:
        wanted = [attrs.evolve(claim, amount=claim.amount / 2) for claim in claims]
        return await super().reserve(wanted, period=period)


class _Single(FileQuotas):
    """Reserves one claim after the other."""

    async def reserve(
        self, claims: Sequence[Claim], *, period: float
    ) -> Reservation | Refusal:
        made = [
            await super(_Single, self).reserve([claim], period=period)
            for claim in claims
        ]
        return made[-1]


class _Wasteful(FileQuotas):
    """Counts what was reserved, and not what was used."""

    async def settle(
        self, reservation: Reservation, used: Mapping[str, Decimal]
    ) -> None:
        await super().settle(reservation, dict.fromkeys(used, Decimal(10)))


class _Forgiving(FileQuotas):
    """Forgets what a dead process had reserved, and so what it paid for."""

    async def reserve(
        self, claims: Sequence[Claim], *, period: float
    ) -> Reservation | Refusal:
        await self.renew((), period=period)  # which makes the tables
        with closing(sqlite3.connect(self.path)) as connection, connection:
            past = (time.time(),)
            connection.execute("DELETE FROM reservations WHERE expires < ?", past)
        return await super().reserve(claims, period=period)


class _Tired(FileQuotas):
    """Renews nothing."""

    async def renew(self, reservation_ids: Sequence[str], *, period: float) -> None:
        return None


class _Shortest(FileQuotas):
    """Stores the pause that was asked for last."""

    async def pause(self, account: str, seconds: float) -> None:
        await super().pause(f"{account}-{seconds:g}", seconds)


@pytest.mark.parametrize(
    ("kind", "behavior"),
    [
        (_Careless, "quota.holds"),
        (_Single, "quota.all-or-none"),
        (_Wasteful, "quota.settles-once"),
        (_Wasteful, "quota.race"),
        (_Forgiving, "quota.ends-unless-renewed"),
        (_Tired, "quota.is-renewed"),
        (_Shortest, "quota.pauses"),
    ],
)
async def test_fault_of_accounts_breaks_a_behaviour(
    kind: type[FileQuotas], behavior: str, tmp_path: Path
) -> None:
    class Store(FileSessionStore):
        @property
        def quotas(self) -> FileQuotas:
            return kind(tmp_path / QUOTAS)

    (found,) = (each for each in QUOTA_BEHAVIORS if each.id == behavior)

    with pytest.raises((BehaviorFailed, ExceptionGroup)):
        await found.check(_Faulty(Store, tmp_path))


@attrs.frozen
class _Faulty:
    kind: type[FileSessionStore]
    root: Path

    async def open(self) -> SessionStore:
        return self.kind(ProjectSessions(self.root))

    async def expire_leases(self) -> None:
        expire(self.root)


@pytest.mark.parametrize(
    ("kind", "behavior"),
    [
        (_Unfenced, "lease.fences-a-late-writer"),
        (_Unfenced, "lease.fences-after-its-end"),
        (_Unfenced, "lease.belongs-to-its-token"),
        (_Sorting, "record.comes-back-as-written"),
        (_Forgetful, "log.comes-back-as-written"),
        (_Lenient, "question.is-answered-once"),
        (_Lenient, "question.is-answered-once-in-a-race"),
        (_Sweeping, "question.is-forgotten"),
        (_Deaf, "session.reports-changes"),
    ],
)
async def test_a_fault_breaks_a_behaviour(
    kind: type[FileSessionStore], behavior: str, tmp_path: Path
) -> None:
    (found,) = (each for each in STORE_BEHAVIORS if each.id == behavior)

    with pytest.raises(BehaviorFailed):
        await found.check(_Faulty(kind, tmp_path))


def test_each_behaviour_says_what_is_true_and_what_to_do() -> None:
    behaviors = [*STORE_BEHAVIORS, *QUOTA_BEHAVIORS]
    ids = [each.id for each in behaviors]

    assert len(set(ids)) == len(ids)
    assert all(each.says.endswith(".") for each in behaviors)
    assert all(each.fix.endswith(".") for each in behaviors)
