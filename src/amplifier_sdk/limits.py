"""The limits of a session: every one finite, every one a setting under `session.limits` of the plan."""

from __future__ import annotations

from math import inf

import attrs

__all__ = ["Limits"]


def _seconds(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < inf:
        raise ValueError(f"{attribute.name} is a number of seconds above 0; got {value!r}")


def _count(_: object, attribute: attrs.Attribute[int], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{attribute.name} is a whole number above 0; got {value!r}")


@attrs.frozen(kw_only=True)
class Limits:
    """How much a turn may do, and how long each step may take (times in seconds).

    When a turn reaches `iterations`, `tool_calls` or `tokens` it gets one last answer without tools.
    `tokens` counts what providers report in one turn; `None` means no limit.
    """

    iterations: int = attrs.field(default=50, validator=_count)
    tool_calls: int = attrs.field(default=200, validator=_count)
    parallel_tools: int = attrs.field(default=8, validator=_count)
    tokens: int | None = attrs.field(default=None, validator=attrs.validators.optional(_count))
    tool_timeout: float = attrs.field(default=120.0, validator=_seconds)
    provider_timeout: float = attrs.field(default=600.0, validator=_seconds)
    provider_idle_timeout: float = attrs.field(default=60.0, validator=_seconds)
    hook_timeout: float = attrs.field(default=30.0, validator=_seconds)
    cleanup_timeout: float = attrs.field(default=5.0, validator=_seconds)
    import_timeout: float = attrs.field(default=10.0, validator=_seconds)
