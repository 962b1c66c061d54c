"""The folders of the person and of the project, as the commands find them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amplifier.app.directories import Places
    from amplifier.app.settings.secrets import SecretStore

__all__ = ["find_places", "find_secrets"]


def find_places() -> Places:
    """Find them when a command runs: help and wrong usage need none."""
    from amplifier.app.directories import Places

    return Places.find()


def find_secrets() -> SecretStore:
    """Find the keys and tokens that the person keeps, likewise."""
    from amplifier.app.settings.secrets import SecretStore

    return SecretStore.of(find_places())
