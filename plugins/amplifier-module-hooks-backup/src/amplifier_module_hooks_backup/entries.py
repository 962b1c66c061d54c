"""Entries: what was at a path before a call changed it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

import attrs

from amplifier_kit.files.resolved import printable
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.stores import LogEntry

__all__ = ["KIND", "BackupEntry", "BackupError", "State", "StateKind", "entry_problem"]

KIND: Final = "entry"
"""The kind of an entry's record in the log."""

StateKind: TypeAlias = Literal["file", "directory", "link", "absent", "left out"]
"""What was there; `left out` is what was not copied."""


class BackupError(AmplifierError):
    """A copy could not be made or brought back; the message says of what, and why."""


@attrs.frozen(kw_only=True)
class State:
    """What is at a path.

    Args:
        path: the absolute path, every link in it resolved; bytes that are no UTF-8 as half surrogate pairs.
        kind: what is there.
        mode: its permissions.
        size: a file's bytes.
        digest: of a file's content, SHA-256; the name of its copy.
        target: where a link leads.
        reason: why it is left out.
    """

    path: str
    kind: StateKind
    mode: int = 0
    size: int = 0
    digest: str = ""
    target: str = ""
    reason: str = ""

    @property
    def shown(self) -> str:
        """The path, fit to be shown."""
        return printable(self.path)


@attrs.frozen(kw_only=True)
class BackupEntry:
    """One copied state, and for which call.

    Args:
        number: counts from 1 in a session.
        at: when, in seconds since the epoch.
        turn: the turn of the outermost session, or `restore` with a number.
        session: the session whose tool it was.
        call: the call's id.
        tool: the tool's name.
        state: what was there.
    """

    number: int
    at: float
    turn: str
    session: str
    call: str
    tool: str
    state: State

    @property
    def path(self) -> Path:
        """The path of the state."""
        return Path(self.state.path)

    def to_record(self) -> LogEntry:
        """Write the entry as a record of the log."""
        data: JSONObject = attrs.asdict(self)
        return LogEntry(kind=KIND, data=data, at=self.at)

    @classmethod
    def from_record(cls, record: LogEntry) -> BackupEntry:
        """Read the entry that `to_record` wrote; `entry_problem` has found nothing wrong with it."""
        data = record.data
        assert isinstance(data, dict)
        return cls(**{**data, "state": State(**data["state"])})


_TEXTS: Final = ("turn", "session", "call", "tool")
_STATE_TEXTS: Final = ("path", "digest", "target", "reason")


def entry_problem(record: LogEntry) -> str | None:
    """Say what is wrong with a record of the log; `None` when it is an entry."""
    data: JSONValue = record.data
    if (
        record.kind != KIND
        or not isinstance(data, dict)
        or data.keys() != {each.name for each in attrs.fields(BackupEntry)}
    ):
        return "it is no entry"
    state = data["state"]
    if not isinstance(state, dict) or state.keys() != {
        each.name for each in attrs.fields(State)
    }:
        return "it has no state"
    texts = [*(data[name] for name in _TEXTS), *(state[name] for name in _STATE_TEXTS)]
    numbers = (data["number"], data["at"], state["mode"], state["size"])
    if not all(isinstance(text, str) for text in texts) or not all(
        isinstance(each, (int, float)) for each in numbers
    ):
        return "its values are of other types"
    if state["kind"] in get_args(StateKind):
        return None
    return "its state is of no known kind"
