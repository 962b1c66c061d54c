"""Modules written for the original run unchanged: their `amplifier_core` is provided here.

The module loader does all that is needed when a module imports the name. Applications and tests that import it
themselves call `install` first. It needs the extra `amplifier[compat]`.
"""

from __future__ import annotations

from amplifier.compat.finder import OriginalImportedError, install

__all__ = ["OriginalImportedError", "install"]
