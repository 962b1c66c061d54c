"""Choosing the profile or bundle of new sessions."""

from __future__ import annotations

import os
from pathlib import Path

import attrs

from amplifier.app.base_plans import PlanOptions
from amplifier.app.directories import Places
from amplifier.app.profiles.selection import BUNDLE, active_profile
from amplifier.app.session_plan import compose
from amplifier.app.settings.layers import Key
from amplifier.app.settings.settings import load_settings
from amplifier.app.settings_changes import change, revise
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Choice", "use_bundle", "use_profile"]


@attrs.frozen(kw_only=True)
class Choice:
    """What was chosen.

    Args:
        name: the profile or bundle; a path is absolute.
        path: the settings file that says so.
        holds: false where a stronger scope chooses otherwise here.
    """

    name: str
    path: Path
    holds: bool


def use_profile(name: str, scope: str, places: Places) -> Choice:
    """Use a profile for new sessions, in place of a bundle that the same scope chose; the function blocks.

    Raises:
        ConfigError: it is not sound; nothing has changed.
        AmplifierError: the scope has no file here.
        OSError: the file cannot be written.
    """
    name = _absolute(name, places)
    compose(PlanOptions(profile=name), places, fill=False)
    chosen: list[tuple[Key, JSONValue]] = [
        (("bundle", "active"), None),
        (("profile", "active"), name),
    ]
    return _chosen(name, revise(scope, lambda _: chosen, places), name, places)


def use_bundle(name: str, scope: str, places: Places) -> Choice:
    """Use a bundle for new sessions, in place of a profile; the function blocks.

    Raises:
        ConfigError: it is not sound; nothing has changed.
        AmplifierError: the scope has no file here.
        OSError: the file cannot be written.
    """
    name = _absolute(name, places)
    compose(PlanOptions(profile=f"{BUNDLE}{name}"), places, fill=False)
    return _chosen(
        name,
        change(scope, ("bundle", "active"), name, places),
        f"{BUNDLE}{name}",
        places,
    )


def _absolute(name: str, places: Places) -> str:
    """Return a name that means the same wherever a session begins."""
    if not name.startswith((".", "~")):
        return name
    return os.path.normpath(places.working_dir / os.path.expanduser(name))


def _chosen(name: str, path: Path, active: str, places: Places) -> Choice:
    return Choice(
        name=name, path=path, holds=active_profile(load_settings(places)) == active
    )
