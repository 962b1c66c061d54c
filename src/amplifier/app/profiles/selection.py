"""The name of the profile or bundle that new sessions are made of."""

from __future__ import annotations

from typing import Final

from amplifier.app.settings.layers import SCOPES, Key
from amplifier.app.settings.settings import Settings

__all__ = ["BUNDLE", "active_bundle", "active_profile", "as_bundle"]

BUNDLE: Final = "bundle:"
"""How the name of a profile begins that is a bundle's."""


def as_bundle(name: str) -> str:
    """Return the name of a bundle as that of a profile."""
    return f"{BUNDLE}{name.removeprefix(BUNDLE)}"


def active_profile(settings: Settings) -> str | None:
    """Return the profile of new sessions, or `bundle:` and the bundle; `None` where none is chosen.

    Of an active profile and an active bundle the one of the stronger scope counts, in one scope the bundle.
    """
    chosen = settings.read()
    bundle, profile = chosen.bundle.active, chosen.profile.active
    # The scope decides first: a project's profile is meant for it, whatever bundle the
    # person uses elsewhere.
    if bundle is not None and (
        profile is None or _rank(settings, _BUNDLE_KEY) <= _rank(settings, _PROFILE_KEY)
    ):
        return as_bundle(bundle)
    return profile or chosen.profile.default


def active_bundle(settings: Settings) -> str | None:
    """Return the bundle of new sessions; `None` where they have none, or a profile counts."""
    name = active_profile(settings)
    if name is not None and name.startswith(BUNDLE):
        return name.removeprefix(BUNDLE)
    return None


def _rank(settings: Settings, key: Key) -> int:
    return SCOPES.index(settings.explain(key)[0].scope)


_BUNDLE_KEY: Final[Key] = ("bundle", "active")
_PROFILE_KEY: Final[Key] = ("profile", "active")
