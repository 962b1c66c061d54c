"""What of a source was fetched: its commit and the digest of its files, stored in `modules.lock`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final, NoReturn, Self

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.sources.locations import PackageLocation, satisfies
from amplifier_kit.files.private import PrivateFile
from amplifier_kit.open_data import as_object
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["Pin", "SourcePins", "find_distribution", "look_at_package"]

_VERSION: Final = 1


@attrs.frozen(kw_only=True)
class Pin:
    """One source as it was fetched.

    Args:
        source: as it is written.
        commit: of a repository, whole.
        version: of a package.
        hash: of its files.
        fetched_at: when, in UTC.
    """

    source: str
    hash: str
    commit: str | None = None
    version: str | None = None
    fetched_at: str = ""

    @classmethod
    def of(
        cls,
        source: object,
        digest: str,
        *,
        commit: str | None = None,
        version: str | None = None,
    ) -> Self:
        """Return the pin of a source as it is fetched now."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(
            source=str(source),
            hash=digest,
            commit=commit,
            version=version,
            fetched_at=now,
        )

    @property
    def state(self) -> tuple[str | None, str | None, str]:
        """What identifies a state of the source: commit, version and digest."""
        return self.commit, self.version, self.hash

    def to_dict(self) -> JSONObject:
        """Write it as JSON data."""
        return attrs.asdict(self, filter=lambda _, value: value is not None)


@attrs.frozen
class SourcePins:
    """The lock file of module sources; several processes may use it. Its functions block."""

    file: PrivateFile

    @classmethod
    def of(cls, dirs: AppDirs) -> Self:
        """Return the person's own."""
        return cls(PrivateFile(dirs.home / "modules.lock"))

    @property
    def path(self) -> Path:
        """The lock file."""
        return self.file.path

    def find(self, source: str) -> Pin | None:
        """Return the pin of a source; `None` where it was never fetched.

        Raises:
            ConfigError: the lock file is damaged.
            OSError: it cannot be read, or others may have written it.
        """
        return self._read(self.file.read()).get(source)

    def all(self) -> list[Pin]:
        """Return every pin, sorted by source.

        Raises:
            ConfigError: the lock file is damaged.
            OSError: it cannot be read, or others may have written it.
        """
        return [pin for _, pin in sorted(self._read(self.file.read()).items())]

    def set(self, *pins: Pin) -> None:
        """Keep pins in place of those of the same sources, all of them or none.

        Raises:
            ConfigError: the lock file is damaged; it stays as it is.
            OSError: it cannot be written.
        """

        def change(content: JSONValue) -> JSONValue:
            merged = {**self._read(content), **{pin.source: pin for pin in pins}}
            return {
                "version": _VERSION,
                "sources": {source: pin.to_dict() for source, pin in merged.items()},
            }

        self.file.update(change)

    def _read(self, content: JSONValue) -> dict[str, Pin]:
        if content is None:
            return {}
        lock = as_object(content)
        sources = lock.get("sources")
        if not isinstance(sources, Mapping) or lock.get("version") != _VERSION:
            self._refuse(f"it is no lock file of version {_VERSION}")
        return {name: self._read_pin(name, entry) for name, entry in sources.items()}

    def _read_pin(self, name: str, entry: JSONValue) -> Pin:
        given = as_object(entry)
        fields = {key: value for key, value in given.items() if isinstance(value, str)}
        known = {field.name for field in attrs.fields(Pin)}
        # An unknown field may be what a newer version guards a source by.
        if fields.get("source") != name or "hash" not in fields or set(given) - known:
            self._refuse(f"the entry {name!a} is damaged")
        return Pin(**fields)

    def _refuse(self, problem: str) -> NoReturn:
        remedy = "remove the file, and every source is fetched and pinned anew"
        raise ConfigError.of(
            "", f"{problem}; {remedy}", subject=f"lock file {str(self.path)!r}"
        )


def look_at_package(location: PackageLocation) -> Pin | None:
    """Return the pin of a package as it is installed; `None` where none is whose version will do."""
    found = find_distribution(location)
    if found is None:
        return None
    return Pin.of(location, _digest(found), version=found.version)


def find_distribution(location: PackageLocation) -> Distribution | None:
    """Find a distribution whose version the source allows."""
    try:
        found = distribution(location.name)
    except PackageNotFoundError:
        return None
    if satisfies(found.version, location.versions):
        return found
    return None


def _digest(found: Distribution) -> str:
    """Return the digest of the list of files with the digest of each, which installers write."""
    record = found.read_text("RECORD") or found.read_text("METADATA") or ""
    # Compiled Python comes and goes; the source that it is made of is listed beside it.
    lines = sorted(line for line in record.splitlines() if "__pycache__" not in line)
    return f"sha256:{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()}"
