"""What a stored session was made of: the file `composition.json` in its folder."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

import attrs

from amplifier_kit.files.atomic import write_private
from amplifier_kit.files.documents import MAX_BYTES
from amplifier_kit.files.open_flags import READ
from amplifier_kit.open_data import as_object
from amplifier_sdk.configuration import read_config
from amplifier_sdk.convert import to_json
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONValue

__all__ = [
    "COMPOSITION",
    "VERSION",
    "ModuleOrigin",
    "PlanFile",
    "RecordedComposition",
    "read_recorded",
    "write_changed",
    "write_recorded",
]

COMPOSITION: Final = "composition.json"
"""The file's name."""

VERSION: Final = 1
"""The form of the file; a newer one is refused."""


@attrs.frozen(kw_only=True)
class ModuleOrigin:
    """Where a module of the plan came from.

    Args:
        module: its id.
        source: the location of its code, where a source is named; `None` for what is installed.
        distribution: who offers it, where it is installed.
        version: the distribution's.
    """

    module: str
    source: str | None = None
    distribution: str | None = None
    version: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether the module was there at all."""
        return self.source is not None or self.distribution is not None


@attrs.frozen(kw_only=True)
class PlanFile:
    """The file that a plan was read from, and the SHA-256 of its bytes then."""

    path: str
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Self:
        """Describe a file as it is now.

        Raises:
            OSError: it cannot be read, or is no file: a device has no end.
        """
        if not path.is_file():
            path.stat()
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return cls(path=str(path.absolute()), sha256=digest)

    def is_unchanged(self) -> bool:
        """Tell whether the file is there and as it was."""
        try:
            return PlanFile.of(Path(self.path)) == self
        except OSError:
            return False


@attrs.frozen(kw_only=True)
class RecordedComposition:
    """What a session was made of.

    Args:
        plan: the mount plan, without secrets.
        is_literal: whether references to the environment in the plan mean nothing.
        profile: the profile; `None` where there was none. Of an agent's session, that of its family.
        agent_name: the agent, where it is an agent's session or was forked from one.
        provider: the provider that the person chose.
        model: the model that the person chose.
        system: the agent's instruction that the person gave in place of the profile's.
        plan_file: where the plan came from, where that was a file.
        modules: where the modules came from.
        project: what of the project's folder was used and trusted: digests of files by kind and name.
    """

    plan: Mapping[str, JSONValue] = attrs.field(repr=False)
    is_literal: bool = False
    profile: str | None = None
    agent_name: str | None = None
    provider: str | None = None
    model: str | None = None
    system: str | None = attrs.field(default=None, repr=False)
    plan_file: PlanFile | None = None
    modules: tuple[ModuleOrigin, ...] = ()
    project: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)

    def to_bytes(self) -> bytes:
        """Write it as its file has it.

        Raises:
            ConfigError: it is too large to be read again.
        """
        fields = as_object(to_json(self))
        written = (json.dumps({"version": VERSION, **fields}, indent=1) + "\n").encode()
        if len(written) > MAX_BYTES:
            problem = f"it has {len(written):,} bytes; {MAX_BYTES:,} can be read"
            raise ConfigError.of("", problem, subject="composition of a session")
        return written

    @classmethod
    def from_dict(cls, data: JSONValue, *, subject: str) -> Self:
        """Read what `to_bytes` wrote.

        Raises:
            ConfigError: it is something else, or a newer version's.
        """
        if not isinstance(data, dict):
            raise ConfigError.of(
                "", f"a mapping; got {type(data).__name__}", subject=subject
            )
        version = data.get("version")
        if version != VERSION or isinstance(version, bool):
            message = f"{VERSION} is understood; got {version!r:.40}. A newer version of amplifier may have written it"
            raise ConfigError.of("version", message, subject=subject)
        fields = {key: value for key, value in data.items() if key != "version"}
        return read_config(cls, fields, subject=subject)


def read_recorded(folder: Path) -> RecordedComposition | None:
    """Read what the session of a folder was made of; `None` where the folder does not say.

    Raises:
        ConfigError: the file is damaged, too large, or a newer version's.
    """
    file = folder / COMPOSITION
    subject = f"composition {str(file)!r}"
    try:
        # no link: it may lead to what others change
        with open(os.open(file, READ), "rb") as stream:
            if os.fstat(stream.fileno()).st_nlink > 1:
                problem = "it is a hard link: the same file has another name, under which others may change it"
                raise ConfigError.of("", problem, subject=subject)
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError.of(
            "", f"it cannot be read: {error.strerror or error}", subject=subject
        ) from error
    if len(content) > MAX_BYTES:
        raise ConfigError.of(
            "", f"it is larger than {MAX_BYTES:,} bytes", subject=subject
        )
    try:
        data: JSONValue = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigError.of("", f"it is no JSON: {error}", subject=subject) from error
    return RecordedComposition.from_dict(data, subject=subject)


def write_recorded(folder: Path, recorded: RecordedComposition) -> None:
    """Write what a session is made of, all at once and for this user alone; the same again is not written.

    Raises:
        ConfigError: it is too large to be read again.
        OSError: the system refuses.
    """
    write_changed(folder / COMPOSITION, recorded.to_bytes())


def write_changed(file: Path, content: bytes) -> None:
    """Write a file for this user alone, unless it holds that already.

    Raises:
        OSError: the system refuses.
    """
    # A session that is only opened and read keeps the times of its files.
    if not file.is_file() or file.read_bytes() != content:
        write_private(file, content)
