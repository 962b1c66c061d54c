"""Writing a person's and a project's files, and trusting the latter."""

from __future__ import annotations

from pathlib import Path

from amplifier.app.places import Places
from amplifier_sdk.kit.trust import PROJECT_FILES, TrustStore

__all__ = ["trust", "write"]


def trust(places: Places, kind: str) -> None:
    """Trust the project's files of a kind as they are now."""
    store = TrustStore.in_home()
    store.grant(store.require(places.root, kind, PROJECT_FILES[kind]))


def write(path: Path, text: str) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
