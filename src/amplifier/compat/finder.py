"""Finds `amplifier_core` and its submodules: each is the module of the same name in `amplifier.compat.original`.

One module stands under both names, so a class is the same object whichever path it is imported by.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Final

from amplifier_kit.installation import install_command

__all__ = [
    "FINDER",
    "NAME",
    "OriginalFinder",
    "OriginalImportedError",
    "install",
    "is_provided",
]

NAME: Final = "amplifier_core"
"""The name that the original's modules import."""

HOME: Final = "amplifier.compat.original"
CHILDREN: Final = str(Path(__file__).with_name("children"))
"""The folder that lets child Pythons find the name."""


class OriginalImportedError(ImportError):
    """The original itself is imported already, so its name cannot stand for ours."""


class _Alias:
    """Loads a module under its other name."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._spec: ModuleSpec | None = None

    def create_module(self, _: ModuleSpec) -> ModuleType:
        """Return the module itself."""
        module = import_module(self._home)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own spec back, which Python has replaced."""
        module.__spec__ = self._spec


class OriginalFinder:
    """Stands first among Python's finders, before whatever is installed under the name."""

    def find_spec(
        self,
        fullname: str,
        _path: Sequence[str] | None = None,
        _target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Find `amplifier_core` or a submodule of it; other names are left to other finders."""
        top, _, rest = fullname.partition(".")
        if top != NAME:
            return None
        if rest:
            home = f"{HOME}.{rest}"
        else:
            home = HOME
            if find_spec("pydantic") is None:
                raise ModuleNotFoundError(
                    f"{NAME!r} is provided by the extra 'compat': {install_command('amplifier[compat]')}",
                    name=NAME,
                )
            _share_with_children()
        found = find_spec(home)
        if found is None:
            # refused here: another finder would look into our folder by the same path
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: amplifier.compat does not provide it",
                name=fullname,
            )
        is_package = found.submodule_search_locations is not None
        return ModuleSpec(fullname, _Alias(home), is_package=is_package)  # type: ignore[arg-type]  # a loader by what it has


FINDER: Final = OriginalFinder()


def is_provided() -> bool:
    """Whether what is imported under the name is ours.

    Raises:
        OriginalImportedError: the original itself is imported.
    """
    module = sys.modules.get(NAME)
    if module is None:
        return False
    if module.__name__ != HOME:
        place = getattr(module, "__file__", None) or "an unknown place"
        raise OriginalImportedError(
            f"{NAME!r} is imported already, from {place}; call amplifier.compat.install() before anything imports it"
        )
    return True


def install() -> None:
    """Let this process and its child Pythons import `amplifier_core`.

    Raises:
        OriginalImportedError: the original itself is imported already.
    """
    is_provided()
    # first, before an installed wheel of that name
    if sys.meta_path[:1] != [FINDER]:
        if FINDER in sys.meta_path:
            sys.meta_path.remove(FINDER)
        sys.meta_path.insert(0, FINDER)
    _share_with_children()


def _share_with_children() -> None:
    """Put the folder that has the name for child Pythons on their path."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if CHILDREN not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([CHILDREN, *filter(None, paths)])
