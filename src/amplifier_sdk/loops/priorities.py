"""The order of providers where nobody names one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from amplifier_sdk.contracts import Provider
from amplifier_sdk.errors import ConfigError, did_you_mean

__all__ = ["by_priority", "choose_provider", "not_mounted"]

DEFAULT_PRIORITY: Final = 100
"""The priority of a provider that names none; the lowest is chosen."""


def choose_provider(providers: Mapping[str, Provider]) -> str:
    """Return the name of the provider with the lowest `priority`, the first mounted among equals.

    The priority is the provider's attribute, else its configuration's, else 100.

    Raises:
        ConfigError: no provider is mounted.
    """
    if not providers:
        problem = "no provider is mounted; name one in the plan's 'providers'"
        raise ConfigError.of("providers", problem)
    # nothing to compare, and no attribute of foreign code to read
    if len(providers) == 1:
        return next(iter(providers))
    return by_priority(providers)[0]


def by_priority(providers: Mapping[str, Provider]) -> list[str]:
    """Return the providers' names, the lowest priority first and the first mounted among equals."""
    return sorted(providers, key=lambda name: _priority(providers[name]))


def _priority(provider: Provider) -> float:
    priority = getattr(provider, "priority", None)
    if priority is None:
        config = getattr(provider, "config", None)
        priority = None
        if isinstance(config, Mapping):
            priority = config.get("priority")
    if isinstance(priority, (int, float)):
        return priority
    return DEFAULT_PRIORITY


def not_mounted(path: str, kind: str, name: str, mounted: Iterable[str]) -> ConfigError:
    """Make the error of something that is not mounted; it names the nearest that is.

    Args:
        path: the setting that names it.
        kind: what it would be, such as `provider`.
        name: how it is called there.
        mounted: the names that there are.
    """
    names = list(mounted)
    hint = did_you_mean(name, names)
    problem = f"no {kind} {name!r} is mounted; mounted: {', '.join(names) or 'none'}"
    return ConfigError.of(path, f"{problem}{hint}")
