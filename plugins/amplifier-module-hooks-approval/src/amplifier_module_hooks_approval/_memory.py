"""Permissions that hold for longer than one call: in the session, or in the project's folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.kit.private_files import PrivateFile
from amplifier_sdk.threads import run_blocking

__all__ = ["Permission", "Permissions"]

_Change: TypeAlias = Callable[[Mapping[str, JSONValue]], JSONValue]


@attrs.frozen(kw_only=True)
class Permission:
    """One permission.

    Args:
        id: what `revoke` takes.
        scope: how long it holds.
        tool_name: the tool.
        action: the call in words, without secrets.
        folder: the folder that was worked in.
        distribution: the tool's distribution and version; empty when no distribution brought it.
        granted: when, in seconds since the epoch.
    """

    id: str
    scope: Literal["session", "project"]
    tool_name: str
    action: str
    folder: str
    distribution: str
    granted: float = attrs.field(factory=time.time)


@attrs.define(eq=False)
class Permissions:
    """What a person allowed for longer than once; the capability `approval.permissions`.

    Args:
        file: where those of projects are kept.
    """

    file: PrivateFile
    _session: dict[str, Permission] = attrs.field(factory=dict)

    async def find(self, id: str) -> Permission | None:
        """Return the permission of this id that holds now; what another process took back holds no more.

        Raises:
            OSError: the projects' permissions cannot be read.
        """
        return self._session.get(id) or (await self._kept()).get(id)

    async def list(self) -> tuple[Permission, ...]:
        """Return every permission that holds, of all projects, the oldest first.

        Raises:
            OSError: the projects' permissions cannot be read.
        """
        found = {**await self._kept(), **self._session}
        return tuple(sorted(found.values(), key=lambda permission: permission.granted))

    async def grant(self, permission: Permission) -> None:
        """Let a permission hold.

        Raises:
            OSError: it cannot be kept; nothing changed.
        """
        if permission.scope == "session":
            self._session[permission.id] = permission
        else:
            entry = attrs.asdict(permission)
            await self._change(lambda kept: {**kept, permission.id: entry})

    async def revoke(self, id: str) -> bool:
        """Take a permission back, in the session and in the project; return whether there was one.

        Raises:
            OSError: the projects' permissions cannot be written.
        """
        there = self._session.pop(id, None) is not None
        if id not in await self._kept():
            return there
        await self._change(lambda kept: {key: value for key, value in kept.items() if key != id})
        return True

    async def _kept(self) -> dict[str, Permission]:
        content = _entries(await run_blocking(self.file.read, name="approval.permissions"), self.file.path)
        return {key: _permission(key, value, self.file.path) for key, value in content.items()}

    async def _change(self, change: _Change) -> None:
        path = self.file.path
        update = partial(self.file.update, lambda content: change(_entries(content, path)))
        await run_blocking(update, name="approval.permissions")


def _entries(content: JSONValue, path: Path) -> Mapping[str, JSONValue]:
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise OSError(f"{path} holds no permissions; remove it")
    return content


def _permission(id: str, value: JSONValue, path: Path) -> Permission:
    from amplifier_sdk import ConfigError
    from amplifier_sdk.configuration import read_config

    try:
        read = read_config(Permission, value if isinstance(value, Mapping) else {}, subject="a permission")
    except ConfigError as error:
        raise OSError(f"{path} is damaged ({error}); repair or remove it") from error
    if read.id != id or read.scope != "project":
        raise OSError(f"{path} is damaged: {id!r} stands for another permission; repair or remove it")
    return read
