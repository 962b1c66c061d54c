"""Checks of what is stored: sessions, trust, secrets."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from amplifier.app.directories import AppDirs
from amplifier.app.doctor.findings import DoctorFinding, broken, fine, warning
from amplifier.app.projects.files import ProjectFiles
from amplifier.app.settings.secrets import SecretStore
from amplifier.app.store.overview import SessionOverview
from amplifier.app.store.states import holder_of
from amplifier.app.store.store import ProjectSessions
from amplifier_kit.trust import TrustStore
from amplifier_sdk.errors import AmplifierError

__all__ = ["check_secrets", "check_sessions", "check_trust"]


def check_sessions(dirs: AppDirs) -> Iterator[DoctorFinding]:
    """Look at the sessions of all projects: who may read them, which are damaged, which are open."""
    stores = ProjectSessions.every(dirs)
    # Texts: there may be 100,000, and a path object costs as much as a look at its file.
    folders = [
        f"{root}/{name}"
        for root in [str(store.sessions) for store in stores]
        if _is_open(root)
        for name in os.listdir(root)
    ]
    # Bytes that a disk lost change no time of a file: here they are to be found.
    overviews = [SessionOverview.of(store.sessions, verify=True) for store in stores]
    damaged = [found for overview in overviews for found in overview.damaged]
    for folder, problem in damaged:
        remedy = f"amplifier session repair {folder.name} --all-projects"
        yield warning("sessions", f"{folder} is damaged: {problem}", remedy)
    readable = [
        folder for folder in folders if stat.S_IMODE(os.stat(folder).st_mode) & 0o077
    ]
    if readable:
        message = f"others may look into {len(readable)} of them, such as {readable[0]}"
        yield warning("sessions", message, f"chmod -R go= {dirs.home / 'projects'}")
    held = [holder for folder in folders if (holder := _holder(folder)) is not None]
    for text in held:
        yield fine("sessions", text)
    sound = sum(len(overview.rows) for overview in overviews)
    message = f"{sound} sound, {len(held)} of them open, {len(damaged)} damaged"
    yield fine("sessions", message)


def check_trust(dirs: AppDirs, project: ProjectFiles) -> Iterator[DoctorFinding]:
    """Look at what of the project's folder is withheld, and whether what was trusted can be read.

    Args:
        dirs: where the project is.
        project: which of its files may be used.
    """
    try:
        grants = TrustStore.in_home().list()
    except (OSError, ValueError) as error:
        message = f"what was trusted cannot be read: {error}"
        yield broken("trust", message, "repair or remove that file")
        return
    for decision in project.withheld:
        message = f"the {decision.kind} of {dirs.root} are left out: {decision.reason}"
        yield warning("trust", message, "look at them and run 'amplifier trust'")
    folders = {grant.folder for grant in grants}
    yield fine("trust", f"{len(folders)} folders are trusted")


def check_secrets(dirs: AppDirs) -> Iterator[DoctorFinding]:
    """Check whether the stored secrets can be read; none is shown."""
    store = SecretStore.of(dirs)
    try:
        names = store.names()
        # Each is fetched, since the keyring may have lost one that the list still names.
        lost = [name for name in names if not store.get(name)]
    except (OSError, ValueError, AmplifierError) as error:
        remedy = "set them again: amplifier config secret set"
        yield broken("secrets", f"they cannot be read: {error}", remedy)
        return
    for name in lost:
        remedy = f"amplifier config secret set {name}"
        yield warning("secrets", f"{name} is named and not there", remedy)
    message = f"{len(names)} are stored"
    if names:
        message += f": {', '.join(sorted(names))}"
    yield fine("secrets", message)


def _is_open(folder: str) -> bool:
    return os.access(folder, os.R_OK | os.X_OK)


def _holder(folder: str) -> str | None:
    """Say who has a session open, or that nobody can know; `None` for nobody."""
    name = os.path.basename(folder)
    try:
        holder = holder_of(folder)
    except OSError as error:
        # That of another user is found by who may read it.
        if not _is_open(folder):
            return None
        return f"{name} cannot be locked: {error}"
    if holder is None:
        return None
    return f"{name} is open in {holder}"
