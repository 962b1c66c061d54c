"""Finding sessions by what was said in them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final, Literal, TypeAlias

import attrs

from amplifier.app.store.reader import read_history, words_of
from amplifier.app.store.stored import MAX_HEADER, StoredSession
from amplifier.app.store.transcript import EXPECTED
from amplifier.app.store.writer import JOURNAL, TRANSCRIPT
from amplifier.app.word_filter import ESCAPE, WordFilter, longest_word
from amplifier_sdk.errors import ConfigError

__all__ = ["MAX_BYTES", "Hit", "Place", "SearchResult", "search_sessions"]

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
    wanted = text.casefold()
    words = _words_of(wanted)
    hits: list[Hit] = []
    unread: list[str] = []
    left = max_bytes
    for session in sessions if wanted else ():
        if len(hits) >= limit:
            break
        hit = _in_record(session, wanted)
        if hit is None:
            size = _size(session)
            if size > left:
                unread.append(session.record.session_id)
                continue
            left -= size
            try:
                if _may_hold(session, words):
                    hit = _in_messages(session, wanted)
            except (ConfigError, OSError):
                unread.append(session.record.session_id)
        if hit is not None:
            hits.append(hit)
    return SearchResult(hits=tuple(hits), unread=tuple(unread))


def _in_record(session: StoredSession, wanted: str) -> Hit | None:
    record = session.record
    places: list[tuple[Place, str]] = [
        ("name", record.name or ""),
        ("prompt", record.prompt),
    ]
    places += [("tag", tag) for tag in record.tags]
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


def _may_hold(session: StoredSession, words: WordFilter) -> bool:
    """Return whether it is worth the time to decode what was said in a session.

    The results of a turn that was interrupted are made up when it is read.
    """
    with suppress(FileNotFoundError):
        if (session.folder / JOURNAL).stat().st_size > MAX_HEADER:
            return True
    try:
        data = (session.folder / TRANSCRIPT).read_bytes()
    except OSError:
        return True  # whoever reads it says why it cannot be read
    return _HEADER not in data[:MAX_HEADER] or words.admits(data)


def _in_messages(session: StoredSession, wanted: str) -> Hit | None:
    for number, message in enumerate(read_history(session.folder).messages, 1):
        text = words_of(message)
        if wanted in text.casefold():
            return Hit(
                session=session,
                place="message",
                excerpt=_excerpt(text, wanted),
                message=number,
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
