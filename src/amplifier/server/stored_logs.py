"""The logs of sessions whose turns ran on another machine: they stand in the store as the last turn left them."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import anyio
import attrs
from anyio import to_thread

from amplifier.app.directories import AppDirs
from amplifier.app.store.store import ProjectSessions
from amplifier.server.stores import Tenant
from amplifier_kit.files import open_flags
from amplifier_kit.files.atomic import write_private
from amplifier_kit.files.names import folder_name
from amplifier_kit.files.private_append import make_folders
from amplifier_kit.logs.records import LOG_FILE
from amplifier_sdk.stores import Lease

__all__ = ["log_file", "log_places", "store_logs", "without_links"]

_MAX_BYTES: Final = 2_000_000


def without_links(path: str, _flags: int) -> int:
    """Open a file, but no link: that may lead to what is another tenant's."""
    return os.open(path, open_flags.READ)


def log_file(dirs: AppDirs, session_id: str) -> Path:
    """Return where the log of a session is below some places."""
    return ProjectSessions.of(dirs).folder(session_id) / LOG_FILE


@asynccontextmanager
async def log_places(tenant: Tenant, session_id: str) -> AsyncIterator[AppDirs]:
    """Yield the places below which the logs of a session, and of all that came of it, are files for a block."""
    if await to_thread.run_sync(log_file(tenant.dirs, session_id).is_file):
        yield tenant.dirs
        return
    logs = await _stored_logs(tenant, session_id)
    home = Path(await to_thread.run_sync(mkdtemp))
    dirs = attrs.evolve(tenant.dirs, home=home)
    try:
        await to_thread.run_sync(_write_logs, dirs, logs)
        yield dirs
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(shutil.rmtree, home)


async def store_logs(tenant: Tenant, lease: Lease) -> None:
    """Store the logs of a session and of all that came of it, as far as they are files of this machine."""
    documents = await tenant.store.read_documents(lease.session_id)
    for session_id in await _family(tenant, lease.session_id):
        file, name = (
            log_file(tenant.dirs, session_id),
            _document(lease.session_id, session_id),
        )
        log = await to_thread.run_sync(_end_of, file)
        if log and documents.get(name) != log:
            await tenant.store.write_document(lease, name, log)


async def _stored_logs(tenant: Tenant, root: str) -> Mapping[str, bytes]:
    """Return the logs that the store has of a session and of all that came of it, by session."""
    documents = await tenant.store.read_documents(root)
    family = await _family(tenant, root)
    names = {session_id: _document(root, session_id) for session_id in family}
    return {
        session_id: documents[name]
        for session_id, name in names.items()
        if name in documents
    }


async def _family(tenant: Tenant, root: str) -> list[str]:
    family = [root]
    for session_id in family:  # which grows
        family += await tenant.store.children(session_id)
    return family


def _document(root: str, session_id: str) -> str:
    """Return the document of a root session that is the log of one of its family: whoever has its lease writes all."""
    if session_id == root:
        return LOG_FILE
    return f"{folder_name(session_id)}.{LOG_FILE}"


def _end_of(file: Path) -> bytes:
    """Return the last whole records of a log; nothing where there is none."""
    try:
        with open(file, "rb", opener=without_links) as stream:
            begin = max(0, stream.seek(0, os.SEEK_END) - _MAX_BYTES)
            stream.seek(begin)
            content = stream.read()
    except OSError:
        return b""
    return content if not begin else content.partition(b"\n")[2]


def _write_logs(dirs: AppDirs, logs: Mapping[str, bytes]) -> None:
    for session_id, log in logs.items():
        file = log_file(dirs, session_id)
        make_folders(file.parent)
        write_private(file, log)
