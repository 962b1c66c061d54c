"""The events that a package emits, read from its source: what `emit` is called with, where that is a constant."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

__all__ = ["Emitted", "emitted_events", "inherited_events"]

_EMITTERS: Final = frozenset({"emit", "emit_and_collect", "_emit"})


@attrs.frozen(kw_only=True)
class Emitted:
    """What a package emits.

    Args:
        places: each event with the first place where it is emitted.
        is_complete: whether every event is a constant; a name that is put together at run time is unknown.
    """

    places: dict[str, str]
    is_complete: bool


def emitted_events(location: Path) -> Emitted:
    """Read the source of a package, or of a single module; names are looked up in what is imported already."""
    places: dict[str, str] = {}
    is_complete = True
    # Read and not run: what a module emits depends on what happens to it.
    for file in sorted(location.rglob("*.py")) if location.is_dir() else [location]:
        for call in _calls(file):
            # constants of other modules are known, since the module was imported before
            name = _value(call.args[0], _namespace(file))
            if name is None:
                is_complete = False
            else:
                places.setdefault(name, f"{file}:{call.lineno}")
    return Emitted(places=places, is_complete=is_complete)


def inherited_events(target: object) -> frozenset[str]:
    """Return the events that those classes emit, wherever they are, of which a module's class is derived."""
    if isinstance(target, type):
        bases = target.__mro__[1:]
    else:
        bases = ()
    files = {
        getattr(sys.modules.get(base.__module__), "__file__", None) for base in bases
    }
    return frozenset(
        name for file in files if file for name in emitted_events(Path(file)).places
    )


def _calls(file: Path) -> Iterator[ast.Call]:
    try:
        tree = ast.parse(file.read_bytes(), filename=str(file))
    except (SyntaxError, ValueError):
        return  # a file that nobody imports need not be Python of this version
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = (
            node.func.attr
            if isinstance(node.func, ast.Attribute)
            else getattr(node.func, "id", None)
        )
        if called in _EMITTERS:
            yield node


def _namespace(file: Path) -> dict[str, object]:
    """Return the names of the imported module that a file is."""
    # a copy: to ask a lazy module for its file may import others
    for module in list(sys.modules.values()):
        if getattr(module, "__file__", None) == str(file):
            return vars(module)
    return {}


def _value(node: ast.expr, namespace: dict[str, object]) -> str | None:
    """Evaluate an event's name, where it is a text, a name or an attribute."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            value = namespace.get(name)
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            value = getattr(namespace.get(name), attribute, None)
        case _:
            return None
    if isinstance(value, str):
        return str(value)
    return None
