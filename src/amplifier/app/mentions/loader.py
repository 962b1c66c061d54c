"""Loading what a text mentions, and what that mentions in turn: bounded, each content once, each outcome told."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from amplifier.app.mentions.contents import SHOWN, PlaceContents, Status, read_place
from amplifier.app.mentions.dedup import ContentDeduplicator
from amplifier.app.mentions.resolver import MentionResolver, Writer
from amplifier.app.mentions.scanner import (
    LineRange,
    Mention,
    find_mentions,
    split_range,
)
from amplifier.app.settings.schema import MentionSettings
from amplifier.app.text.context_blocks import CONTEXT_TAIL, context_head, guard_context
from amplifier_sdk.content import ContentBlock, TextBlock
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message

__all__ = [
    "Batch",
    "MentionLoader",
    "MentionOutcome",
    "prepend_context_to_markdown",
    "shown_places",
]

# Files mention files: without a bound a hostile one would keep a turn from beginning.
_MAX_MENTIONS: Final = 1000
_LOOKED_AT: Final = 64
"""How many times as many bytes may be read as may be shown."""
_METADATA: Final = "mentions"
"""The key of a message's metadata under which the places that it shows stand, with their digests."""


@attrs.frozen(kw_only=True)
class MentionOutcome:
    """What became of one mention.

    Args:
        mention: as it is written.
        status: what became of it.
        path: where it led.
        source: the file that it stands in; `None` for the text that was given.
        note: why nothing, or not all, is shown.
    """

    mention: str
    status: Status
    path: Path | None = None
    source: Path | None = None
    note: str = ""

    def __str__(self) -> str:
        place = f" in {self.source}" if self.source is not None else ""
        return f"{self.mention}{place}: {self.note or self.word}"

    @property
    def word(self) -> str:
        """The status in words."""
        return self.status.replace("_", " ")

    def to_dict(self) -> dict[str, JSONValue]:
        """Write the outcome as JSON data."""
        return {
            "mention": self.mention,
            "status": self.status,
            "path": None if self.path is None else str(self.path),
            "source": None if self.source is None else str(self.source),
            "note": self.note,
        }


@attrs.frozen(kw_only=True)
class Batch:
    """What a text's mentions came to."""

    messages: tuple[Message, ...] = ()
    outcomes: tuple[MentionOutcome, ...] = ()

    @property
    def unresolved(self) -> list[MentionOutcome]:
        """The mentions that nothing is shown of, though it was not shown already."""
        shown = SHOWN | {"duplicate", "cycle"}
        return [outcome for outcome in self.outcomes if outcome.status not in shown]

    def summary(self) -> str:
        """Say it in one line."""
        skipped = [outcome for outcome in self.outcomes if outcome.status not in SHOWN]
        lines = [
            f"Processing @mentions: Loaded {len(self.outcomes) - len(skipped)} files"
        ]
        for outcome in skipped[:20]:
            why = outcome.note if outcome.status == "missing" else outcome.word
            lines.append(f"skipped {outcome.mention} ({why})")
        return "; ".join(lines)


@attrs.define(eq=False)
class _Entry:
    """A content that is shown, and all mentions that led to it."""

    reading: PlaceContents
    credits: list[tuple[str, str]]  # each mention, and the place that it led to
    key: str
    digest: str | None = None
    is_newer: bool = False


@attrs.define(eq=False)
class _PendingMention:
    """A mention that is yet to be resolved: who wrote it, and the files that led to it."""

    mention: Mention
    writer: Writer
    trail: tuple[Path, ...]


@attrs.frozen(eq=False)
class MentionLoader:
    """Loads what texts mention.

    Args:
        resolver: finds what a mention names; default for where the process works.
        limits: how much is loaded; default that of the settings.
    """

    resolver: MentionResolver = attrs.field(factory=MentionResolver)
    limits: MentionSettings = attrs.field(factory=MentionSettings)

    def load_mentions(
        self,
        text: str,
        relative_to: Path | None = None,
        deduplicator: ContentDeduplicator | None = None,
    ) -> list[Message]:
        """Return developer messages with what a text mentions; a content that is known is not sent again.

        Args:
            text: the text.
            relative_to: the folder of the file that it stands in; default the person typed it.
            deduplicator: what was shown already.
        """
        writer = self.resolver.writer(relative_to)
        batch = self.load(text, writer, deduplicator or ContentDeduplicator())
        return list(batch.messages)

    def load(
        self, text: str, writer: Writer, deduplicator: ContentDeduplicator
    ) -> Batch:
        """Load what a text mentions, and what those files mention; files are read, so call it in a thread.

        Args:
            text: the text.
            writer: who wrote it.
            deduplicator: what was shown already; what is loaded is noted there.
        """
        return _Loading(self, deduplicator).run(text, writer)


