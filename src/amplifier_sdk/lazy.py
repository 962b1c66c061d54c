"""Packages whose public names load when they are first used, so that importing the package costs next to nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from sys import modules

__all__ = ["load_from"]


def load_from(
    package: str,
    names_by_home: Mapping[str, tuple[str, ...]],
    *,
    prepare: str | None = None,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make the `__getattr__` and the `__dir__` of a package.

    Write them where type checkers do not look, which would accept any name otherwise:

    ```python
    if not TYPE_CHECKING:
        __getattr__, __dir__ = load_from(__name__, {"kernel.session": ("Session",)})
    ```

    Args:
        package: the package's name.
        names_by_home: the modules of the package, each with the public names that it defines.
        prepare: a module of the package that is imported before the first of them is loaded.
    """
    home = {name: module for module, names in names_by_home.items() for name in names}

    def load(name: str) -> object:
        """Load a public name from the module that defines it."""
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if prepare is not None:
            import_module(f"{package}.{prepare}")
        value = getattr(import_module(f"{package}.{home[name]}"), name)
        # `__getattr__` is asked for missing names alone: not for this one again
        setattr(modules[package], name, value)
        return value

    def listed() -> list[str]:
        """Return the public names, loaded or not."""
        return sorted(modules[package].__all__)

    return load, listed
