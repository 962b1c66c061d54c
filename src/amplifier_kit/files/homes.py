"""Where a person's own files stand."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["amplifier_home"]


def amplifier_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of what belongs to the person on this machine; it need not exist.

    It is `AMPLIFIER_HOME` where that is set, else `.amplifier` in the home folder. A relative path counts from the
    working directory.
    """
    named = environ.get("AMPLIFIER_HOME")
    if named:
        return Path(named).absolute()
    return Path.home() / ".amplifier"
