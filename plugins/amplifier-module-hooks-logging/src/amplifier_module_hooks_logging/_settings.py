"""What can be set."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

import attrs

from amplifier_kit.logs.records import LEVELS, LogLevel
from amplifier_sdk.bounds import seconds

__all__ = ["LoggingConfig"]

_DELTAS: Final = ("content_block:delta", "thinking:delta")


@attrs.frozen(kw_only=True)
class LoggingConfig:
    """The configuration; the module's README describes each key."""

    enabled_events: tuple[str, ...] = ("*",)
    exclude_events: tuple[str, ...] = _DELTAS
    additional_events: tuple[str, ...] = ()
    auto_discover: bool = True
    log_level: LogLevel = "info"
    session_log_template: str | None = None
    strip_raw: bool = True
    priority: int = 100
    max_text: int = attrs.field(default=16_384, validator=attrs.validators.ge(16))
    max_record_bytes: int = attrs.field(
        default=262_144, validator=attrs.validators.ge(1_024)
    )
    max_file_bytes: int = attrs.field(
        default=52_428_800, validator=attrs.validators.ge(1_024)
    )
    keep_files: int = attrs.field(default=5, validator=attrs.validators.ge(0))
    queue_size: int = attrs.field(default=10_000, validator=attrs.validators.ge(1))
    close_timeout: float = attrs.field(default=3.0, validator=seconds)

    def wants(self, event: str) -> bool:
        """Tell whether an event is logged at all."""
        return _fits(event, self.enabled_events) and not _fits(
            event, self.exclude_events
        )

    def is_high_enough(self, level: LogLevel) -> bool:
        """Tell whether a level is logged."""
        return LEVELS.index(level) >= LEVELS.index(self.log_level)


def _fits(event: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(event, pattern) for pattern in patterns)
