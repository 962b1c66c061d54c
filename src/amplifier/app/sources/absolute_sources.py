"""Making the sources of a plan independent of the file they stand in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from amplifier.app.sources.locations import is_bare_name, path_of
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["anchor_source", "anchor_sources"]


def anchor_sources(plan: JSONObject, base: Path) -> JSONObject:
    """Return a plan whose relative paths under `source` are absolute, those of its agents included.

    Args:
        plan: a mount plan; it is not changed.
        base: the folder of the file in which the plan stands.
    """
    return {section: _section(section, value, base) for section, value in plan.items()}


def anchor_source(source: JSONValue, base: Path) -> JSONValue:
    """Return a source whose path is absolute; a bare name stays, unless a folder of that name is there."""
    if isinstance(source, dict):
        path = source.get("path")
        if isinstance(path, str):
            return {**source, "path": str(base / os.path.expanduser(path))}
        return source
    path = path_of(source)
    # A bare name is a package's, and yet people write a folder beside the plan without
    # `./`.
    if path is None or (is_bare_name(source) and not (base / path).is_dir()):
        return source
    return str(base / path)


def _section(section: str, value: JSONValue, base: Path) -> JSONValue:
    if isinstance(value, list):
        return [_entry(entry, base) for entry in value]
    if not isinstance(value, dict):
        return value
    if section == "agents":
        return {
            name: anchor_sources(agent, base) if isinstance(agent, dict) else agent
            for name, agent in value.items()
        }
    if section != "session":
        return value
    return {
        key: anchor_source(entry, base)
        if key.endswith("_source")
        else _entry(entry, base)
        for key, entry in value.items()
    }


def _entry(entry: JSONValue, base: Path) -> JSONValue:
    if isinstance(entry, Mapping) and "module" in entry and "source" in entry:
        return {**entry, "source": anchor_source(entry["source"], base)}
    return entry
