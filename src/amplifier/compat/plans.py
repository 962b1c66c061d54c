"""Mount plans of the original: what this runtime does not know of them is left out and reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from amplifier.kernel.plans.keys import ENTRY_KEYS, PLAN_KEYS, SESSION_KEYS, SINGLE_KEYS
from amplifier.kernel.reports import report
from amplifier_sdk.hookspecs import KINDS

__all__ = ["accepted_plan"]

_SINGLE: Final = tuple(kind.section for kind in KINDS if kind.single)
_LISTS: Final = tuple(kind.section for kind in KINDS if not kind.single)
_PLAN: Final = frozenset((*PLAN_KEYS, *_SINGLE, *_LISTS))
_SESSION: Final = frozenset(
    (*SESSION_KEYS, *_SINGLE, *(f"{section}_source" for section in _SINGLE))
)


def accepted_plan(plan: Mapping[str, object]) -> dict[str, object]:
    """Return a plan without the keys that no plan has here; they are reported together.

    Raises:
        ValueError: the plan is empty, or names no loop or no context.
    """
    if not plan:
        raise ValueError("Configuration is required")
    left_out: list[str] = []
    accepted = _known(plan, _PLAN, "", left_out)
    session = accepted.get("session")
    given: Mapping[str, object] = session if isinstance(session, Mapping) else {}
    for section in _SINGLE:
        if not given.get(section):
            raise ValueError(f"Configuration must specify session.{section}")
    # the original limits no injection unless its plan does
    settings = {
        "injection_size_limit": None,
        **_known(given, _SESSION, "session.", left_out),
    }
    for section in _SINGLE:
        entry = settings[section]
        if isinstance(entry, Mapping):
            settings[section] = _known(
                entry, frozenset(SINGLE_KEYS), f"session.{section}.", left_out
            )
    accepted["session"] = settings
    for section in _LISTS:
        entries = accepted.get(section)
        if isinstance(entries, list):
            accepted[section] = [
                _known(entry, frozenset(ENTRY_KEYS), f"{section}[{index}].", left_out)
                if isinstance(entry, Mapping)
                else entry
                for index, entry in enumerate(entries)
                if not isinstance(entry, Mapping) or entry.get("module")
            ]
    if left_out:
        report("compat.plan_keys_not_used", keys=left_out)
    return accepted


def _known(
    section: Mapping[str, object], known: frozenset[str], path: str, left_out: list[str]
) -> dict[str, object]:
    left_out += (f"{path}{key}" for key in section if key not in known)
    return {key: value for key, value in section.items() if key in known}
