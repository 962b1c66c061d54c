"""Names and versions, compared as package indexes compare them."""

from __future__ import annotations

import re

from amplifier_kit.installation import install_command
from amplifier_sdk.errors import AmplifierError

__all__ = ["canonical_name", "satisfies"]


def canonical_name(name: str) -> str:
    """Return the one form of a name: lower case, with single dashes."""
    return re.sub(r"[-_.]+", "-", name).lower()


def satisfies(version: str, versions: str) -> bool:
    """Tell whether a version is among some, such as `>=1.2,<2`; nothing and `*` stand for all.

    Raises:
        ValueError: the versions, or the version, cannot be read.
        AmplifierError: the package that compares versions is not installed.
    """
    if versions.strip() in ("", "*"):
        return True
    try:
        # an extra, and only where somebody asks for versions
        from packaging.specifiers import SpecifierSet
        from packaging.version import Version
    except ImportError as error:
        raise AmplifierError(
            f"To compare versions, packaging is needed: {install_command('amplifier[cli]')}"
        ) from error
    # What is installed already was somebody's choice, a prerelease as well.
    return SpecifierSet(versions).contains(Version(version), prereleases=True)
