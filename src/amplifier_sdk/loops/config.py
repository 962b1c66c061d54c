"""The settings that every loop has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_sdk.bounds import count, seconds
from amplifier_sdk.values import Value

__all__ = ["LoopConfig", "RoleCandidate"]

# its type says that the setting may be None, which a bare default would not
_FIVE: Final[int | None] = 5


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RoleCandidate(Value):
    """One provider that a role may be played by, by mounted name or module id, and the model asked of it.

    The provider may be a pattern such as `openai*`, which stands for every provider that fits it.
    """

    provider: str
    model: str | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class LoopConfig(Value):
    """Which provider a loop asks, and with what; `None` leaves a value to the provider.

    Args:
        default_provider: the mounted name of the provider to ask; default the one with the lowest `priority`.
        role: a key of `roles`, whose candidates are asked instead.
        roles: candidates by role, the preferred one first.
        fallback: ask the other providers too, by priority, where one fails and trying again may help.
        first_tool: a tool that the model has to call first in each turn, where the provider can force one.
        model: the model to ask for, of the provider that is asked first.
        temperature: as the provider understands it.
        max_output_tokens: how long one answer may be.
        reasoning_effort: as the provider understands it.
        breaker_failures: how many failures in a row within `breaker_window` keep a provider from being asked;
            `None` means none do.
        breaker_window: seconds within which failures count.
        breaker_cooldown: seconds after which such a provider is retried, with one request.
    """

    default_provider: str | None = None
    role: str | None = None
    roles: Mapping[str, tuple[RoleCandidate, ...]] | None = None
    fallback: bool = False
    first_tool: str | None = None
    model: str | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    reasoning_effort: str | None = None
    breaker_failures: int | None = attrs.field(
        default=_FIVE, validator=attrs.validators.optional(count)
    )
    breaker_window: float = attrs.field(default=60.0, validator=seconds)
    breaker_cooldown: float = attrs.field(default=30.0, validator=seconds)
