"""The limits of a session: a setting under `session.limits` of the plan each, and finite unless money is meant."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import TypedDict

import attrs

from amplifier_sdk.bounds import amount, count, seconds
from amplifier_sdk.values import Value

__all__ = ["LimitChanges", "Limits"]


def _dollars(value: object) -> Decimal | None:
    """Read an amount of money; a float is read as it is written, so that 0.1 stays 0.1."""
    if value is None:
        return None
    dollars = Decimal("NaN")
    if isinstance(value, (int, float, str, Decimal)) and not isinstance(value, bool):
        with suppress(InvalidOperation):
            dollars = Decimal(str(value))
    # NaN is below nothing and above nothing: such a limit would never be reached
    if not dollars.is_finite() or dollars <= 0:
        raise ValueError(
            f"A limit of cost is a number of US dollars above 0, or its decimal text; got {value!r}"
        )
    return dollars


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Limits(Value):
    """How much a turn may do, and how long each step may take (times in seconds).

    A turn that reaches `iterations`, `tool_calls`, `tokens` or `cost_usd` gets one last answer without tools, and so
    does one that has nine tenths of its `wall_time` behind it; at `wall_time` it is stopped. `session_tokens`,
    `session_cost_usd` and `session_tool_calls` hold for all turns of a session together. What child sessions
    spend counts for their parents, but for `iterations`, which each loop counts for itself. `None` means no
    limit. Time in which a person is asked does not count.
    """

    iterations: int = attrs.field(default=50, validator=count)
    tool_calls: int = attrs.field(default=200, validator=count)
    parallel_tools: int = attrs.field(default=40, validator=count)
    # none by default: these are money, which only who pays can limit
    tokens: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(count)
    )
    cost_usd: Decimal | None = attrs.field(default=None, converter=_dollars)
    wall_time: float = attrs.field(default=3600.0, validator=seconds)
    session_tokens: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(count)
    )
    session_cost_usd: Decimal | None = attrs.field(default=None, converter=_dollars)
    session_tool_calls: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(count)
    )
    delegation_depth: int = attrs.field(default=3, validator=amount)
    parallel_children: int = attrs.field(default=8, validator=count)
    tool_timeout: float = attrs.field(default=120.0, validator=seconds)
    provider_timeout: float = attrs.field(default=600.0, validator=seconds)
    provider_idle_timeout: float = attrs.field(default=60.0, validator=seconds)
    hook_timeout: float = attrs.field(default=30.0, validator=seconds)
    hook_warning: float = attrs.field(default=10.0, validator=seconds)
    cleanup_timeout: float = attrs.field(default=5.0, validator=seconds)
    import_timeout: float = attrs.field(default=10.0, validator=seconds)
    source_timeout: float = attrs.field(default=120.0, validator=seconds)
    mount_timeout: float = attrs.field(default=60.0, validator=seconds)


class LimitChanges(TypedDict, total=False):
    """Limits that hold for one turn instead of the session's, for example `{"tokens": 20_000}`."""

    iterations: int
    tool_calls: int
    parallel_tools: int
    tokens: int | None
    cost_usd: Decimal | float | str | None
    wall_time: float
    tool_timeout: float
    provider_timeout: float
    provider_idle_timeout: float
