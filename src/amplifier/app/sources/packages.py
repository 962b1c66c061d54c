"""Packages as they are installed: what a pin of one would say."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from amplifier.app.sources.locations import PackageLocation
from amplifier.app.sources.pins import Pin
from amplifier.app.sources.requirements import satisfies

__all__ = ["find_distribution", "look_at_package"]


def look_at_package(location: PackageLocation) -> Pin | None:
    """Return the pin of a package as it is installed; `None` where none is whose version will do."""
    found = find_distribution(location)
    if found is None:
        return None
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Pin(
        source=str(location), version=found.version, hash=_digest(found), fetched_at=now
    )


def find_distribution(location: PackageLocation) -> Distribution | None:
    """Find a distribution whose version the source allows."""
    try:
        found = distribution(location.name)
    except PackageNotFoundError:
        return None
    if satisfies(found.version, location.versions):
        return found
    return None


def _digest(found: Distribution) -> str:
    """Return the digest of the list of files with the digest of each, which installers write."""
    record = found.read_text("RECORD") or found.read_text("METADATA") or ""
    # Compiled Python comes and goes; the source that it is made of is listed beside it.
    lines = sorted(line for line in record.splitlines() if "__pycache__" not in line)
    return f"sha256:{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()}"
