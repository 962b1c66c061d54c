"""Every public name says what it is."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from tests.architecture.source_tree import source_files


def _is_described(value: object) -> bool:
    return bool((inspect.getdoc(value) or "").strip())


def _undescribed(module: ModuleType) -> Iterator[str]:
    if not _is_described(module):
        yield module.__name__
    for name, value in vars(module).items():
        if (
            name.startswith("_")
            or getattr(value, "__module__", None) != module.__name__
        ):
            continue
        if not inspect.isclass(value) and not inspect.isroutine(value):
            continue
        if not _is_described(value):
            yield f"{module.__name__}.{name}"
        if inspect.isclass(value):
            yield from (
                f"{module.__name__}.{name}.{member}"
                for member in _undescribed_members(value)
            )


def _undescribed_members(cls: type) -> Iterator[str]:
    """Yield the methods without a docstring; one that overrides another inherits its docstring."""
    for name, raw in vars(cls).items():
        if name.startswith("_"):
            continue
        callable_or_property = inspect.isroutine(raw) or isinstance(
            raw, (classmethod, property, staticmethod)
        )
        if callable_or_property and not _is_described(getattr(cls, name)):
            yield name


def test_public_modules_describe_themselves_and_their_names() -> None:
    modules = [import_module(file.module) for file in source_files() if file.is_public]

    assert [name for module in modules for name in _undescribed(module)] == []
