"""The environment that a child process is given: what is listed, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from amplifier_kit.processes.programs import safe_path

__all__ = ["ORDINARY_VARIABLES", "allowed_environment"]

ORDINARY_VARIABLES: Final = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "VIRTUAL_ENV",
)
"""What programs need to find each other and to speak the person's language; none of it is secret."""


_NAMES_OF_OTHERS: Final = os.path.abspath(
    os.path.join(__file__, *[os.pardir] * 3, "amplifier", "compat", "children")
)
"""The folder through which child Pythons import the names of another kernel, once this process provides them."""


def allowed_environment(
    patterns: Sequence[str] = (),
    added: Mapping[str, str] | None = None,
    *,
    of: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the ordinary variables, those whose names match a pattern, and some that are added.

    The search path loses what counts from the working directory: a project would choose the programs. Of `PYTHONPATH`
    one folder of our own stays, where modules of another kernel are in use: what they start may import its names.

    Args:
        patterns: names, with `*` for any characters.
        added: variables with their values; they count before the others.
        of: the environment to take from; default the process's.
    """
    listed = (*ORDINARY_VARIABLES, *patterns)
    source = os.environ if of is None else of
    retained = {
        name: value
        for name, value in source.items()
        if any(fnmatchcase(name, entry) for entry in listed)
    }
    path = safe_path(retained.get("PATH", "")) or os.defpath
    if _NAMES_OF_OTHERS in source.get("PYTHONPATH", "").split(os.pathsep):
        retained.setdefault("PYTHONPATH", _NAMES_OF_OTHERS)
    return {**retained, "PATH": path, **(added or {})}
