"""Module sources that are folders: what a plan's `source` names on this machine.

```yaml
tools:
  - module: tool-notes
    source: ./tool-notes
```
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import attrs

from amplifier_sdk.errors import ModuleNotFoundError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["FolderResolver", "FolderSource", "anchor_sources"]


@attrs.frozen(kw_only=True)
class FolderSource:
    """A folder with a module's code: a project, or the package itself."""

    module_id: str
    path: Path

    def resolve(self) -> Path:
        """Return the folder.

        Raises:
            ModuleNotFoundError: there is no such folder.
        """
        if not self.path.is_dir():
            raise ModuleNotFoundError(self.module_id, f"its source {str(self.path)!r} is no folder")
        return self.path


@attrs.frozen
class FolderResolver:
    """Takes sources that are folders, and leaves every other module to what is installed.

    Args:
        base: what relative paths are relative to.
    """

    base: Path

    def resolve(self, module_id: str, source_hint: object = None) -> FolderSource:
        """Return the source of a module whose `source` is a path, a `file:` URL or a path object.

        Raises:
            ModuleNotFoundError: the plan names no source, or one that is no path.
        """
        path = _path_of(source_hint)
        if path is None:
            what = "the plan names no source" if source_hint is None else f"the source {source_hint!r} is no path"
            raise ModuleNotFoundError(module_id, f"{what}; a folder can be named as 'source'")
        return FolderSource(module_id=module_id, path=self.base / path)


def anchor_sources(plan: JSONObject, base: Path) -> JSONObject:
    """Return a plan whose relative paths under `source` are absolute, those of its agents included.

    Args:
        plan: a mount plan; it is not changed.
        base: the folder of the file in which the plan stands.
    """
    return {section: _anchored_section(section, value, base) for section, value in plan.items()}


def _anchored_section(section: str, value: JSONValue, base: Path) -> JSONValue:
    if isinstance(value, list):
        return [_anchored_entry(entry, base) for entry in value]
    if not isinstance(value, dict):
        return value
    if section == "agents":
        return {
            name: anchor_sources(agent, base) if isinstance(agent, dict) else agent for name, agent in value.items()
        }
    if section != "session":
        return value
    return {
        key: _anchored(entry, base) if key.endswith("_source") else _anchored_entry(entry, base)
        for key, entry in value.items()
    }


def _anchored_entry(entry: JSONValue, base: Path) -> JSONValue:
    if isinstance(entry, Mapping) and "module" in entry and "source" in entry:
        return {**entry, "source": _anchored(entry["source"], base)}
    return entry


def _anchored(source: JSONValue, base: Path) -> JSONValue:
    path = _path_of(source)
    return source if path is None else str(base / path)


def _path_of(source: object) -> Path | None:
    """Return the path that a source is; a URL of another scheme is none."""
    if isinstance(source, os.PathLike):
        return Path(source)
    if not isinstance(source, str) or not source:
        return None
    if source.startswith("file:"):
        return Path(unquote(urlsplit(source).path))
    return None if "://" in source or source.startswith("git@") else Path(source).expanduser()
