"""The ladder of sandboxes: bubblewrap, else Landlock, else none; each makes a confined command of a plain one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import anyio
import attrs

from amplifier_kit.processes.commands import Command, Confinement
from amplifier_kit.processes.programs import find_program
from amplifier_kit.processes.trees import run_command
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["SandboxName", "confined", "find_sandbox"]

SandboxName: TypeAlias = Literal["bubblewrap", "landlock", "none"]
"""What may keep a command inside its folders."""

_PROBE_SECONDS: Final = 5.0
_SYSTEM_SOCKETS: Final = ("/run", "/var/run")
_RESOLVER: Final = "/run/systemd/resolve"
_BASE: Final = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
_NAMESPACES: Final = ("--unshare-all", "--die-with-parent", "--cap-drop", "ALL")
_FOUND: Final[dict[str, bool]] = {}


async def find_sandbox(wanted: SandboxName | Literal["auto"] = "auto") -> SandboxName:
    """Return the first sandbox of the ladder that works here; `none` when the wanted one does not.

    Args:
        wanted: one of them, or `auto` for the whole ladder.
    """
    if wanted in ("auto", "bubblewrap") and await _bubblewrap_works():
        return "bubblewrap"
    if wanted in ("auto", "landlock") and _landlock_works():
        return "landlock"
    return "none"


def confined(
    command: Command, confinement: Confinement, sandbox: SandboxName
) -> Command:
    """Return the command as it runs in a sandbox.

    Landlock cannot keep a part of a writable folder as it is: `protected` is bubblewrap's alone. `none` changes
    nothing.

    Args:
        command: what to run.
        confinement: what confines it; for bubblewrap each protected path exists (see `Placeholders`).
        sandbox: one that `find_sandbox` found.
    """
    if sandbox == "bubblewrap":
        program = find_program("bwrap") or "bwrap"
        options = [*_BASE, *_views(confinement), *_NAMESPACES, *_network(confinement)]
        return attrs.evolve(
            command,
            argv=(program, *options, "--chdir", command.directory, "--", *command.argv),
        )
    if sandbox == "landlock":
        restrictions: dict[str, JSONValue] = {
            "writable": [*confinement.writable, *filter(None, [confinement.scratch])],
            "hidden": list(confinement.hidden),
            "shown": list(confinement.shown),
            "network": confinement.network,
        }
        return attrs.evolve(command, restrictions=restrictions)
    return command


def _views(confinement: Confinement) -> Iterator[str]:
    """Yield bubblewrap's options for what is seen of the file system, in the order in which it is laid over."""
    for path in dict.fromkeys(os.path.realpath(path) for path in _SYSTEM_SOCKETS):
        if os.path.isdir(path):
            yield from ("--tmpfs", path)
    if confinement.scratch is not None:
        yield from ("--bind", confinement.scratch, os.path.realpath("/tmp"))  # noqa: S108  # it is replaced, not used
    hidden = [os.path.realpath(path) for path in confinement.hidden]
    around = [
        path
        for path in hidden
        if any(_is_below(root, path) for root in confinement.writable)
    ]
    yield from _hidden(around)  # before what may be written in them
    for path in confinement.writable:
        yield from ("--bind", path, path)
    yield from _protected(confinement)
    yield from _hidden([path for path in hidden if path not in around])
    for path in map(os.path.realpath, confinement.shown):
        if os.path.isdir(path):
            yield from ("--ro-bind", path, path)


def _hidden(paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        if os.path.isdir(path):
            yield from ("--tmpfs", path)
        elif os.path.exists(path):
            yield from ("--ro-bind", os.devnull, path)


def _is_below(path: str, folder: str) -> bool:
    return os.path.realpath(path).startswith(f"{folder.rstrip('/')}/")


def _protected(confinement: Confinement) -> Iterator[str]:
    """Cover the protected paths.

    Each folder above one is bound to itself before, so that none can be renamed and made anew; after, that would
    take the covers away again.
    """
    covered = [
        path
        for path in confinement.protected
        if os.path.exists(path) and not os.path.islink(path)
    ]
    above = {
        folder for path in covered for folder in _between(path, confinement.writable)
    }
    for folder in sorted(above):
        yield from ("--bind", folder, folder)
    for path in sorted(covered):
        yield from ("--ro-bind", path, path)


def _between(path: str, writable: tuple[str, ...]) -> Iterator[str]:
    """Yield the folders above a path that lie in a writable one."""
    folder = os.path.dirname(path)
    while any(folder.startswith(f"{root.rstrip('/')}/") for root in writable):
        yield folder
        folder = os.path.dirname(folder)


def _network(confinement: Confinement) -> Iterator[str]:
    if confinement.network:
        yield "--share-net"
        if os.path.isdir(_RESOLVER):  # where the name servers may be written
            yield from ("--ro-bind", _RESOLVER, _RESOLVER)


async def _bubblewrap_works() -> bool:
    """Try it once in a process: it may be installed and still be refused by the kernel or a container."""
    program = find_program("bwrap")
    if program is None:
        return False
    if program not in _FOUND:
        argv = (
            program,
            *_BASE,
            *_NAMESPACES,
            "--",
            find_program("true") or "/bin/true",
        )
        probe = Command(argv=argv, directory="/", environment={})
        with anyio.CancelScope(shield=True):
            ending = await run_command(
                probe, stdout=len, stderr=len, timeout=_PROBE_SECONDS
            )
        _FOUND[program] = ending.code == 0
    return _FOUND[program]


def _landlock_works() -> bool:
    if sys.platform != "linux":
        return False
    from amplifier_kit.processes._restrictions import landlock_version  # needs ctypes

    return landlock_version() >= 2  # before, files could not be moved between folders
