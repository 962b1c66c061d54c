"""The folders of a session: where it works, and where modules store what belongs to it."""

from __future__ import annotations

from pathlib import Path

from amplifier_kit.files.homes import amplifier_home
from amplifier_kit.files.names import folder_name
from amplifier_sdk.contracts import Coordinator

__all__ = ["session_folder", "working_directory"]


def working_directory(coordinator: Coordinator) -> Path:
    """Return the absolute folder in which a session works.

    It is the capability `session.working_dir`, where an application offers it, else the process's.
    """
    # Asked anew each time: an application may say it after the modules are mounted.
    offered = coordinator.get_capability("session.working_dir")
    if isinstance(offered, (str, Path)):
        return Path(offered).absolute()
    return Path.cwd()


def session_folder(coordinator: Coordinator) -> Path:
    """Return the folder for the files of a session; it need not exist.

    It is `sessions/ID` in the capability `session.dir`, where an application offers it, else in `amplifier_home()`.
    """
    offered = coordinator.get_capability("session.dir")
    root = amplifier_home()
    if isinstance(offered, (str, Path)):
        root = Path(offered)
    return root / "sessions" / folder_name(coordinator.session_id)
