"""What a person allowed for longer than one call: in a session, in a project's folder, or everywhere; for a while.

Those that outlive a session are in the person's own folder, never in a project. Needs the extra `amplifier[locks]`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias

import attrs

from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.files.private import PrivateFile
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.threads import run_blocking

__all__ = ["PERMISSIONS", "PermissionRule", "PermissionScope", "Permissions"]

PERMISSIONS: Final = "approval.permissions"
"""The capability under which the `Permissions` of a session are offered."""

PermissionScope: TypeAlias = Literal["session", "project", "everywhere"]
"""How far a permission reaches."""

_Change: TypeAlias = Callable[[Mapping[str, JSONValue]], JSONValue]


@attrs.frozen(kw_only=True)
class PermissionRule:
    """One permission.

    Args:
        id: what `revoke` takes.
        scope: how far it reaches.
        tool_name: the tool that was asked about.
        action: what is allowed in words, without secrets: the call, or the kind of calls.
        folder: the folder that was worked in; empty for one that holds everywhere.
        distribution: the tool's distribution and version; empty when no distribution brought it.
        granted: when, in seconds since the epoch.
        expires: until when; `None` where it has no end.
    """

    id: str
    scope: PermissionScope
    tool_name: str
    action: str
    folder: str
    distribution: str
    granted: float = attrs.field(factory=time.time)
    expires: float | None = None

    def holds(self, now: float) -> bool:
        """Whether it has not expired; a clock that was set back lets nothing hold that was granted later."""
        # a clock that is set back would otherwise make a permission last longer
        return self.expires is None or self.granted <= now < self.expires


@attrs.define(eq=False)
class Permissions:
    """The permissions that hold; those of sessions are shared by a session and its children.

    Args:
        file: where those are that outlive a session.
        clock: returns the time, in seconds since the epoch.
    """

    file: PrivateFile
    clock: Callable[[], float] = time.time
    _session: dict[str, PermissionRule] = attrs.field(factory=dict)

    @classmethod
    def in_home(cls) -> Self:
        """Return those of the person's own folder."""
        return cls(PrivateFile(amplifier_home() / "approvals" / "projects.json"))

    async def find(self, ids: Iterable[str]) -> PermissionRule | None:
        """Return the first permission of these ids that holds now; what another process took back holds no more.

        Raises:
            OSError: the permissions cannot be read.
        """
        wanted = list(ids)
        # the session's own come first: they need no file
        held = next((self._session[id] for id in wanted if id in self._session), None)
        if held is not None:
            return held
        rules, now = await self._stored(), self.clock()
        return next(
            (rules[id] for id in wanted if id in rules and rules[id].holds(now)), None
        )

    async def list(self) -> tuple[PermissionRule, ...]:
        """Return every permission that holds, of all projects, the oldest first.

        Raises:
            OSError: the permissions cannot be read.
        """
        now = self.clock()
        rules = {
            id: permission
            for id, permission in (await self._stored()).items()
            if permission.holds(now)
        }
        return tuple(
            sorted(
                {**rules, **self._session}.values(),
                key=lambda permission: permission.granted,
            )
        )

    async def grant(self, permission: PermissionRule) -> None:
        """Let a permission hold; what has expired is forgotten on the way.

        Raises:
            OSError: it cannot be stored; nothing changed.
        """
        if permission.scope == "session":
            self._session[permission.id] = permission
            return
        entry, now = attrs.asdict(permission), self.clock()
        await self._change(
            # computed under the file's lock, from what is there then
            lambda rules: {**self._unexpired(rules, now), permission.id: entry}
        )

    async def revoke(self, id: str) -> bool:
        """Take a permission back, wherever it holds; return whether there was one.

        Raises:
            OSError: the permissions cannot be written.
        """
        there = self._session.pop(id, None) is not None
        if id not in await self._stored():
            return there
        await self._change(
            lambda rules: {key: value for key, value in rules.items() if key != id}
        )
        return True

    def _unexpired(
        self, rules: Mapping[str, JSONValue], now: float
    ) -> dict[str, JSONValue]:
        return {
            id: value
            for id, value in rules.items()
            if _permission(id, value, self.file.path).holds(now)
        }

    async def _stored(self) -> dict[str, PermissionRule]:
        content = _entries(
            await run_blocking(self.file.read, name=PERMISSIONS), self.file.path
        )
        return {
            key: _permission(key, value, self.file.path)
            for key, value in content.items()
        }

    async def _change(self, change: _Change) -> None:
        path = self.file.path
        update = partial(
            self.file.update, lambda content: change(_entries(content, path))
        )
        await run_blocking(update, name=PERMISSIONS)


def _entries(content: JSONValue, path: Path) -> Mapping[str, JSONValue]:
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise OSError(f"{path} holds no permissions; remove it")
    return content


def _permission(id: str, value: JSONValue, path: Path) -> PermissionRule:
    from amplifier_sdk.configuration import read_config
    from amplifier_sdk.errors import ConfigError

    try:
        read = read_config(
            PermissionRule,
            value if isinstance(value, Mapping) else {},
            subject="a permission",
        )
    except ConfigError as error:
        raise OSError(f"{path} is damaged ({error}); repair or remove it") from error
    # an entry under another's name would allow what nobody agreed to
    if read.id != id or read.scope == "session":
        raise OSError(
            f"{path} is damaged: {id!r} stands for another permission; repair or remove it"
        )
    return read
