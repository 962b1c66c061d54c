"""What every store guarantees of leases."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import anyio

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
from amplifier.validation.behaviors import BehaviorFailed
from amplifier_sdk.errors import LeaseHeldError, LeaseLostError
from amplifier_sdk.stores import Lease, SessionLog, SessionStore, StoredQuestion

__all__ = ["LEASES"]

_WORKERS: Final = 8

_QUESTION: Final = StoredQuestion(
    question_id="late", session_id="s1", prompt="?", options=("yes",)
)
_WRITES: Final[Mapping[str, Callable[[SessionStore, Lease], Awaitable[None]]]] = {
    "renew": lambda store, lease: store.renew(lease),
    "write_record": lambda store, lease: store.write_record(
        lease, record("s1", prompt="late")
    ),
    "append": lambda store, lease: store.append(lease, "journal", [entry("late")]),
    "replace": lambda store, lease: store.replace(lease, "transcript", SessionLog()),
    "write_document": lambda store, lease: store.write_document(
        lease, "late.txt", b"late"
    ),
    "ask": lambda store, lease: store.ask(lease, _QUESTION),
    "void_questions": lambda store, lease: store.void_questions(lease),
    "forget_questions": lambda store, lease: store.forget_questions(lease, ["q1"]),
}
"""Each method that needs a lease, with what it would change."""


async def _one_writer(subject: StoreSubject) -> None:
    async with opened(subject) as one, opened(subject) as other:
        await one.acquire("s1", owner="worker 1", period=PERIOD)
        second = other.acquire("s1", owner="worker 2", period=PERIOD)
        refused = await refuses(LeaseHeldError, "a second lease", second)
        same("the owner that the refusal names", refused.owner, "worker 1")
        # the owner too: two tasks of one worker would write over each other
        again = one.acquire("s1", owner="worker 1", period=PERIOD)
        await refuses(LeaseHeldError, "the owner's own second lease", again)


async def _race(subject: StoreSubject) -> None:
    won: list[Lease] = []

    async def try_to(store: SessionStore, number: int) -> None:
        try:
            won.append(await store.acquire("s1", owner=str(number), period=PERIOD))
        except LeaseHeldError:
            return

    async with (
        opened(subject) as one,
        opened(subject) as other,
        anyio.create_task_group() as tasks,
    ):
        for number in range(_WORKERS):
            # over two connections, since a lock in the process would guard one of them
            tasks.start_soon(try_to, (one, other)[number % 2], number)
    same("leases that were given at once", len(won), 1)


async def _release(subject: StoreSubject) -> None:
    async with opened(subject) as one, opened(subject) as other:
        first = await begin(one, "s1")
        await one.release(first)
        # whoever was interrupted releases again
        await one.release(first)
        second = await other.acquire("s1", owner="worker 2", period=PERIOD)
        # the lease is another's by now, and stays
        await one.release(first)
        if second.token <= first.token:
            raise BehaviorFailed(f"token {second.token} follows {first.token}")
        await other.append(second, "journal", [entry("mine")])


async def _holder(subject: StoreSubject) -> None:
    async with opened(subject) as one, opened(subject) as other:
        same("who has a session that is not there", await one.holder("s1"), None)
        lease = await one.acquire("s1", owner="worker 1", period=PERIOD)
        same("who has the lease", await other.holder("s1"), "worker 1")
        await one.release(lease)
        same("who has a lease that was released", await other.holder("s1"), None)
        await one.acquire("s1", owner="worker 1", period=PERIOD)
        await subject.expire_leases()
        same("who has a lease that ended", await other.holder("s1"), None)


async def _takeover(subject: StoreSubject) -> None:
    async with opened(subject) as one, opened(subject) as other:
        first = await begin(one, "s1")
        await one.append(first, "journal", [entry("first")])
        await subject.expire_leases()
        second = await other.acquire("s1", owner="worker 2", period=PERIOD)
        await other.append(second, "journal", [entry("second")])
        log = await one.read_log("s1", "journal")
        same("the journal", log.entries, (entry("first"), entry("second")))


async def _fences(subject: StoreSubject) -> None:
    async with opened(subject) as one, opened(subject) as other:
        late = await begin(one, "s1")
        await one.append(late, "transcript", [entry("said")])
        await subject.expire_leases()
        lease = await other.acquire("s1", owner="worker 2", period=PERIOD)
        # after the takeover: what is compared is what the new holder would work with
        before = await _content(other)
        for name, write in _WRITES.items():
            await refuses(LeaseLostError, f"a late {name}()", write(one, late))
        await one.release(late)
        same("the session after late writes", await _content(other), before)
        await other.renew(lease)


async def _expires(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        late = await begin(store, "s1")
        await subject.expire_leases()
        before = await _content(store)
        for name, write in _WRITES.items():
            what = f"{name}() with a lease that has ended"
            await refuses(LeaseLostError, what, write(store, late))
        same("the session after late writes", await _content(store), before)


async def _renews(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        lease = await begin(store, "s1")
        await store.renew(lease)
        for write in _WRITES.values():
            await write(store, lease)
        await refuses(
            LeaseHeldError,
            "a second lease after a renewal",
            store.acquire("s1", owner="worker 2", period=PERIOD),
        )


async def _forged(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        lease = await begin(store, "s1")
        await begin(store, "s2")
        # a higher one is refused, too: a store knows which it gave last
        for token in (lease.token + 1, 0, -1):
            forged = Lease(session_id="s1", owner="check", token=token, period=PERIOD)
            writing = store.append(forged, "journal", [entry("forged")])
            await refuses(LeaseLostError, f"a lease with token {token}", writing)
        same("the journal", (await store.read_log("s1", "journal")).entries, ())


async def _deleted(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        old = await begin(store, "s1")
        await store.release(old)
        await store.delete("s1")
        late = store.append(old, "journal", [entry("late")])
        await refuses(LeaseLostError, "a write into a deleted session", late)
        same("the deleted session", await store.read_record("s1"), None)
        # of the same id: a store that counted per session would begin with 1 again
        new = await begin(store, "s1")
        if new.token <= old.token:
            raise BehaviorFailed(f"token {new.token} follows {old.token}")
        await store.append(new, "journal", [entry("new")])


async def _content(store: SessionStore) -> tuple[object, ...]:
    return (
        await store.read_record("s1"),
        await store.read_log("s1", "journal"),
        await store.read_log("s1", "transcript"),
        dict(await store.read_documents("s1")),
        await store.questions("s1"),
    )


# A row: what is done; what is true of a good one; what its author does when it is not.
# fmt: off
LEASES: Final = (
    StoreBehavior(id="lease.has-one-holder", check=_one_writer,
        says="Nobody gets the lease on a session while somebody has it.",
        fix="Compare and set holder and end of the lease in one step."),
    StoreBehavior(id="lease.is-given-once-in-a-race", check=_race,
        says="Of several that want a lease at the same time one gets it.",
        fix="Compare and set holder and end of the lease in one step."),
    StoreBehavior(id="lease.is-released", check=_release,
        says="A released lease is given again, with a higher token, and released by its holder alone.",
        fix="Keep the last token of a session for ever, and compare it in `release`."),
    StoreBehavior(id="lease.names-its-holder", check=_holder,
        says="Anybody can ask who has the lease on a session; one that ended has no holder.",
        fix="Compare the end of the lease with the store's clock."),
    StoreBehavior(id="lease.is-taken-over", check=_takeover,
        says="A lease that was not renewed is given to another worker, which finds what the first one wrote.",
        fix="Let a lease end by the store's clock."),
    StoreBehavior(id="lease.fences-a-late-writer", check=_fences,
        says="A writer whose session was taken over writes nothing, with no method.",
        fix="Compare the fencing token in the same transaction as the write."),
    StoreBehavior(id="lease.fences-after-its-end", check=_expires,
        says="A writer whose lease has ended writes nothing, also where nobody took it over.",
        fix="Compare the end of the lease in the same transaction as the write."),
    StoreBehavior(id="lease.is-renewed", check=_renews,
        says="The holder of a lease renews it and writes with every method.",
        fix="Move the end of the lease in `renew`, by the store's clock."),
    StoreBehavior(id="lease.ends-with-its-session", check=_deleted,
        says="No lease on a session that was deleted writes, also where another one has its id now.",
        fix="Take tokens from a sequence of the whole store, which deletions leave alone."),
    StoreBehavior(id="lease.belongs-to-its-token", check=_forged,
        says="A token that the store did not give last opens nothing.",
        fix="Compare the token for equality, and with the session that it is of."),
)
