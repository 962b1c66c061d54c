"""Giving what was fetched the layout of one plugin: its manifest, and no part that nobody named."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from amplifier.app.sources.locations import canonical_name
from amplifier_kit.claude_plugins import is_plugin, path_inside
from amplifier_kit.files.documents import read_mapping
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["lay_out", "name_of", "plugin_name"]

_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_NAME: Final = 64

_MANIFEST: Final = ".claude-plugin/plugin.json"
_SKILL: Final = "SKILL.md"
_PARTS: Final = ("commands", "agents", "skills")
_FILES: Final[Mapping[str, str]] = {
    "hooks": "hooks/hooks.json",
    "mcpServers": ".mcp.json",
}
_UNUSED: Final = ("lspServers", "outputStyles", "themes", "monitors")
_COPIED: Final = ("description", "version", *_PARTS, *_FILES)
"""What of a marketplace's entry is said of the plugin itself."""


def name_of(folder: Path, fallback: str) -> str:
    """Return the name of a plugin: what its manifest says, else another one.

    Raises:
        ConfigError: the manifest cannot be read, or the name can be none.
    """
    named = _manifest(folder).get("name")
    return plugin_name(named if isinstance(named, str) and named else fallback)


def plugin_name(text: str) -> str:
    """Return the name of a folder for a plugin that is called so.

    Raises:
        ConfigError: it can be none.
    """
    # Published names have spaces, too.
    name = canonical_name("-".join(text.split()))
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        problem = f"a name has up to {_LONGEST_NAME} letters, digits and '-'"
        raise ConfigError.of(ascii(text[:80]), problem, subject="name of a plugin")
    return name


def lay_out(folder: Path, name: str, entry: Mapping[str, JSONValue]) -> None:
    """Make a folder a plugin of a name. The function blocks.

    Args:
        folder: what was fetched; it is changed.
        name: the plugin's name.
        entry: what a marketplace says of it; with `strict` false this is all that it has.

    Raises:
        ConfigError: it holds neither a plugin nor skills, or two places say what it has.
        OSError: it cannot be written.
    """
    given = {key: entry[key] for key in _COPIED if key in entry}
    manifest = _manifest(folder)
    if entry.get("strict") is False:
        _remove_unnamed(folder, given)
        manifest = given
    else:
        for key in given:
            if key in manifest and key in (*_PARTS, *_FILES):
                problem = "the marketplace and the plugin's manifest both say it"
                raise ConfigError.of(key, problem, subject=f"plugin {name!r}")
        manifest = {**given, **manifest}
    if "skills" not in manifest and _has_skills_alone(folder):
        manifest["skills"] = "./"
    if not is_plugin(folder) and not any(key in manifest for key in (*_PARTS, *_FILES)):
        problem = "it has no plugin (.claude-plugin/plugin.json), no marketplace and no skill (SKILL.md)"
        unused = ", ".join(key for key in _UNUSED if key in entry or key in manifest)
        if unused:
            problem = f"it has nothing that works here, only {unused}"
        raise ConfigError.of(name, problem, subject="source")
    path = folder / _MANIFEST
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**manifest, "name": name}, indent=2, sort_keys=True))
    # What other plugins of the marketplace are is nothing of this one.
    (path.parent / "marketplace.json").unlink(missing_ok=True)


def _manifest(folder: Path) -> JSONObject:
    path = folder / _MANIFEST
    return dict(read_mapping(path)) if path.is_file() else {}


def _has_skills_alone(folder: Path) -> bool:
    """Tell whether a folder is a skill, or one of skills, and nothing else of a plugin."""
    if (folder / _SKILL).is_file():
        return True
    return not is_plugin(folder) and any(folder.glob(f"*/{_SKILL}"))


def _remove_unnamed(folder: Path, given: Mapping[str, JSONValue]) -> None:
    """Remove the parts that a reader would find in their usual places and that nobody named."""
    for part in _PARTS:
        _prune((folder / part), _named(folder, given.get(part)))
    for key, file in _FILES.items():
        path = folder / file
        if path.resolve() not in _named(folder, given.get(key)):
            path.unlink(missing_ok=True)


def _prune(path: Path, named: set[Path]) -> None:
    real = path.resolve()
    if real in named or not path.exists():
        return
    if path.is_dir() and any(each.is_relative_to(real) for each in named):
        for child in list(path.iterdir()):
            _prune(child, named)
    elif path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _named(folder: Path, value: JSONValue) -> set[Path]:
    listed = value if isinstance(value, list) else [value]
    return {path for each in listed if (path := path_inside(folder, each)) is not None}
