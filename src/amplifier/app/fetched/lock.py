"""What was installed, from where, and the digest of its files: `collections.lock`, `plugins.lock`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn

import attrs

from amplifier.app.sources.locations import canonical_name
from amplifier_kit.files.private import PrivateFile
from amplifier_kit.open_data import as_object
from amplifier_sdk.errors import ConfigError, did_you_mean
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["FetchedEntry", "FetchedLock"]

_VERSION: Final = "1.2"
_FIELDS: Final = ("name", "source", "path", "installed_at", "hash")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@attrs.frozen(kw_only=True)
class FetchedEntry:
    """An installed folder: a collection, or a plugin.

    Args:
        name: its name.
        source: from where it was installed.
        commit: of a repository, whole.
        version: that it gives itself.
        path: its folder, relative to that of the lock file.
        installed_at: when, in UTC; default now.
        hash: the digest of its files.
        modules: the modules a collection brings: path and type by id.
    """

    name: str
    source: str
    path: str
    installed_at: str = attrs.field(factory=_now)
    hash: str
    commit: str | None = None
    version: str = ""
    modules: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)


@attrs.frozen
class FetchedLock:
    """The lock file of one level; several processes may use it. Its functions block.

    Args:
        folder: in which it stands.
        kind: what was installed, `collections` or `plugins`; also the name of the folder they stand in, beside it.
        is_local: whether it is a project's.
    """

    folder: Path
    kind: str = "collections"
    is_local: bool = attrs.field(default=False, kw_only=True)

    @property
    def path(self) -> Path:
        """The lock file."""
        return self.folder / f"{self.kind}.lock"

    @property
    def noun(self) -> str:
        """What one of them is called: `collection`, `plugin`."""
        return self.kind.removesuffix("s")

    def read(self) -> dict[str, FetchedEntry]:
        """Return what is installed, by name.

        Raises:
            ConfigError: the lock file is damaged; says what helps.
            OSError: it cannot be read, or others may have written it.
        """
        if self.path.exists():
            return self._read(PrivateFile(self.path).read())
        return {}

    def change(
        self, put: Mapping[str, FetchedEntry] | None = None, drop: str | None = None
    ) -> None:
        """Put entries into the lock file, or take one out.

        Raises:
            ConfigError: the lock file is damaged; it stays as it is.
            OSError: it cannot be written.
        """

        def changed(content: JSONValue) -> JSONValue:
            entries = {**self._read(content), **(put or {})}
            entries.pop(drop or "", None)
            return {
                "version": _VERSION,
                self.kind: {name: attrs.asdict(each) for name, each in entries.items()},
            }

        PrivateFile(self.path).update(changed)

    def require(self, name: str) -> FetchedEntry:
        """Return what was installed under a name.

        Raises:
            ConfigError: nothing was; names the nearest.
        """
        locked = self.read()
        found = locked.get(canonical_name(name))
        if found is None:
            hint = did_you_mean(name, list(locked))
            problem = f"no such {self.noun} is installed{hint}"
            raise ConfigError.of(name, problem, subject=f"lock file {str(self.path)!r}")
        return found

    def chosen(self, names: Collection[str]) -> list[FetchedEntry]:
        """Return what was installed under some names, or all that was where none is given.

        Raises:
            ConfigError: nothing was under one of them; names the nearest.
        """
        if names:
            return [self.require(name) for name in names]
        return list(self.read().values())

    def _read(self, content: JSONValue) -> dict[str, FetchedEntry]:
        if content is None:
            return {}
        lock = as_object(content)
        entries = lock.get(self.kind)
        if not isinstance(entries, Mapping) or lock.get("version") != _VERSION:
            self._refuse(f"it is no lock file of version {_VERSION}")
        return {name: self._entry(name, entry) for name, entry in entries.items()}

    def _entry(self, name: str, entry: JSONValue) -> FetchedEntry:
        fields = as_object(entry)
        texts = {key: value for key, value in fields.items() if isinstance(value, str)}
        modules = fields.get("modules")
        path = texts.get("path", "")
        if (
            texts.get("name") != name
            or any(not texts.get(key) for key in _FIELDS)
            or not isinstance(modules, Mapping)
        ):
            self._refuse(f"the entry {name!a} is damaged")
        # `remove` deletes this folder: a lock file that came with a project must not
        # name another.
        if Path(path).is_absolute() or ".." in Path(path).parts:
            self._refuse(f"the path of {name!a} leads elsewhere")
        return FetchedEntry(
            **{key: texts[key] for key in _FIELDS},
            commit=texts.get("commit"),
            version=texts.get("version", ""),
            modules={key: _texts(value) for key, value in modules.items()},
        )

    def _refuse(self, problem: str) -> NoReturn:
        remedy = (
            f"restore it, or remove it and install the {self.kind} anew with --force"
        )
        raise ConfigError.of(
            "", f"{problem}; {remedy}", subject=f"lock file {str(self.path)!r}"
        )


def _texts(value: JSONValue) -> dict[str, str]:
    fields = as_object(value).items()
    return {key: text for key, text in fields if isinstance(text, str)}
