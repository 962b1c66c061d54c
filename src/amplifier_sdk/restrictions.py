"""Restrictions: what an agent may change of the configuration of a module that its session has.

An agent has its session's rights and never more, so it cannot configure the session's hooks and tools anew. A module
may say which of its keys an agent can make stricter, by a mapping `agent_config` beside its `mount`:

    agent_config = {"only_tools": intersection, "allowed_write_paths": subset}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Restriction", "intersection", "subset"]

Restriction: TypeAlias = Callable[[JSONValue, JSONValue], JSONValue]
"""Takes what the session's configuration has under a key, `None` where nothing, and what an agent asks for; returns
what the agent gets, which is never looser. It raises `ValueError` where there is no such value; the text says why."""


def intersection(own: JSONValue, asked: JSONValue) -> JSONValue:
    """Narrow a list of what is allowed to what both name; where the session has none, everything is allowed."""
    wanted = _names(asked)
    if own is None:
        return wanted
    allowed = _names(own)
    return [name for name in wanted if name in allowed]


def subset(own: JSONValue, asked: JSONValue) -> JSONValue:
    """Narrow a list of what is allowed to some of it; where the session has none, only the empty list is one."""
    allowed, wanted = _names(own or []), _names(asked)
    more = [str(name) for name in wanted if name not in allowed]
    if more:
        raise ValueError(f"its session allows no {', '.join(map(repr, more))}")
    return wanted


def _names(value: JSONValue) -> list[JSONValue]:
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(name, str) for name in value
    ):
        raise ValueError(f"a list of strings; got {value!r:.100}")
    return list(value)
