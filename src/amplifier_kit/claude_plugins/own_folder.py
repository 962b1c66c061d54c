"""The plugins in a person's own folder: those that they put there, and those that they agreed to, as they were then.

What was fetched from elsewhere is noted in the trust store, with every file of it. Whoever reads a plugin asks here
first, so that nothing of it runs that nobody saw.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.trust import TrustDecision, TrustStore
from amplifier_kit.trust.fingerprints import Code

__all__ = [
    "OwnPlugin",
    "evaluate_plugin",
    "evaluate_trust",
    "lost_plugins",
    "own_plugins",
    "write_copies",
]

_KIND: Final = "plugins"
_COMPILED: Final = "__pycache__"


@attrs.frozen(kw_only=True)
class OwnPlugin:
    """A plugin folder of the person's.

    Args:
        folder: where it is.
        refusal: why it may not be used, and what helps; empty where it may.
        contents: its files as the person agreed to them, by their paths in it; `None` where they put it there
            themselves. What runs is written from these, since a program may leave files beside it.
    """

    folder: Path
    refusal: str = ""
    contents: Mapping[str, bytes] | None = attrs.field(default=None, repr=False)


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
    return [evaluate_trust(entry) for entry in found]


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
    """Evaluate a plugin folder with every file in it, but for what Python compiled; blocks.

    Args:
        folder: the plugin's folder.
        store: what was agreed to; what of it is gone is a change.

    Raises:
        OSError: the folder, or what was agreed to, cannot be read.
        ValueError: what was agreed to is damaged.
    """
    names = {name for name in os.listdir(folder) if name != _COMPILED}
    grant = store.of_folder(folder).get(_KIND)
    if grant is not None:
        names |= {item.partition("/")[0] for item in grant.items}
    return store.require(folder, _KIND, [Code(name) for name in sorted(names)])


def evaluate_trust(folder: Path) -> OwnPlugin:
    """Say whether a plugin folder of the person's may be used; blocks.

    Args:
        folder: the plugin's folder.

    Raises:
        OSError: what was agreed to cannot be read.
        ValueError: it is damaged.
    """
    store = TrustStore.in_home()
    # A link would have the agreements of the folder to which it leads, and that may have none.
    place = os.path.join(os.path.realpath(folder.parent), folder.name)
    agreed = {grant.folder for grant in store.list() if grant.kind == _KIND}
    if place not in agreed and os.path.realpath(folder) not in agreed:
        return OwnPlugin(folder=folder)
    if folder.is_symlink():
        reason = "a link stands in its place"
    else:
        decision = evaluate_plugin(folder, store)
        # An empty folder has nothing to trust, and yet is not what was agreed to.
        if decision.trusted and decision.contents:
            return OwnPlugin(folder=folder, contents=decision.contents)
        reason = decision.reason or "its files are gone"
    remedy = f"run 'amplifier plugin update {folder.name}', or 'amplifier plugin remove {folder.name}'"
    refusal = f"it is not what you agreed to ({reason}); {remedy}"
    return OwnPlugin(folder=folder, refusal=refusal)


def write_copies(folder: Path, contents: Mapping[str, bytes]) -> dict[str, str]:
    """Write files for their owner alone, to be read and run; blocks.

    Args:
        folder: where they go; none of them is there yet.
        contents: what they hold, by their paths in it.

    Returns:
        Where each of them is.

    Raises:
        OSError: one cannot be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(path, flags, 0o700), "wb") as file:
            file.write(content)
    return {name: str(folder / name) for name in contents}
