"""The folders of the person and of the project, as the commands find them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amplifier.app.directories import AppDirs
    from amplifier.app.settings.secrets import SecretStore

__all__ = ["find_app_dirs", "find_secrets"]


def find_app_dirs() -> AppDirs:
    """Find them when a command runs: help and wrong usage need none."""
    from amplifier.app.directories import AppDirs

    return AppDirs.find()


def find_secrets() -> SecretStore:
    """Find the keys and tokens that the person keeps, likewise."""
    from amplifier.app.settings.secrets import SecretStore

    return SecretStore.of(find_app_dirs())
