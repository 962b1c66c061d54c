"""Modules in the original's shape: their name is provided from here on, to this process alone."""

from __future__ import annotations

import os
from importlib import import_module

import amplifier.compat

_PATHS = os.environ.get("PYTHONPATH")
amplifier.compat.install()
import_module("amplifier_core")
# the children of other tests are to find what they always find
if _PATHS is None:
    del os.environ["PYTHONPATH"]
else:
    os.environ["PYTHONPATH"] = _PATHS
