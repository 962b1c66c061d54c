"""Writing a person's and a project's files, and trusting the latter."""

from __future__ import annotations

from pathlib import Path

from amplifier.app.collections.folders import CollectionLibrary
from amplifier.app.directories import AppDirs
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.sessions.composition import Composition
from amplifier_kit.trust import TrustStore, evaluate_project
from amplifier_sdk.jsontypes import JSONObject

__all__ = ["composed", "trust", "write"]


def composed(plan: JSONObject, working_dir: Path) -> Composition:
    """Say that a session is made of a plan alone."""
    dirs = AppDirs.find(working_dir)
    project = ProjectFiles(dirs)
    return Composition(
        plan=plan,
        dirs=dirs,
        project=project,
        collections=CollectionLibrary(dirs, project),
    )


def trust(dirs: AppDirs, kind: str) -> None:
    """Trust the project's files of a kind as they are now."""
    store = TrustStore.in_home()
    store.grant(evaluate_project(store, dirs.root, kind))


def write(path: Path, text: str) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
