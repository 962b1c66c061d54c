"""Choosing the profile or bundle of new sessions."""

from __future__ import annotations

import os
from pathlib import Path

import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.app.profiles.selection import BUNDLE, active_profile
from amplifier.app.sessions.composition import compose
from amplifier.app.settings.changes import revise
from amplifier.app.settings.layers import Key
from amplifier.app.settings.settings import load_settings
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["ProfileChoice", "activate"]


@attrs.frozen(kw_only=True)
class ProfileChoice:
    """What was chosen.

    Args:
        name: the profile or bundle; a path is absolute.
        path: the settings file that says so.
        holds: false where a stronger scope chooses otherwise here.
    """

    name: str
    path: Path
    holds: bool


def activate(name: str, scope: str, dirs: AppDirs) -> ProfileChoice:
    """Use a profile or bundle for new sessions; the function blocks.

    Args:
        name: the profile, or `bundle:` and the bundle.
        scope: whose settings are changed: what it chose before is replaced.
        dirs: where the files stand.

    Raises:
        ConfigError: it is not sound; nothing has changed.
        AmplifierError: the scope has no file here.
        OSError: the file cannot be written.
    """
    prefix = ""
    if name.startswith(BUNDLE):
        prefix = BUNDLE
    name = name.removeprefix(BUNDLE)
    if name.startswith((".", "~")):
        # The name must mean the same wherever a session begins.
        name = os.path.normpath(dirs.working_dir / os.path.expanduser(name))
    compose(PlanOptions(profile=f"{prefix}{name}"), dirs, fill=False)
    changes: list[tuple[Key, JSONValue]] = [(("bundle", "active"), name)]
    if not prefix:  # a bundle wins over a profile of the same scope
        changes = [(("bundle", "active"), None), (("profile", "active"), name)]
    path = revise(scope, lambda _: changes, dirs)
    holds = active_profile(load_settings(dirs)) == f"{prefix}{name}"
    return ProfileChoice(name=name, path=path, holds=holds)
