"""The one way to start a child Python: isolated, in a folder of nobody's, with an environment that is listed.

A Python that is started plainly puts the working directory, or what variables name, before the standard library: a
project's `json.py` or `sitecustomize.py` would run in it. Isolated mode ignores both, and the folder of the user's own
packages. A child that needs installed packages is given the search path of this process, which finds the packages that
are installed for the user, or as editable, where this process finds them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO, Final, TypeAlias

import anyio
from anyio.abc import Process

__all__ = [
    "Stream",
    "open_python",
    "python_argv",
    "python_environment",
    "search_path",
    "start_python",
]

Stream: TypeAlias = int | IO[bytes] | None
"""A handle, a file, or what `subprocess` has for pipes and for nothing; `None` is this process's own."""

NOWHERE: Final = "/"
"""Where a child starts that runs this project's own code: only the system's owner puts files there."""

_VARIABLES: Final = (
    "AMPLIFIER_*",
    "COVERAGE_*",
    "DYLD_*",
    "LD_LIBRARY_PATH",
    "SSL_CERT_*",
    "TMPDIR",
    "XDG_*",
    "*_PROXY",
    "*_proxy",
)
"""What installed packages need beside the ordinary variables: where files and certificates are, and who measures."""


def python_argv(
    program: str, *arguments: str, packages: bool = False, root: str | None = None
) -> tuple[str, ...]:
    """Return the command of a child Python.

    Args:
        program: the path of a file; a function without parameters, as `package.module:function`; or the name of a
            module that is run as `python -m` does.
        arguments: what stands behind it.
        packages: whether it may import installed packages; it has the standard library alone otherwise.
        root: a folder that is searched after the standard library; not together with `packages`.
    """
    flags = ["-I"]
    if not packages:
        flags.append("-S")
    if sys.dont_write_bytecode:
        flags.append("-B")
    if packages:
        change, path = "[:] =", search_path()
    elif root is not None:
        change, path = " +=", [root]
    else:
        return (sys.executable, *flags, program, *arguments)
    boot = f"import json, sys; sys.path{change} json.loads(sys.argv.pop(1)); "
    code = boot + _run(program)
    return (sys.executable, *flags, "-c", code, json.dumps(path), *arguments)


def _run(program: str) -> str:
    if os.path.isabs(program):
        return f"import runpy; runpy.run_path({program!r}, run_name='__main__')"
    module, _, function = program.partition(":")
    if function:
        return f"from {module} import {function}; sys.exit({function}())"
    return f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"


def search_path() -> list[str]:
    """Return where this process imports from; what counts from the working directory is left out."""
    return [folder for folder in sys.path if os.path.isabs(folder)]


def python_environment(
    patterns: Sequence[str] = (),
    added: Mapping[str, str] | None = None,
    *,
    of: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the environment of a child Python that imports installed packages.

    No variable beginning with PYTHON is in it: what the child starts in its turn may not be isolated.

    Args:
        patterns: further names that it needs, with `*` for any characters.
        added: variables with their values.
        of: the environment to take from; default the process's.
    """
    # the keeper's start needs none
    from amplifier_kit.processes.environments import allowed_environment

    taken = allowed_environment((*_VARIABLES, *patterns), added, of=of)
    return {
        name: value for name, value in taken.items() if not name.startswith("PYTHON")
    }


def start_python(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    directory: str = NOWHERE,
    stdin: Stream = subprocess.PIPE,
    stdout: Stream = subprocess.PIPE,
    stderr: Stream = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
    new_session: bool = True,
) -> subprocess.Popen[bytes]:
    """Start a child Python; whoever does waits for its end.

    Args:
        argv: what `python_argv` returned.
        environment: all of its environment; default nothing.
        directory: the absolute path of the folder it starts in: an empty one where foreign code runs.
        stdin: its standard input.
        stdout: its output.
        stderr: its error output.
        pass_fds: handles that it has besides.
        new_session: whether it leads a session of its own, which can be ended together.

    Raises:
        OSError: it cannot be started.
    """
    return subprocess.Popen(
        argv,
        env=dict(environment or {}),
        cwd=directory,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=pass_fds,
        start_new_session=new_session,
    )


async def open_python(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    stderr: Stream = subprocess.DEVNULL,
    new_session: bool = True,
) -> Process:
    """Start a child Python whose input and output are streams; see `start_python`.

    Raises:
        OSError: it cannot be started.
    """
    return await anyio.open_process(
        argv,
        env=dict(environment or {}),
        cwd=NOWHERE,
        stderr=stderr,
        start_new_session=new_session,
    )
