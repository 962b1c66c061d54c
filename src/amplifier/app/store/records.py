"""Who a session is: one small file that is written before its first prompt."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Final, Self

import attrs

from amplifier_kit.files.documents import MAX_BYTES
from amplifier_kit.open_data import as_object
from amplifier_sdk.bounds import amount, number
from amplifier_sdk.configuration import read_config
from amplifier_sdk.convert import to_json
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "CHECKSUM",
    "SERVED_TURNS",
    "SERVED_WAITING",
    "TOKENS",
    "VERSION",
    "NewerRecordError",
    "SessionRecord",
    "beginning_of",
    "is_intact",
    "record_bytes",
]

VERSION: Final = 1
"""The form of a stored session; a newer one is refused."""

CHECKSUM: Final = "checksum"
"""The last key of a record's file: a CRC-32 of all others. Files of earlier versions have none."""

_PROMPT: Final = 120
TOKENS: Final = ("input_tokens", "output_tokens", "total_tokens")
"""The kinds of tokens in `usage`."""
# the last second of the year 9999: no calendar has a later one
_LATEST: Final = 253_402_300_799


def _money(
    _: object, attribute: attrs.Attribute[str | None], value: str | None
) -> None:
    try:
        is_amount = value is None or (
            Decimal(value).is_finite() and not Decimal(value).is_signed()
        )
    except InvalidOperation:
        is_amount = False
    if not is_amount:
        raise ValueError(
            f"{attribute.name} is an amount as decimal text; got {value!r:.40}"
        )


SERVED_TURNS: Final = "served_turns"
"""The key of a record that has the last turns which servers took."""

SERVED_WAITING: Final = "served_waiting"
"""The key of a record that names the turn which was left to be continued."""


class NewerRecordError(ConfigError):
    """A newer version wrote the record; it is left alone."""