@attrs.define(eq=False)
class _Loading:
    """One text being loaded."""

    loader: MentionLoader
    deduplicator: ContentDeduplicator
    entries: dict[str, _Entry] = attrs.field(factory=dict)
    outcomes: list[MentionOutcome] = attrs.field(factory=list)
    left: int = 0
    unread: int = 0

    def run(self, text: str, writer: Writer) -> Batch:
        self.left = self.loader.limits.max_turn_bytes
        self.unread = _LOOKED_AT * self.left
        # Breadth first: what the person typed is loaded before what their files
        # mention, while the budget lasts.
        queue = deque(self._wanted(text, writer, ()))
        for _ in range(_MAX_MENTIONS):
            if not queue:
                break
            queue.extend(self._load(queue.popleft()))
        self.outcomes += [
            MentionOutcome(
                mention=wanted.mention.text,
                status="too_large",
                note=f"more than {_MAX_MENTIONS} mentions",
            )
            for wanted in queue
        ]
        return Batch(
            messages=tuple(map(_message, self.entries.values())),
            outcomes=tuple(self.outcomes),
        )

    def _wanted(
        self, text: str, writer: Writer, trail: tuple[Path, ...]
    ) -> Iterator[_PendingMention]:
        return (
            _PendingMention(mention, writer, trail) for mention in find_mentions(text)
        )

    def _load(self, wanted: _PendingMention) -> Iterator[_PendingMention]:
        # Files that are refused cost time too, so reading has a budget besides showing.
        if self.unread < 0:
            why = "all mentions together look through too many bytes"
            return self._record(wanted, "too_large", None, why)
        found, lines = self._read(wanted)
        if found is None:
            return iter(())
        self.unread -= found.looked_at
        key, limits = f"{found.path}{lines or ''}", self.loader.limits
        # By the resolved path: a link to a file above would be a cycle under another
        # name.
        if found.path in wanted.trail:
            return self._record(wanted, "cycle", found)
        if len(wanted.trail) > limits.max_depth:
            why = f"more than {limits.max_depth} files deep"
            return self._record(wanted, "depth", found, why)
        if not found.is_shown:
            return self._record(wanted, found.status, found)
        # The same place twice in one text is credited, and shown once.
        if key in self.entries:
            self.entries[key].credits.append((wanted.mention.text, key))
            return self._record(wanted, "duplicate", found)
        content = _content_of(found)
        size = len(content.encode("utf-8", "surrogatepass"))
        if size > self.left:
            why = f"all mentions together have more than {limits.max_turn_bytes} bytes"
            return self._record(wanted, "too_large", found, why)
        news = self.deduplicator.note(key, content)
        digest = self.deduplicator.digest_of(key)
        if news == "known":
            self._credit(wanted, key, digest)
            return self._record(wanted, "duplicate", found)
        self.left -= size
        self.entries[key] = _Entry(
            found, [(wanted.mention.text, key)], key, digest, news == "changed"
        )
        self._record(wanted, found.status, found)
        if found.status != "loaded":
            return iter(())
        nested = Writer(found.path.parent, mentioned=True)
        return self._wanted(found.content, nested, (*wanted.trail, found.path))

    def _credit(self, wanted: _PendingMention, key: str, digest: str | None) -> None:
        """Name a place beside the one whose content is shown, where the two are the same."""
        for entry in self.entries.values():
            if entry.digest == digest:
                entry.credits.append((wanted.mention.text, key))

    def _read(
        self, wanted: _PendingMention
    ) -> tuple[PlaceContents | None, LineRange | None]:
        """Return what the mention names: of the first of its targets and places where there is something."""
        refused: PlaceContents | None = None
        for written in wanted.mention.targets:
            # A file may be called `name:10`, so lines are what is tried second.
            for target, lines in ((written, None), split_range(written)):
                # A name that an untrusted collection claims must not be looked for
                # elsewhere: another file would be shown for it.
                if refusal := self.loader.resolver.refusal(target):
                    self._record(wanted, "denied", None, refusal)
                    return None, None
                for place in self.loader.resolver.places_of(target, wanted.writer):
                    reading = read_place(
                        place,
                        lines,
                        self.loader.limits.max_file_bytes,
                        self.loader.resolver.files,
                    )
                    if reading.status != "missing":
                        if reading.status != "denied":
                            return reading, lines
                        # A weaker place may have it; the first refusal is reported
                        # where none has.
                        refused = refused or reading
        if refused is not None:
            return refused, None
        self._record(wanted, "missing", None, "not found")
        return None, None

    def _record(
        self,
        wanted: _PendingMention,
        status: Status,
        found: PlaceContents | None,
        note: str = "",
    ) -> Iterator[_PendingMention]:
        outcome = MentionOutcome(
            mention=wanted.mention.text,
            status=status,
            source=wanted.trail[-1] if wanted.trail else None,
            note=note,
        )
        if found is not None:
            outcome = attrs.evolve(outcome, path=found.path, note=note or found.note)
        self.outcomes.append(outcome)
        return iter(())


def prepend_context_to_markdown(context: Sequence[Message], markdown: str) -> str:
    """Return a text with what it mentions before it; texts alone, since an instruction shows no media."""
    return "\n\n".join([*(message.text for message in context), markdown])


def shown_places(metadata: Mapping[str, JSONValue] | None) -> dict[str, str]:
    """Return the places that a stored message shows, with their digests."""
    places = (metadata or {}).get(_METADATA)
    if isinstance(places, dict):
        return {key: str(digest) for key, digest in places.items()}
    return {}


def _message(entry: _Entry) -> Message:
    credit = ", ".join(f"{mention} → {place}" for mention, place in entry.credits)
    head, tail = context_head(credit), CONTEXT_TAIL
    if entry.is_newer:
        head += "This takes the place of what was shown of it before.\n"
    metadata: dict[str, JSONValue] = {
        "source": "mention",
        _METADATA: {place: entry.digest or "" for _, place in entry.credits},
    }
    media = entry.reading.media
    if media is None:
        text = f"{head}{guard_context(entry.reading.content)}{tail}"
        return Message(role="developer", content=text, metadata=metadata)
    blocks: list[ContentBlock] = [TextBlock(text=head), media, TextBlock(text=tail)]
    return Message(role="developer", content=blocks, metadata=metadata)


def _content_of(reading: PlaceContents) -> str:
    """Return what is counted and compared of a place: its text, or the data of its media."""
    if reading.media is None:
        return reading.content
    return str(reading.media.source.get("data"))
