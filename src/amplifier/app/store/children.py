"""Child sessions in the store: kept like any other, with the plan that they are made from but without its secrets."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import cast

import attrs
from anyio import to_thread

from amplifier.app.store.kept import make_folder, write_record
from amplifier.app.store.records import SessionRecord
from amplifier.app.store.store import SessionStore
from amplifier.app.store.stored import read_record
from amplifier.app.store.transcript import Clean, Transcript
from amplifier_sdk.delegation import ChildRecord, ProviderPreference
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.secret import WITHHELD, withhold

__all__ = ["StoredChildren"]


@attrs.frozen(kw_only=True)
class StoredChildren:
    """The capability `session.children`: children outlive the process of their parent.

    Args:
        store: where sessions are kept.
        plan: the parent's mount plan, from which the secrets of a child's plan are taken when it is resumed.
        working_dir: where the person works.
        clean: returns what takes secrets out of what is written, as far as something does by then.
    """

    store: SessionStore
    plan: Mapping[str, object] = attrs.field(repr=False)
    working_dir: str = ""
    clean: Callable[[], Clean | None] = attrs.field(default=lambda: None, repr=False)

    async def save(self, record: ChildRecord, /) -> None:
        """Keep a child, in place of what was kept under its id.

        Raises:
            LockedError: another process has it open.
            OSError: the system refuses.
        """
        folder = self.store.folder(record.session_id)
        stored = await to_thread.run_sync(partial(_known, self.store, record, self.working_dir))
        transcript = await Transcript.open(folder / "transcript.jsonl")
        try:
            await transcript.store(f"turn-{record.turn_count}", record.messages, self.clean())
        finally:
            await transcript.aclose()
        written = attrs.evolve(
            stored,
            turn_count=record.turn_count,
            updated=time.time(),
            plan=_written(record.plan),
            provider_preferences=tuple({**cast("Mapping[str, str]", each)} for each in record.provider_preferences),
        )
        await to_thread.run_sync(partial(write_record, folder, written))

    async def load(self, session_id: str, /) -> ChildRecord | None:
        """Return what was kept under an id, or `None`.

        Raises:
            LockedError: another process has it open.
            ConfigError: it is damaged, or a newer version's.
            OSError: the system refuses.
        """
        folder = self.store.folder(session_id)
        stored = await to_thread.run_sync(partial(read_record, folder))
        if stored is None or stored.parent_id is None or stored.plan is None or stored.session_id != session_id:
            return None  # one without a plan was imported: what it would be made of is somebody else's word
        transcript = await Transcript.open(folder / "transcript.jsonl")
        await transcript.aclose()
        return ChildRecord(
            session_id=session_id,
            parent_id=stored.parent_id,
            agent_name=stored.agent_name or "",
            plan=cast("Mapping[str, object]", _revealed(stored.plan, self.plan, session_id)),
            messages=transcript.messages,
            turn_count=stored.turn_count,
            provider_preferences=cast("tuple[ProviderPreference, ...]", stored.provider_preferences),
        )


def _known(store: SessionStore, record: ChildRecord, working_dir: str) -> SessionRecord:
    """Return the record of a child as it is stored; one that is not there is made."""
    folder = store.folder(record.session_id)
    make_folder(folder)
    stored = read_record(folder)
    if stored is None:
        stored = SessionRecord(
            session_id=record.session_id,
            parent_id=record.parent_id,
            agent_name=record.agent_name,
            working_dir=working_dir,
        )
        write_record(folder, stored)
    return stored


def _written(plan: Mapping[str, object]) -> Mapping[str, JSONValue]:
    return cast("Mapping[str, JSONValue]", withhold(plan))


def _revealed(stored: object, live: object, session_id: str, path: str = "") -> object:
    """Put the parent's secrets where a stored plan has none; modules of lists are the same by id and instance."""
    if stored == WITHHELD:
        if not isinstance(live, (str, bytes)):
            problem = Problem(path, "this secret is not stored, and the plan of its parent has none; set it there")
            raise ConfigError([problem], subject=f"plan of session {session_id!r}")
        return live
    if isinstance(stored, Mapping):
        known = live if isinstance(live, Mapping) else {}
        return {key: _revealed(value, known.get(key), session_id, f"{path}.{key}") for key, value in stored.items()}
    if isinstance(stored, list):
        by_key = {_key(entry): entry for entry in live} if isinstance(live, list) else {}
        return [
            _revealed(entry, by_key.get(_key(entry)), session_id, f"{path}[{number}]")
            for number, entry in enumerate(stored)
        ]
    return stored


def _key(entry: object) -> object:
    return (entry.get("module"), entry.get("instance_id")) if isinstance(entry, Mapping) else str(entry)
