"""What can be set."""

from __future__ import annotations

from typing import Literal

import attrs

from amplifier_kit.files.path_rules import SECRET_NAMES
from amplifier_sdk.bounds import count

__all__ = ["BackupConfig"]


@attrs.frozen(kw_only=True)
class BackupConfig:
    """The configuration; the module's README describes each key."""

    on_failure: Literal["deny", "warn"] = "deny"
    working_dir: str | None = None
    exclude_tools: tuple[str, ...] = ()
    snapshot_paths: tuple[str, ...] = ()
    secret_names: tuple[str, ...] = SECRET_NAMES
    max_file_bytes: int = attrs.field(default=52_428_800, validator=count)
    max_files: int = attrs.field(default=1_000, validator=count)
    max_total_bytes: int = attrs.field(default=536_870_912, validator=count)
    max_age_days: int = attrs.field(default=30, validator=count)
    priority: int = 2000
