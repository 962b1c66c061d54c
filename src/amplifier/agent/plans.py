"""An agent's plan: the entry of its provider, and how another plan is laid over it."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TypeAlias, cast

from amplifier.agent.models import ModelChoice
from amplifier.agent.modules import ModuleTable
from amplifier.kernel.plans.overlays import merge_plans
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["Plan", "laid_over", "provider_entry", "read_plan", "with_model"]

Plan: TypeAlias = "Mapping[str, JSONValue] | PathLike[str]"
"""A partial mount plan, or a file that has one, in YAML or JSON."""


def read_plan(plan: Plan | None) -> Mapping[str, JSONValue]:
    """Return a partial plan, also from a file."""
    if plan is None or isinstance(plan, Mapping):
        return dict(plan or {})
    # few agents are read from a file, and YAML takes its time to import
    from pathlib import Path

    from amplifier_kit.files.documents import read_mapping

    return read_mapping(Path(plan))


def provider_entry(choice: ModelChoice, table: ModuleTable) -> JSONObject:
    """Return the entry of an agent's provider, whose object is in the table where it has one."""
    if choice.provider is None:
        return {"module": choice.module}
    provider = choice.provider

    async def mount(_coordinator: object, _config: object) -> object:
        return provider

    module = table.add("provider", provider.name, mount)
    # a name of its own: a sub-agent's session has the provider of the agent above as well
    return {"module": module, "instance_id": module}


def with_model(plan: JSONObject, choice: ModelChoice, table: ModuleTable) -> JSONObject:
    """Return a plan in which another model answers, whatever it says of models."""
    changes: JSONObject = {"orchestrator": {"config": {"model": choice.model}}}
    return {**laid_over(plan, changes), "providers": [provider_entry(choice, table)]}


def laid_over(plan: JSONObject, overlay: Mapping[str, JSONValue]) -> JSONObject:
    """Return an agent's plan with another laid over it, which may be one that was exported."""
    merged = cast("JSONObject", merge_plans(plan, overlay))
    # To merging plans these say nothing, and `None` takes a key away; in an agent it says that there is no model.
    for key in ("system", "agents"):
        if key in plan or key in overlay:
            merged[key] = _united(plan.get(key), overlay.get(key))
    return merged


def _united(below: JSONValue, above: JSONValue) -> JSONValue:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return below if above is None else above
    united = {**below}
    for key, value in above.items():
        if isinstance(value, dict):
            united[key] = _united(below.get(key), value)
        else:
            united[key] = value
    return united
