"""The ground that everything stands on: Python, the platform, extras, the person's own folder, the sandbox."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from amplifier.app.directories import AppDirs
from amplifier.app.doctor.findings import DoctorFinding, broken, fine, warning
from amplifier_kit.installation import install_command
from amplifier_kit.processes import SandboxName

__all__ = ["EXTRAS", "check_extras", "check_home", "check_platform", "check_sandbox"]

EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "cli": (
        "filelock",
        "packaging",
        "platformdirs",
        "prompt_toolkit",
        "rich",
        "ruamel.yaml",
    ),
    "compat": ("pydantic",),
    "http": ("httpx2", "tenacity"),
    "keyring": ("keyring",),
    "locks": ("filelock", "platformdirs"),
    "prices": ("genai_prices",),
    "server": ("hypercorn", "starlette"),
    "shell": ("tree_sitter", "tree_sitter_bash"),
    "tokens": ("bpe_openai",),
    "trio": ("trio",),
}
"""The extras that bring libraries, and what each must make importable."""

_PYTHON: Final = (3, 11)
_SCARCE: Final = 200_000_000
_NONE: Final = 20_000_000
"""Bytes of the disk: below the first there is a warning, below the second nothing can be stored."""


def check_platform() -> Iterator[DoctorFinding]:
    """Look at Python and the operating system."""
    version = platform.python_version()
    if sys.version_info[:2] < _PYTHON:
        remedy = f"install Python {'.'.join(map(str, _PYTHON))} or later"
        yield broken("python", f"Python {version} is too old", remedy)
    else:
        yield fine("python", f"Python {version} at {sys.executable}")
    if sys.platform.startswith(("linux", "darwin")):
        yield fine("platform", platform.platform())
    else:
        message = f"{platform.platform()} is not supported: tools refuse paths here"
        yield warning("platform", message, "use Linux or macOS")


def check_extras() -> Iterator[DoctorFinding]:
    """Check which extras are installed; without `cli` sessions are not stored and nothing can be changed."""
    missing = {
        extra: [name for name in names if not _is_there(name)]
        for extra, names in EXTRAS.items()
    }
    if lacking := missing["cli"]:
        message = f"the command line lacks {', '.join(lacking)}: sessions are not stored, settings not changed"
        yield warning("extras", message, install_command("amplifier[cli]"))
    there = ", ".join(extra for extra, names in missing.items() if not names)
    absent = ", ".join(extra for extra, names in missing.items() if names)
    message = f"installed: {there or 'none'}"
    if absent:
        message += f"; not installed: {absent}"
    yield fine("extras", message)


def check_home(dirs: AppDirs) -> Iterator[DoctorFinding]:
    """Look at the person's own folder: whether it can be written, who else may, and how much room there is."""
    home = dirs.home
    # A home that was not made yet is checked where it would be made.
    standing = next(folder for folder in (home, *home.parents) if folder.exists())
    if not standing.is_dir() or not os.access(standing, os.W_OK | os.X_OK):
        remedy = f"chmod u+rwx {standing}, or set AMPLIFIER_HOME"
        yield broken("home", f"{standing} cannot be written", remedy)
    elif standing != home:
        yield fine("home", f"{home} will be made when something is stored")
    else:
        yield _reported_mode(home)
    free = shutil.disk_usage(standing).free
    room = f"{free // 1_000_000} MB are free at {standing}"
    if free < _NONE:
        yield broken("space", room, "make room: nothing can be stored")
    elif free < _SCARCE:
        yield warning("space", room, "make room soon")
    else:
        yield fine("space", room)


def check_sandbox(found: SandboxName) -> DoctorFinding:
    """Say in what commands of `tool-bash` run, by what was found."""
    if found == "bubblewrap":
        return fine("sandbox", "commands of tool-bash run in bubblewrap")
    if found == "landlock":
        message = (
            "commands of tool-bash run under Landlock; bubblewrap would protect more"
        )
        return fine("sandbox", message)
    message = "commands of tool-bash run without a sandbox; its rules alone hold them"
    remedy = "install bubblewrap (apt install bubblewrap), or use a Linux kernel with Landlock"
    return warning("sandbox", message, remedy)


def _reported_mode(home: Path) -> DoctorFinding:
    status = home.stat()
    mode = stat.S_IMODE(status.st_mode)
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        remedy = "set AMPLIFIER_HOME to a folder of your own"
        return broken("home", f"{home} belongs to somebody else", remedy)
    shown, remedy = f"{home} (mode {mode:04o})", f"chmod 700 {home}"
    if mode & 0o022:
        return broken("home", f"others may write in {shown}", remedy)
    if mode & 0o055:
        return warning("home", f"others may look into {shown}", remedy)
    return fine("home", shown)


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ImportError:  # the package above it is not there
        return False
