"""A plugin that may be used: whose it is, and how its texts reach the model."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.claude_plugins import ClaudePlugin
from amplifier_kit.trust.untrusted import mark_untrusted

__all__ = ["LoadedPlugin"]

_FILE: Final = re.compile(
    r"(?P<folder>\"\$(?:CLAUDE_PROJECT_DIR|\{CLAUDE_PROJECT_DIR\})\"/|"
    r"\$(?:CLAUDE_PROJECT_DIR|\{CLAUDE_PROJECT_DIR\})/)?(?P<path>(?(folder)|(?<![\w/@+$}.-]))[\w.@+-][\w./@+-]*)"
)


@attrs.frozen(kw_only=True)
class LoadedPlugin:
    """A plugin, and where it comes from.

    Args:
        plugin: what was read; its `root` is what runs.
        path: the folder that was named or found.
        is_own: whether it is the person's; otherwise a project brought it, and `root` is a private copy.
        copied: the files of the project that were evaluated, each with the path of its copy.
        contents: what those files held.
    """

    plugin: ClaudePlugin
    path: Path
    is_own: bool
    copied: Mapping[str, str] = attrs.field(factory=dict)
    contents: Mapping[str, bytes] = attrs.field(factory=dict, repr=False)

    @property
    def label(self) -> str:
        """What the plugin is called in messages."""
        return f"plugin {self.plugin.name}"

    @property
    def variables(self) -> dict[str, str]:
        """The variables that its commands are given."""
        return {"CLAUDE_PLUGIN_ROOT": str(self.plugin.root)}

    def command(self, text: str) -> str:
        """Return a shell text as it is run: files of the project that it names are those that were evaluated."""
        if self.copied:
            return _FILE.sub(self._copy_of, text)
        return text

    def copies_in(self, text: str) -> frozenset[str]:
        """Return the files of the project in place of which a shell text, as it is run, names copies."""
        # Normalised, since `./a` and `a` are one file.
        named = (os.path.normpath(found["path"]) for found in _FILE.finditer(text))
        return frozenset(name for name in named if name in self.copied)

    def said(self, text: str, *, by_model: bool = False) -> str:
        """Return what it says as the model reads it: what a project's plugin or a model says is marked."""
        if self.is_own and not by_model:
            return f"[{self.label}] {text}"
        return mark_untrusted(text, self.label.replace(" ", ":"))

    def _copy_of(self, found: re.Match[str]) -> str:
        return self.copied.get(os.path.normpath(found["path"]), found[0])
