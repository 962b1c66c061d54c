"""Rules on tools that a person chose for a session: they join those of `hooks-approval`; the strictest counts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from amplifier.app.plan_entries import entries
from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.errors import ConfigError, Problem, did_you_mean
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = [
    "allow_tools",
    "deny_tools",
    "require_named_tools",
    "without_allowances",
    "without_denials",
]

_MODULE: Final = "hooks-approval"
_DENIED: Final = "--deny-tool"
_ALLOWED: Final = "--allow-tool"


def deny_tools(plan: Mapping[str, JSONValue], names: Sequence[str]) -> JSONObject:
    """Return a plan in which these tools are denied, whatever else allows them.

    Args:
        plan: the plan; it is not changed.
        names: names of tools, with `*` for any characters.
    """
    return _with_rules(plan, "deny", _DENIED, names)


def allow_tools(plan: Mapping[str, JSONValue], names: Sequence[str]) -> JSONObject:
    """Return a plan in which these tools run unasked; what other rules deny or ask about stays so.

    Args:
        plan: the plan; it is not changed.
        names: names of tools, with `*` for any characters.
    """
    return _with_rules(plan, "allow", _ALLOWED, names)


def without_denials(plan: Mapping[str, JSONValue]) -> JSONObject:
    """Return a plan without what `deny_tools` added, to compare it with one that a person chose nothing of."""
    return _without(plan, _is_denial)


def without_allowances(
    plan: Mapping[str, JSONValue], names: Sequence[str]
) -> JSONObject:
    """Return a plan without what `allow_tools` added, to compare it with one that was recorded.

    Args:
        plan: the plan; it is not changed.
        names: those that were given to `allow_tools`.
    """
    allowed = _rules("allow", _ALLOWED, names)
    return _without(plan, lambda rule: rule in allowed)


def require_named_tools(names: Sequence[str], mounted: Collection[str]) -> None:
    """Refuse names that no tool has: a rule about nothing would guard nothing.

    Args:
        names: names of tools, with `*` for any characters.
        mounted: the tools of the session.

    Raises:
        ConfigError: names each of them and the nearest tool.
    """
    problems = [
        Problem(
            f"tool {name!r}",
            f"no such tool is mounted; mounted: {', '.join(sorted(mounted)) or 'none'}"
            f"{did_you_mean(name, sorted(mounted))}",
        )
        for name in names
        if not any(fnmatchcase(tool, name) for tool in mounted)
    ]
    if problems:
        raise ConfigError(
            problems, subject=f"choice of tools by {_ALLOWED} and {_DENIED}"
        )


def _with_rules(
    plan: Mapping[str, JSONValue], decision: str, option: str, names: Sequence[str]
) -> JSONObject:
    if not names:
        return dict(plan)
    hooks = entries(plan, "hooks")
    if not any(entry.get("module") == _MODULE for entry in hooks):
        # Asks as the session would without it, so that the rules are all that it adds.
        asks = as_object(plan.get("session")).get("ask_before_changes") is True
        otherwise = "ask" if asks else "allow"
        hooks.append({"module": _MODULE, "config": {"otherwise": otherwise}})
    changed: list[JSONValue] = [
        _with_more(entry, _rules(decision, option, names))
        if entry.get("module") == _MODULE
        else entry
        for entry in hooks
    ]
    return {**plan, "hooks": changed}


def _with_more(entry: JSONObject, rules: Sequence[JSONObject]) -> JSONObject:
    config = as_object(entry.get("config"))
    known = as_list(config.get("rules"))
    added = [rule for rule in rules if rule not in known]
    return {**entry, "config": {**config, "rules": [*known, *added]}}


def _rules(decision: str, option: str, names: Sequence[str]) -> list[JSONObject]:
    return [
        {"decision": decision, "tools": [name], "reason": f"{option} {name}"}
        for name in names
    ]


def _without(
    plan: Mapping[str, JSONValue], is_chosen: Callable[[JSONValue], bool]
) -> JSONObject:
    hooks: list[JSONValue] = []
    for entry in entries(plan, "hooks"):
        config = as_object(entry.get("config"))
        if entry.get("module") != _MODULE or "rules" not in config:
            hooks.append(entry)
            continue
        left = [rule for rule in as_list(config.pop("rules")) if not is_chosen(rule)]
        if left:
            config["rules"] = left
        hooks.append({**entry, "config": config})
    if "hooks" in plan:
        return {**plan, "hooks": hooks}
    return dict(plan)


def _is_denial(rule: JSONValue) -> bool:
    reason = as_object(rule).get("reason")
    return isinstance(reason, str) and reason.startswith(f"{_DENIED} ")
