"""What settings change about a mount plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from amplifier.app.settings.layers import plan_entry
from amplifier.app.settings.schema import SettingsSchema
from amplifier.app.settings.settings import Settings
from amplifier.kernel.plans.overlays import merge_plans, merge_values
from amplifier_kit.open_data import as_list, as_object
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["apply_settings"]

_SINGLES: Final = ("orchestrator", "context")
_LISTS: Final = ("providers", "tools", "hooks")


def apply_settings(plan: Mapping[str, JSONValue], settings: Settings) -> JSONObject:
    """Return a plan with the modules, limits, sources and overrides of the settings; nothing given is changed.

    References to the environment stay as they were written.
    """
    values = settings.values
    overlay: JSONObject = {name: [*_listed(values, name)] for name in _LISTS}
    if limits := values.get("limits"):
        overlay["session"] = {"limits": limits}
    # Merged first, overridden after it: overrides reach the modules that the settings
    # add.
    merged = merge_plans(plan, overlay)
    changed = _overridden(merged, settings.read())
    return {
        # A section that the plan has empty is empty on purpose; one that only the
        # overlay has is noise.
        name: value
        for name, value in changed.items()
        if value != [] or name in plan
    }


def _listed(settings: JSONObject, section: str) -> Iterator[JSONValue]:
    """Yield the modules that the settings add to a section of a plan, as its entries."""
    for holder in ("config", "modules"):
        for entry in as_list(as_object(settings.get(holder)).get(section)):
            named = plan_entry(entry)
            if isinstance(named, dict):
                named = {
                    key: value for key, value in named.items() if value is not None
                }
            yield named


def _overridden(plan: Mapping[str, object], settings: SettingsSchema) -> JSONObject:
    """Lay what the settings say of a module over it, wherever it stands, those of agents included."""
    result: dict[str, object] = dict(plan)
    for section in _LISTS:
        entries = result.get(section)
        if isinstance(entries, list):
            result[section] = [_module(entry, settings) for entry in entries]
    session = result.get("session")
    if isinstance(session, dict):
        result["session"] = {
            name: _module(value, settings) if name in _SINGLES else value
            for name, value in session.items()
        }
    agents = result.get("agents")
    if isinstance(agents, dict):
        result["agents"] = {
            name: _overridden(agent, settings) if isinstance(agent, dict) else agent
            for name, agent in agents.items()
        }
    return result  # type: ignore[return-value]  # plans and settings hold JSON data


def _module(entry: object, settings: SettingsSchema) -> object:
    whole = {"module": entry} if isinstance(entry, str) else entry
    if not isinstance(whole, dict):
        return entry
    name = whole.get("module")
    if not isinstance(name, str):
        return entry
    override = settings.overrides.get(name)
    source = settings.sources.get(name)
    # `overrides` is the more precise of two places that name a source.
    if override is not None and override.source is not None:
        source = override.source
    changed = dict(whole)
    if source is not None:
        changed["source"] = source
    if override is not None and override.config:
        changed["config"] = merge_values(whole.get("config"), dict(override.config))
    # An entry that nothing changes stays a plain id, as its author wrote it.
    return entry if changed == whole else changed
