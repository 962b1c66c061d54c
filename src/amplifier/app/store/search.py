"""Finding sessions by what was said in them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias

import attrs

from amplifier.app.store.overview import SessionOverview, latest_rows
from amplifier.app.store.reader import read_history, words_of
from amplifier.app.store.stored import (
    MAX_HEADER,
    StoredSession,
    read_bytes,
    read_record,
)
from amplifier.app.store.transcript import EXPECTED
from amplifier.app.store.writer import JOURNAL, METADATA, TRANSCRIPT
from amplifier.app.text.word_filter import ESCAPE, WordFilter, longest_word
from amplifier_kit.files.documents import MAX_BYTES as MAX_RECORD
from amplifier_kit.open_data import as_list
from amplifier_sdk.errors import ConfigError

__all__ = [
    "MAX_BYTES",
    "Hit",
    "Place",
    "SearchResult",
    "search_folders",
    "search_sessions",
]

Place: TypeAlias = Literal["id", "name", "tag", "prompt", "message"]
"""Where in a session a text stands."""

MAX_BYTES: Final = 200_000_000
"""How much of transcripts one search reads at most."""

_AROUND: Final = 60
_HEADER: Final = (
    f'"holds":{{"name":"{EXPECTED.holds}","version":{EXPECTED.version}}}'.encode()
)
"""Stands in the first line of each transcript that can be read."""


@attrs.frozen(kw_only=True)
class Hit:
    """A session in which a text stands, and where it stands first.

    Args:
        session: the session.
        place: what of it.
        excerpt: the text with what stands around it.
        message: which message, from 1; 0 elsewhere.
    """

    session: StoredSession
    place: Place
    excerpt: str
    message: int = 0


@attrs.frozen(kw_only=True)
class SearchResult:
    """What was found; `unread` are the sessions whose transcripts were not read, by id."""

    hits: tuple[Hit, ...] = ()
    unread: tuple[str, ...] = ()


def search_sessions(
    sessions: Iterable[StoredSession],
    text: str,
    *,
    limit: int = 20,
    max_bytes: int = MAX_BYTES,
) -> SearchResult:
    """Find the sessions in which a text stands: in their ids, names, tags, prompts, or in what was said.

    Upper and lower case are the same. It blocks: call it in a thread.

    Args:
        sessions: where to search, in the order of the results.
        text: what to look for; nothing is in no session.
        limit: the maximum number of sessions returned.
        max_bytes: how much of transcripts is read at most.
    """
    search = _Search.of(text, max_bytes)
    for session in sessions if text else ():
        if len(search.hits) >= limit:
            break
        search.look_into(session)
    return search.result


def search_folders(
    roots: Iterable[Path],
    text: str,
    *,
    limit: int = 20,
    max_bytes: int = MAX_BYTES,
) -> SearchResult:
    """Find what `search_sessions` finds among all sessions of some folders, the latest first.

    It decodes those alone whose bytes may hold the text.

    Args:
        roots: the folders in which the folders of sessions stand.
        text: what to look for; nothing is in no session.
        limit: the maximum number of sessions returned.
        max_bytes: how much of transcripts is read at most.
    """
    search = _Search.of(text, max_bytes)
    overviews = [SessionOverview.of(root, transcripts=False) for root in roots if text]
    for root, row in latest_rows(overviews):
        if len(search.hits) >= limit:
            break
        # Text, since a path object takes longer to make than a file to read.
        if search.rules_out(f"{root}/{row.name}"):
            continue
        folder = root / row.name
        # Deleted or damaged since it was listed.
        with suppress(ConfigError):
            record = read_record(folder)
            if record is not None:
                search.look_into(StoredSession(folder=folder, record=record))
    return search.result


@attrs.define(eq=False)
class _Search:
    """A search, session by session; `left` is how much of transcripts it may yet read."""

    wanted: str
    words: WordFilter
    left: int
    hits: list[Hit] = attrs.field(factory=list)
    unread: list[str] = attrs.field(factory=list)

    @classmethod
    def of(cls, text: str, max_bytes: int) -> Self:
        wanted = text.casefold()
        return cls(wanted, _words_of(wanted), max_bytes)

    @property
    def result(self) -> SearchResult:
        return SearchResult(hits=tuple(self.hits), unread=tuple(self.unread))

    def look_into(self, session: StoredSession) -> None:
        """Add what is found in a session, or that it was not read."""
        hit = _in_record(session, self.wanted)
        if hit is None:
            size = _size(session)
            if size > self.left:
                self.unread.append(session.record.session_id)
                return
            self.left -= size
            try:
                if _size_without(session.folder, self.words, size) is None:
                    hit = _in_messages(session, self.wanted)
            except (ConfigError, OSError):
                self.unread.append(session.record.session_id)
        if hit is not None:
            self.hits.append(hit)

    def rules_out(self, folder: str) -> bool:
        """Return whether nothing is to be found in a session, whose transcript counts as read then."""
        record = read_bytes(f"{folder}/{METADATA}", MAX_RECORD)
        if record is None or self._stands_in(record):
            return False
        size = _size_without(folder, self.words, self.left)
        if size is None:
            return False
        self.left -= size
        return True

    def _stands_in(self, data: bytes) -> bool:
        """Return whether the text may stand in what is searched of a record.

        Its keys, and the folder where the person worked, hold words as well.
        """
        if not self.words.admits(data):
            return False
        try:
            written: object = json.loads(data)
        except (ValueError, RecursionError):
            return True  # whoever reads it says why it cannot be read
        if not isinstance(written, dict):
            return True
        texts = [written.get(key) for key in ("session_id", "name", "prompt")]
        texts += as_list(written.get("tags"))
        return any(
            self.wanted in each.casefold() for each in texts if isinstance(each, str)
        )


def _in_record(session: StoredSession, wanted: str) -> Hit | None:
    record = session.record
    places: list[tuple[Place, str]] = [("tag", tag) for tag in record.tags]
    places = [("name", record.name or ""), ("prompt", record.prompt), *places]
    if record.session_id.casefold().startswith(wanted):
        return Hit(session=session, place="id", excerpt=record.session_id)
    for place, text in places:
        if wanted in text.casefold():
            return Hit(session=session, place=place, excerpt=_excerpt(text, wanted))
    return None


def _words_of(wanted: str) -> WordFilter:
    word = longest_word(wanted)
    if word is None or word in "null":  # a call without arguments has it as its words
        return WordFilter.of([])
    return WordFilter.of([(word, ESCAPE)])


def _size_without(folder: Path | str, words: WordFilter, max_bytes: int) -> int | None:
    """Return the size of a transcript in whose session no message holds some words; `None` where one may."""
    try:
        # The results of a turn that was interrupted are made up when it is read.
        if os.stat(f"{folder}/{JOURNAL}").st_size > MAX_HEADER:
            return None
    except FileNotFoundError:
        pass
    data = read_bytes(f"{folder}/{TRANSCRIPT}", max_bytes)
    # Whoever reads one that is missing, short or something else says what is wrong.
    if data is None or len(data) <= MAX_HEADER:
        return None
    header, _, said = data.partition(b"\n")
    if _HEADER not in header or words.admits(said):
        return None
    return len(data)


def _in_messages(session: StoredSession, wanted: str) -> Hit | None:
    for number, message in enumerate(read_history(session.folder).messages, 1):
        text = words_of(message)
        if wanted in text.casefold():
            excerpt = _excerpt(text, wanted)
            return Hit(
                session=session, place="message", excerpt=excerpt, message=number
            )
    return None


def _excerpt(text: str, wanted: str) -> str:
    """Return the text around the first place; folding may change lengths, so the place is about right."""
    at = text.casefold().find(wanted)
    start, end = max(0, at - _AROUND), at + len(wanted) + _AROUND
    cut = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{cut}{'…' if end < len(text) else ''}"


def _size(session: StoredSession) -> int:
    try:
        return (session.folder / TRANSCRIPT).stat().st_size
    except OSError:
        return 0