@attrs.frozen(kw_only=True)
class SessionRecord:
    """What is known of a session without reading what was said in it. Times are seconds since the epoch.

    Args:
        session_id: its id.
        created: when it was made.
        updated: when a turn of it ended last.
        working_dir: where the person worked.
        profile: the profile it was made from.
        provider: the provider that is asked first, where the plan says so.
        model: the model, likewise.
        name: what the person calls it.
        tags: words by which they find it.
        prompt: how its first prompt begins.
        turn_count: turns that ended.
        usage: tokens of all turns by kind.
        cost_usd: what they cost, as decimal text, where that is known.
        parent_id: the session that made it.
        agent_name: the agent it was made from.
        command: the command that it was made for alone, such as one call of a tool; `continue` passes it over.
        forked_from: the session that it continues from a point of, and the turn up to which.
        plan: the mount plan of a child, without secrets.
        provider_preferences: those of a child.
        request: what else was asked of the session that made it; see `ChildRecord`.
        spending: what all its turns have spent, as `Spending.to_dict` writes it.
        owed: what its last turn that was cut off spent, for whoever charges it to the session that made this one:
            `turn_id`, `works_for` (the turn of that session) and `spent`.
        instructions: the paths of the files of instructions that its last turn began with.
        has_composition: whether it is recorded what it was made of; see `RecordedComposition`.
        is_renewed: whether a repair made it anew, so that it is not known what the session has spent.
        further: what another version of this program knows of it; it stays as it is.
    """

    session_id: str
    created: float = attrs.field(factory=time.time, validator=number(0, _LATEST))
    updated: float = attrs.field(default=0.0, validator=number(0, _LATEST))
    working_dir: str = ""
    profile: str | None = None
    provider: str | None = None
    model: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    prompt: str = ""
    turn_count: int = attrs.field(default=0, validator=amount)
    usage: Mapping[str, int] = attrs.field(factory=dict)
    cost_usd: str | None = attrs.field(default=None, validator=_money)
    parent_id: str | None = None
    agent_name: str | None = None
    command: str | None = None
    forked_from: Mapping[str, JSONValue] | None = None
    plan: Mapping[str, JSONValue] | None = attrs.field(default=None, repr=False)
    provider_preferences: tuple[Mapping[str, str], ...] = ()
    request: Mapping[str, JSONValue] = attrs.field(factory=dict, repr=False)
    spending: Mapping[str, JSONValue] = attrs.field(factory=dict)
    owed: Mapping[str, JSONValue] = attrs.field(factory=dict)
    instructions: tuple[str, ...] = ()
    has_composition: bool = False
    is_renewed: bool = False
    further: Mapping[str, JSONValue] = attrs.field(factory=dict, repr=False)

    @property
    def waits_at_server(self) -> bool:
        """Whether a server left a turn of it to be continued, for example once a person has answered."""
        turns = self.further.get(SERVED_TURNS)
        last = turns[-1] if isinstance(turns, list) and turns else None
        if not isinstance(last, Mapping) or last.get("state") != "running":
            return False
        return last.get("turn_id") == self.further.get(SERVED_WAITING)

    @property
    def latest(self) -> float:
        """When something happened in it last."""
        return max(self.created, self.updated)

    @property
    def is_unused(self) -> bool:
        """Whether nothing was said in it, nobody has named it, and no other session is behind it."""
        return not (
            self.prompt
            or self.turn_count
            or self.name
            or self.tags
            or self.parent_id
            or self.forked_from
        )

    @property
    def spending_of_usage(self) -> Mapping[str, JSONValue]:
        """What it has spent as records of earlier versions say it: the tokens and the cost."""
        return {
            **{name: self.usage[name] for name in TOKENS if name in self.usage},
            "cost_usd": self.cost_usd,
        }

    @property
    def account(self) -> Mapping[str, JSONValue]:
        """What it has spent, as far as the version that wrote it says so."""
        return self.spending or self.spending_of_usage

    def with_spending(self, spending: Mapping[str, JSONValue]) -> Self:
        """Return the record with what the session has spent by now in all; see `Spending.to_dict`."""
        usage = {
            name: value
            for name in TOKENS
            if isinstance(value := spending.get(name), int)
        }
        cost = spending.get("cost_usd")
        cost_usd = cost if isinstance(cost, str) else self.cost_usd
        return attrs.evolve(self, spending=spending, usage=usage, cost_usd=cost_usd)

    def to_dict(self) -> JSONObject:
        """Write it as JSON data, with the version of its form."""
        known = as_object(to_json(attrs.evolve(self, further={})))
        known.pop("further", None)
        return {**self.further, "version": VERSION, **known}

    def to_bytes(self) -> bytes:
        """Write it as its file has it.

        Raises:
            ConfigError: it is too large to be read again; names its largest part.
        """
        return record_bytes(self.to_dict(), self.session_id)

    @classmethod
    def from_dict(cls, data: JSONValue, *, subject: str) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            NewerRecordError: a newer version wrote it.
            ConfigError: it is no record.
        """
        if not isinstance(data, dict):
            raise ConfigError.of(
                "", f"a record; got {type(data).__name__}", subject=subject
            )
        version = data.get("version")
        if isinstance(version, int) and version > VERSION:
            raise NewerRecordError.of(
                "version",
                f"up to {VERSION} is understood; got {version}. Update amplifier",
                subject=subject,
            )
        if version != VERSION:
            raise ConfigError.of(
                "version", f"{VERSION}; got {version!r:.40}", subject=subject
            )
        names = {field.name for field in attrs.fields(cls)} - {"further"}
        known, further = dict[str, JSONValue](), dict[str, JSONValue]()
        for key, value in data.items():
            if key in names:
                known[key] = value
            elif key not in ("version", CHECKSUM):
                further[key] = value
        record = read_config(cls, known, subject=subject)
        if further:
            return attrs.evolve(record, further=further)
        return record


def record_bytes(record: JSONObject, session_id: str) -> bytes:
    """Write the data of a record as its file has it, with a checksum.

    Raises:
        ConfigError: it is too large to be read again; names its largest part.
    """
    data = {key: value for key, value in record.items() if key != CHECKSUM}
    # Last: a version that knows none writes what it does not know first, so that one
    # that it carried along, and that fits no more, is not taken for the file's.
    data[CHECKSUM] = _checksum(data)
    written = (json.dumps(data, indent=1) + "\n").encode()
    if len(written) > MAX_BYTES:
        sizes = {key: len(json.dumps(value)) for key, value in data.items()}
        largest = max(sizes, key=sizes.__getitem__)
        problem = f"it has {sizes[largest]:,} bytes, and the whole record {len(written):,}; {MAX_BYTES:,} can be read"
        raise ConfigError.of(
            largest, problem, subject=f"record of session {session_id!r}"
        )
    return written


def is_intact(data: JSONValue) -> bool:
    """Return whether the data of a record's file fits its checksum; without one nobody can know, and it does."""
    if not isinstance(data, dict) or not data or next(reversed(data)) != CHECKSUM:
        return True
    others = {key: value for key, value in data.items() if key != CHECKSUM}
    written: object = data[CHECKSUM]
    return written == _checksum(others)


def _checksum(data: JSONObject) -> str:
    # of the values, and not of the bytes: a file that was indented anew is as good
    return f"{zlib.crc32(json.dumps(data).encode()):08x}"


def beginning_of(prompt: str) -> str:
    """Return as much of a prompt, on one line, as a record has of it."""
    return " ".join(prompt.split())[:_PROMPT]
