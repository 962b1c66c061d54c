"""What every store guarantees of what it holds: it comes back as it went in."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import anyio
import attrs

from amplifier.testing.stores.behavior import (
    PERIOD,
    StoreBehavior,
    StoreSubject,
    begin,
    entry,
    opened,
    record,
    refuses,
    same,
)
from amplifier.validation.behaviors.behavior import require
from amplifier_sdk.errors import LeaseHeldError, StoreError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import LogEntry, SessionLog

__all__ = ["CONTENTS"]

_ODD: Final[JSONObject] = {
    "z": 1,
    "a": [1.5, 1e300, -0.0, 12345678901234567890123, True, None],
    "": {"deep": [{"b": {}, "a": []}]},
    "text": 'ä € 𝄞 \u0000 \u2028 \ud800 " \\ \n',
}
"""What JSON can say and databases like to change: order, numbers, characters."""


async def _record(subject: StoreSubject) -> None:
    written = record("s1", name="Näme", tags=["b", "a"], owed=_ODD, added_later=_ODD)
    async with opened(subject) as store:
        same("a record that is not there", await store.read_record("s1"), None)
        lease = await store.acquire("s1", owner="check", period=PERIOD)
        # a lease reserves an id and makes no session
        same("a record after a lease", await store.read_record("s1"), None)
        await store.write_record(lease, record("s1"))
        await store.write_record(lease, written)
    # opened anew: what the first connection holds in memory would always be right
    async with opened(subject) as store:
        same("the record", await store.read_record("s1"), written)


async def _record_of_another(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        lease = await begin(store, "s1")
        other = store.write_record(lease, record("s2"))
        await refuses(StoreError, "the record of another session", other)
        same("the other session", await store.read_record("s2"), None)


async def _logs(subject: StoreSubject) -> None:
    odd = LogEntry(kind="odd", data=_ODD, at=1700000000.123)
    async with opened(subject) as store:
        lease = await begin(store, "s1")
        same("an empty log", await store.read_log("s1", "journal"), SessionLog())
        await store.append(lease, "journal", [entry("1"), odd])
        await store.append(lease, "transcript", [entry("said")])
        # in two steps, and between them another log: entries are numbered for each log
        await store.append(lease, "journal", [entry("3"), entry("4")])
        await store.append(lease, "events", [entry("shown"), odd])
    async with opened(subject) as store:
        journal = await store.read_log("s1", "journal")
        wanted = (entry("1"), odd, entry("3"), entry("4"))
        same("the journal", journal.entries, wanted)
        end = await store.read_log("s1", "journal", after=3)
        same("the journal behind three", end.entries, (entry("4"),))
        same("when it began", end.began, journal.began)
        said = await store.read_log("s1", "transcript")
        same("the transcript", said.entries, (entry("said"),))
        shown = await store.read_log("s1", "events", after=1)
        same("the events behind one", shown.entries, (odd,))
        nothing = await store.read_log("s1", "events", after=2)
        same("the events behind all", nothing.entries, ())


async def _replace(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        lease = await begin(store, "s1")
        await store.append(lease, "journal", [entry("1"), entry("2")])
        new = SessionLog(entries=(entry("3"),), began=1600000000.25)
        await store.replace(lease, "journal", new)
        same("the log", await store.read_log("s1", "journal"), new)
        await store.append(lease, "journal", [entry("4")])
        log = await store.read_log("s1", "journal")
        same("the log after an addition", log.entries, (entry("3"), entry("4")))
        same("when it began", log.began, new.began)
        empty = SessionLog(began=1600000001.5)
        await store.replace(lease, "journal", empty)
        same("the log that was emptied", await store.read_log("s1", "journal"), empty)


async def _all_or_none(subject: StoreSubject) -> None:
    unwritable = LogEntry(kind="bad", data={"it": object()}, at=1.0)  # type: ignore[dict-item]  # what no JSON can say
    async with opened(subject) as store:
        lease = await begin(store, "s1")
        with suppress(TypeError, ValueError):
            await store.append(lease, "journal", [entry("1"), unwritable])
        log = await store.read_log("s1", "journal")
        same("the log after an addition that failed", log.entries, ())


async def _needs_a_record(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        lease = await store.acquire("s1", owner="check", period=PERIOD)
        early = store.append(lease, "journal", [entry("early")])
        await refuses(StoreError, "an addition before the record", early)
        log = await store.read_log("s1", "journal")
        same("the log of a session without a record", log.entries, ())


async def _documents(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        lease = await begin(store, "s1")
        same(
            "the documents of a new session", dict(await store.read_documents("s1")), {}
        )
        await store.write_document(lease, "composition.json", b"{}")
        await store.write_document(lease, "composition.json", bytes(range(256)))
        for name in ("", "../up", "a/b", "..", "a\0b"):
            bad = store.write_document(lease, name, b"")
            await refuses(StoreError, f"a document {name!r}", bad)
        wanted = {"composition.json": bytes(range(256))}
        same("the documents", dict(await store.read_documents("s1")), wanted)
        same("those of no session", dict(await store.read_documents("s2")), {})


async def _ids(subject: StoreSubject) -> None:
    # a path, another case, a wildcard of searches, a statement, and a long name
    odd = ("../s1", "S1", "s1%", "a'; DROP TABLE sessions; --", "ä€", "x" * 300)
    async with opened(subject) as store:
        for session_id in odd:
            lease = await begin(store, session_id, prompt=f"of {session_id}")
            await store.append(lease, "journal", [entry(session_id)])
        for session_id in odd:
            log = await store.read_log(session_id, "journal")
            same(
                f"the journal of {session_id!r:.20}", log.entries, (entry(session_id),)
            )


async def _delete(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        parent = await begin(store, "s1")
        child = await begin(store, "s2", parent_id="s1", created=2000.0)
        await begin(store, "other")
        await store.append(parent, "journal", [entry("1")])
        await store.release(parent)
        held = store.delete("s1")
        await refuses(LeaseHeldError, "the deletion of a child that is written", held)
        same("the parent", await store.read_record("s1"), record("s1"))
        # one lease that is wrong, beside one that is right, must delete nothing
        forged = attrs.evolve(child, token=child.token + 1)
        held = store.delete("s1", leases=[parent, forged])
        await refuses(LeaseHeldError, "a deletion with another lease", held)
        gone = await store.delete("s1", leases=[child])
        same("what was deleted", gone, ("s2", "s1"))
        same("the parent", await store.read_record("s1"), None)
        same("its journal", (await store.read_log("s1", "journal")).entries, ())
        same("another session", await store.read_record("other"), record("other"))


async def _changes(subject: StoreSubject) -> None:
    async with opened(subject) as reader, opened(subject) as writer:
        lease = await begin(writer, "s1")
        for number in range(3):
            # from the present state on: what changed before is not waited for
            seen = await reader.wait_for_change("s1", "", max_wait=20.0)
            still = await reader.wait_for_change("s1", seen, max_wait=0.0)
            same("the mark of a session that did not change", still, seen)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(writer.append, lease, "journal", [entry(str(number))])
                changed = await reader.wait_for_change("s1", seen, max_wait=20.0)
            require(changed != seen, "the mark of a change is the one before it")
            log = await reader.read_log("s1", "journal")
            same("entries when the change was reported", len(log.entries), number + 1)


# A row: what is done; what is true of a good one; what its author does when it is not.
# fmt: off
CONTENTS: Final = (
    StoreBehavior(id="record.comes-back-as-written", check=_record,
        says="A record comes back with the same values in the same order, also those that the store does not know.",
        fix="Store the text of the JSON data; types such as JSONB change the order, and some numbers and characters."),
    StoreBehavior(id="record.belongs-to-its-lease", check=_record_of_another,
        says="With the lease on a session no record of another one is written.",
        fix="Compare the record's `session_id` with the lease's."),
    StoreBehavior(id="log.comes-back-as-written", check=_logs,
        says="The entries of a log come back in their order with the same data and times, from wherever one reads.",
        fix="Number the entries of each log, and store the text of their JSON data."),
    StoreBehavior(id="log.is-replaced", check=_replace,
        says="A log that is replaced has the new entries and the time that it says it began; the next ones follow.",
        fix="Delete and insert in one transaction."),
    StoreBehavior(id="log.is-added-to-at-once", check=_all_or_none,
        says="Of an addition that fails nothing is stored.",
        fix="Encode all entries before the first one is written, and write them in one transaction."),
    StoreBehavior(id="log.needs-a-record", check=_needs_a_record,
        says="Nothing is said in a session that has no record.",
        fix="Look for the record in the same transaction."),
    StoreBehavior(id="document.comes-back-as-written", check=_documents,
        says="A document comes back byte for byte, and its name leads nowhere else.",
        fix="Store bytes, and refuse names with separators or control characters."),
    StoreBehavior(id="session.has-any-id", check=_ids,
        says="Whatever a session's id is, it leads to no other session.",
        fix="Pass ids as parameters of statements, and compare them exactly."),
    StoreBehavior(id="session.is-deleted-with-its-children", check=_delete,
        says="A session is deleted with all that came of it, or, where somebody writes one of them, nothing is.",
        fix="Lock the whole family in one transaction before the first is deleted."),
    StoreBehavior(id="session.reports-changes", check=_changes,
        says="Whoever waits for a change of a session gets it, and then finds what was written.",
        fix="Give the mark in the transaction of the write, and look at it once more before waiting."),
)
