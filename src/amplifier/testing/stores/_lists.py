"""What every store guarantees of lists, searches and the removal of what is old."""

from __future__ import annotations

from typing import Final

from amplifier.testing.stores.behavior import (
    StoreBehavior,
    StoreSubject,
    begin,
    entry,
    opened,
    record,
    same,
)
from amplifier_sdk.stores import LogEntry

__all__ = ["LISTS"]

_CALL: Final = LogEntry(
    kind="message",
    data={
        "at": 1,
        "turn": "t1",
        "message": {
            "role": "assistant",
            "content": [{"type": "text", "text": 'He said "no".\nThe end'}],
        },
    },
    at=1000.75,
)


async def _list(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        same("the list of an empty store", await store.list_sessions(limit=9), ())
        await begin(store, "old", updated=1500.0)
        await begin(store, "new", created=3000.0, updated=0.0)
        await begin(store, "child", parent_id="old", created=4000.0)
        roots = await store.list_sessions(limit=9)
        same("the list", [each["session_id"] for each in roots], ["new", "old"])
        every = await store.list_sessions(limit=9, children=True)
        ids = [each["session_id"] for each in every]
        same("the list with children", ids, ["child", "new", "old"])
        (first,) = await store.list_sessions(limit=1)
        same("its record", first, record("new", created=3000.0, updated=0.0))


async def _children(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        await begin(store, "s1")
        await begin(store, "b", parent_id="s1", created=2000.0)
        await begin(store, "a", parent_id="s1", created=3000.0)
        await begin(store, "c", parent_id="a")
        same("the children", await store.children("s1"), ("b", "a"))
        same("those of no session", await store.children("s2"), ())


async def _search(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        await begin(store, "by-id", created=1001.0)
        await begin(store, "n", name="Blue 100% WHALE", created=1002.0)
        await begin(store, "p", prompt="about a whale", created=1003.0)
        await begin(store, "t", tags=["whale-watching"], created=1004.0)
        said = await begin(store, "m", created=1005.0, turn_count=1)
        await store.append(said, "transcript", [entry("Ein Wal, a WHALE_"), _CALL])
        for text, wanted in (
            ("whale", ("m", "t", "p", "n")),
            ("BY-ID", ("by-id",)),
            ("100% w", ("n",)),
            ("whale_", ("m",)),
            ('said "NO".', ("m",)),
            ("wh%le", ()),
            ("assistant", ()),
            ("", ()),
        ):
            same(f"sessions with {text!r}", await store.search(text, limit=9), wanted)
        same("the first one", await store.search("whale", limit=1), ("m",))


async def _cleanup(subject: StoreSubject) -> None:
    async with opened(subject) as store:
        for session_id, more in (
            ("old", record("old")),
            ("named", record("named", name="mine")),
            ("grown", record("grown")),
            ("young", record("young", parent_id="grown", created=5000.0)),
        ):
            del more["version"], more["session_id"]
            await store.release(await begin(store, session_id, **more))
        child = await begin(store, "old-child", parent_id="old")
        same("removed while a child is written", await store.cleanup(2000.0), ())
        await store.release(child)
        same("what was removed", await store.cleanup(2000.0), ("old-child", "old"))
        left = await store.list_sessions(limit=9, children=True)
        ids = sorted(str(each["session_id"]) for each in left)
        same("what is left", ids, ["grown", "named", "young"])


# A row: what is done; what is true of a good one; what its author does when it is not.
# fmt: off
LISTS: Final = (
    StoreBehavior(id="list.has-the-latest-first", check=_list,
        says="A list has the sessions in which something happened last first, and children only where they are wanted.",
        fix="Order by the later one of `created` and `updated`; a child has a `parent_id`."),
    StoreBehavior(id="children.are-in-their-order", check=_children,
        says="The children of a session are those that it made itself, the first one first.",
        fix="Choose by `parent_id`, and order by `created`."),
    StoreBehavior(id="search.takes-text-literally", check=_search,
        says="A search finds beginnings of ids, names, tags, prompts and what was said, in any case, and no more.",
        fix="Escape the wildcards of patterns, and look at the texts of messages and not at their JSON."),
    StoreBehavior(id="cleanup.leaves-what-is-used", check=_cleanup,
        says="A session is removed as old with its family, unless one of it is young, has a name or is written.",
        fix="Look at whole families, and lock each before it is deleted."),
)
