"""Secrets that a person keeps: in the system's keyring where there is one, else in a file that only they read.

Each has the name of the environment variable in whose place it stands. A file names them all; the keyring cannot
be asked what it holds. Changing them needs the extra `amplifier[cli]`; all functions block.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from typing import Final, Literal, Self

import attrs

from amplifier.app.directories import AppDirs
from amplifier_kit.files.private import PrivateFile
from amplifier_kit.keyrings import Keyring
from amplifier_kit.open_data import as_object
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["SecretStore"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@attrs.frozen(kw_only=True)
class SecretStore:
    """What a person keeps.

    Args:
        file: names the secrets, and holds those that the keyring does not.
        keyring: where they are stored if it is there.
    """

    file: PrivateFile
    keyring: Keyring = attrs.field(factory=Keyring)

    @classmethod
    def of(cls, dirs: AppDirs) -> Self:
        """Return the person's own store."""
        return cls(file=PrivateFile(dirs.home / "secrets.json"))

    def names(self) -> dict[str, Literal["keyring", "file"]]:
        """Return the names of the stored secrets, with where each is stored.

        Raises:
            PrivateFileError: others may have written the file, or it is damaged.
        """
        return {
            name: "file" if "value" in entry else "keyring"
            for name, entry in _entries(self.file.read()).items()
        }

    def get(self, name: str) -> str | None:
        """Return a secret; `None` where none of that name is stored.

        Raises:
            PrivateFileError: others may have written the file, or it is damaged.
        """
        entry = _entries(self.file.read()).get(name)
        if entry is None:
            return None
        value = entry.get("value")
        if isinstance(value, str):
            return value
        return self.keyring.get(name)

    def set(self, name: str, value: str) -> Literal["keyring", "file"]:
        """Keep a secret and return where.

        Raises:
            ValueError: the name is none of an environment variable, or the value is empty.
            OSError: the file cannot be written.
        """
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"a secret has the name of an environment variable, such as OPENAI_API_KEY; got {name!r}"
            )
        if not value:
            raise ValueError(f"the secret {name} is empty")
        where: Literal["keyring", "file"] = "file"
        entry: dict[str, JSONValue] = {"value": value}
        if self.keyring.is_there():
            # The keyring first: a name in the file without a secret behind it would be
            # reported as lost.
            self.keyring.set(name, value)
            where, entry = "keyring", {}
        self.file.update(lambda content: {**_entries(content), name: entry})
        return where

    def remove(self, name: str) -> bool:
        """Forget a secret; whether there was one."""
        entry = _entries(self.file.read()).get(name)
        if entry is None:
            return False
        if "value" not in entry:
            self.keyring.remove(name)

        def without(content: JSONValue) -> JSONValue:
            return {
                key: names for key, names in _entries(content).items() if key != name
            }

        self.file.update(without)
        return True

    def enter(self, environ: MutableMapping[str, str] = os.environ) -> list[str]:
        """Put stored secrets into the environment, where it lacks them; return their names.

        Modules find their keys there whoever wrote them. Child processes get a list of variables of their own.
        """
        put = []
        for name in self.names():
            # What the person set for this process wins; the keyring is not even asked,
            # which could prompt for a password.
            if environ.get(name):
                continue
            value = self.get(name)
            if value is not None:
                environ[name] = value
                put.append(name)
        return put


def _entries(content: JSONValue) -> dict[str, Mapping[str, JSONValue]]:
    entries = as_object(content).items()
    return {name: entry for name, entry in entries if isinstance(entry, dict)}
