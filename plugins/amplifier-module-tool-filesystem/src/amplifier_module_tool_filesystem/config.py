"""The module's configuration: which paths may be used, and how much one call may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_kit.files.executed import EXECUTED_NAMES, GIT_FOLDER
from amplifier_kit.files.path_rules import SECRET_NAMES
from amplifier_sdk.bounds import count, seconds
from amplifier_sdk.restrictions import Restriction, subset

__all__ = ["FilesystemConfig", "agent_config"]

agent_config: Final[Mapping[str, Restriction]] = {
    "allowed_read_paths": subset,
    "allowed_write_paths": subset,
}
"""What an agent may make stricter: it reads and writes in some of the session's folders, or in none."""

# Reading a device can block or change it, and `/proc` shows other processes'
# environments.
_SYSTEM_PATHS: Final = (
    "/proc",
    "/sys",
    "/dev",
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/etc/sudoers.d",
)


@attrs.frozen(kw_only=True)
class FilesystemConfig:
    """What `config` of the plan may hold.

    Relative entries start at `working_dir`; `~` is the home directory.

    Args:
        working_dir: where relative paths start; default the session's working directory, else the process's.
        allowed_read_paths: directories to read in; default the working directory alone.
        allowed_write_paths: directories to write in; default the working directory alone.
        denied_write_paths: what is never written, even inside an allowed directory. An entry without a
            slash is a name, denied at any depth; one with a slash is a path, denied with all below it. Names
            may hold `*`, `?` and `[…]`; of those that match the last decides, and `!name` allows. Default what
            belongs to git and the files that other programs execute.
        denied_read_paths: what is never read, edited, moved or searched, in the same form; default the names
            under which secrets are commonly stored, and the system's own files.
        read_before_write: whether a file must have been read in the session, and not changed since, before it
            is edited or written over.
        respect_ignore_files: whether `glob` and `grep` leave out what `.gitignore` and `.ignore` files name.
        max_image_bytes: the largest image or PDF that is read.
        max_read_bytes: the most file text that one result holds, in bytes of UTF-8.
        max_file_bytes: the largest file that is written, edited or searched.
        max_scan_bytes: how much of a file `read_file` reads on behind the lines asked for to count the rest.
        max_line_length: characters of a line that are shown; longer ones are cut with a mark.
        max_results: entries, paths or matches in one result.
        max_visited: directory entries that one listing or search visits.
        search_timeout: seconds that one listing or search may take.
    """

    working_dir: str | None = None
    allowed_read_paths: tuple[str, ...] | None = None
    allowed_write_paths: tuple[str, ...] | None = None
    denied_write_paths: tuple[str, ...] = (GIT_FOLDER, *EXECUTED_NAMES)
    denied_read_paths: tuple[str, ...] = (*SECRET_NAMES, *_SYSTEM_PATHS)
    read_before_write: bool = True
    respect_ignore_files: bool = True
    # 5 MB as base64, what vendors take
    max_image_bytes: int = attrs.field(default=3_750_000, validator=count)
    max_read_bytes: int = attrs.field(default=256 * 1024, validator=count)
    max_file_bytes: int = attrs.field(default=16 * 1024 * 1024, validator=count)
    max_scan_bytes: int = attrs.field(default=64 * 1024 * 1024, validator=count)
    max_line_length: int = attrs.field(default=2000, validator=count)
    max_results: int = attrs.field(default=500, validator=count)
    max_visited: int = attrs.field(default=100_000, validator=count)
    search_timeout: float = attrs.field(default=30.0, validator=seconds)
