"""What can be set."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from amplifier_sdk.bounds import count, seconds

__all__ = ["TelemetryConfig"]


@attrs.frozen(kw_only=True)
class TelemetryConfig:
    """The configuration; the module's README describes each key."""

    agent_name: str | None = None
    capture_content: bool = False
    iteration_spans: bool = True
    metrics: bool = True
    provider_names: Mapping[str, str] = attrs.field(factory=dict)
    max_content: int = attrs.field(default=32_768, validator=count)
    queue_size: int = attrs.field(default=4_096, validator=count)
    flush_timeout: float = attrs.field(default=2.0, validator=seconds)
