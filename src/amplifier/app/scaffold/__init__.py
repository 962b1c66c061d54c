"""New module packages: `amplifier module new`."""

from __future__ import annotations

from amplifier.app.scaffold.names import ModuleNames, name_module
from amplifier.app.scaffold.package import NewModule, make_module

__all__ = ["ModuleNames", "NewModule", "make_module", "name_module"]
