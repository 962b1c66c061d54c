"""The plugins in a person's own folder: those that they put there, and those that they agreed to, as they were then.

What was fetched from elsewhere is noted in the trust store, with every file of it. Whoever reads a plugin asks here
first, so that nothing of it runs that nobody saw.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.trust import TrustDecision, TrustStore

__all__ = [
    "OwnPlugin",
    "evaluate_plugin",
    "lost_plugins",
    "own_plugins",
    "plugin_refusal",
]

_KIND: Final = "plugins"


@attrs.frozen(kw_only=True)
class OwnPlugin:
    """A plugin folder of the person's.

    Args:
        folder: where it is.
        refusal: why it may not be used, and what helps; empty where it may.
    """

    folder: Path
    refusal: str = ""


def own_plugins() -> list[OwnPlugin]:
    """Return the folders in `plugins` of the person's own folder, sorted by name; blocks.

    Raises:
        OSError: the folder, or what was agreed to, cannot be read.
        ValueError: what was agreed to is damaged.
    """
    folder = amplifier_home() / "plugins"
    if not folder.is_dir():
        return []
    # A name with a dot is no plugin's: what is being installed, or was put aside, is
    # called so.
    found = (
        entry
        for entry in sorted(folder.iterdir())
        if entry.is_dir() and not entry.name.startswith(".")
    )
    return [OwnPlugin(folder=entry, refusal=plugin_refusal(entry)) for entry in found]


def lost_plugins() -> list[str]:
    """Return the names of plugins that a person agreed to and that are gone; blocks.

    Raises:
        OSError: what was agreed to cannot be read.
        ValueError: it is damaged.
    """
    home = os.path.realpath(amplifier_home() / "plugins")
    return [
        os.path.basename(grant.folder)
        for grant in TrustStore.in_home().list()
        if grant.kind == _KIND
        and os.path.dirname(grant.folder) == home
        and not os.path.isdir(grant.folder)
    ]


def evaluate_plugin(folder: Path, store: TrustStore) -> TrustDecision:
    """Evaluate a plugin folder with every file in it; blocks.

    Args:
        folder: the plugin's folder.
        store: what was agreed to.
    """
    return store.require(folder, _KIND, sorted(os.listdir(folder)))


def plugin_refusal(folder: Path) -> str:
    """Say why a plugin folder is not what the person agreed to, and what helps; blocks.

    Nothing is said of one that they put there themselves.

    Args:
        folder: the plugin's folder.

    Raises:
        OSError: what was agreed to cannot be read.
        ValueError: it is damaged.
    """
    store = TrustStore.in_home()
    if _KIND not in store.of_folder(folder):
        return ""
    decision = evaluate_plugin(folder, store)
    # An empty folder has nothing to trust, and yet is not what was agreed to.
    if decision.trusted and decision.contents:
        return ""
    reason = decision.reason or "its files are gone"
    return (
        f"the plugin {folder.name} is not what you agreed to ({reason});"
        f" run 'amplifier plugin update {folder.name}', or 'amplifier plugin remove {folder.name}'"
    )
