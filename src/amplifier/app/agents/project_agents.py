"""What an agent that a project brings may say: it has its session's rights, or fewer, and no others.

Whoever trusts a project's agents trusts texts. Hooks, settings of tools, addresses of providers and code are no part
of that: they belong into a profile, which is trusted as what a session is made of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.errors import Problem
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["missing_modules", "widening"]

_KEYS: Final = frozenset(
    {"agents", "description", "providers", "session", "system", "tools"}
)
_SESSION_KEYS: Final = frozenset({"limits", "metadata", "orchestrator"})
_MODEL_KEYS: Final = frozenset(
    {"default_model", "max_output_tokens", "max_tokens", "model", "temperature"}
)
_MODULE_KEYS: Final = frozenset({"config", "instance_id", "module"})
_REMEDY: Final = (
    "an agent of a project only narrows what its session may do; set it in a profile"
)


def widening(plan: JSONObject) -> Iterator[Problem]:
    """Yield what a partial plan says that could give an agent more than its session has.

    Args:
        plan: what the agent's file says.
    """
    for key in sorted(set(plan) - _KEYS):
        yield Problem(key, _REMEDY)
    for key, value in sorted(as_object(plan.get("session")).items()):
        if key not in _SESSION_KEYS:
            yield Problem(f"session.{key}", _REMEDY)
        elif key == "orchestrator":
            yield from _unknown(value, f"session.{key}", {"config"}, _MODEL_KEYS)
    for section, settings in (("providers", _MODEL_KEYS), ("tools", frozenset[str]())):
        for index, entry in enumerate(as_list(plan.get(section))):
            place = f"{section}[{index}]"
            if not isinstance(entry, str):
                yield from _unknown(entry, place, _MODULE_KEYS, settings)
    if isinstance(plan.get("agents"), Mapping):
        problem = "names of agents, or 'none'; an agent of a project brings no others"
        yield Problem("agents", problem)


def missing_modules(plan: JSONObject, session: JSONObject) -> Iterator[Problem]:
    """Yield the modules that a partial plan names and the plan of its session does not have.

    Args:
        plan: what the agent's file says.
        session: the plan of the session that delegates to it.
    """
    for section in ("providers", "tools"):
        known = frozenset(_instances(session.get(section)))
        for name, instance in _instances(plan.get(section)):
            if (name, instance) not in known:
                shown = repr(name)
                if instance is not None:
                    shown += f" with the instance_id {instance!r}"
                yield Problem(section, f"the session has no {shown}; {_REMEDY}")


def _instances(modules: JSONValue) -> Iterator[tuple[str, str | None]]:
    """Yield modules as plans are merged: another instance of one would not have its settings."""
    for entry in as_list(modules):
        name, instance = entry, None
        if isinstance(entry, Mapping):
            name, instance = entry.get("module"), entry.get("instance_id")
        if isinstance(name, str):
            yield name, None if instance is None else str(instance)


def _unknown(
    entry: JSONValue, place: str, keys: Collection[str], settings: Collection[str]
) -> Iterator[Problem]:
    if not isinstance(entry, Mapping):
        yield Problem(place, _REMEDY)
        return
    config = entry.get("config")
    if config is not None and not isinstance(config, Mapping):
        yield Problem(f"{place}.config", _REMEDY)
    named = [key for key in entry if key not in keys]
    named += [f"config.{key}" for key in as_object(config) if key not in settings]
    for key in sorted(named):
        yield Problem(f"{place}.{key}", _REMEDY)
