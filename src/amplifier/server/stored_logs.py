"""The logs of sessions whose turns ran on another machine: they stand in the store as the last turn left them."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp

import anyio
import attrs
from anyio import to_thread

from amplifier.app.directories import Places
from amplifier.app.store.store import SessionStore as ProjectSessions
from amplifier.server.stores import Tenant
from amplifier_kit.files.atomic import write_private
from amplifier_kit.files.private_append import make_folders
from amplifier_kit.logs.records import LOG_FILE

__all__ = ["log_file", "log_places"]


def log_file(places: Places, session_id: str) -> Path:
    """Return where the log of a session is below some places."""
    return ProjectSessions.of(places).folder(session_id) / LOG_FILE


@asynccontextmanager
async def log_places(tenant: Tenant, session_id: str) -> AsyncIterator[Places]:
    """Yield the places below which the logs of a session, and of all that came of it, are files for a block."""
    if await to_thread.run_sync(log_file(tenant.places, session_id).is_file):
        yield tenant.places
        return
    logs = await _stored_logs(tenant, session_id)
    home = Path(await to_thread.run_sync(mkdtemp))
    places = attrs.evolve(tenant.places, home=home)
    try:
        await to_thread.run_sync(_write_logs, places, logs)
        yield places
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(shutil.rmtree, home)


async def _stored_logs(tenant: Tenant, root: str) -> Mapping[str, bytes]:
    """Return the logs that the store has of a session and of all that came of it, by session."""
    logs: dict[str, bytes] = {}
    family = [root]
    for session_id in family:  # which grows
        documents = await tenant.store.read_documents(session_id)
        if LOG_FILE in documents:
            logs[session_id] = documents[LOG_FILE]
        family += await tenant.store.children(session_id)
    return logs


def _write_logs(places: Places, logs: Mapping[str, bytes]) -> None:
    for session_id, log in logs.items():
        file = log_file(places, session_id)
        make_folders(file.parent)
        write_private(file, log)
