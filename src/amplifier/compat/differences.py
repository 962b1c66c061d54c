"""What runs otherwise here than under the original, for a module whose source shows that it concerns it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

import attrs

__all__ = ["DIFFERENCES", "Difference", "FoundDifference", "differences_in"]

_Concerns: TypeAlias = Callable[[ast.AST], bool]


@attrs.frozen
class Difference:
    """One difference: its name, as on the page about compatibility, and what it means for the module."""

    name: str
    meaning: str
    concerns: _Concerns


@attrs.frozen
class FoundDifference:
    """A difference that concerns a module, and the first line that shows it."""

    name: str
    meaning: str
    file: Path
    line: int


def _calls(node: ast.AST, *methods: str) -> ast.Call | None:
    """Return a call of a method of one of these names."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in methods
    ):
        return node
    return None


def _event(call: ast.Call | None) -> str:
    """Return what a call names first: an event's text, or its constant's name."""
    if call is None or not call.args:
        return ""
    match call.args[0]:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name) | ast.Attribute(attr=name) if name.isupper():
            return name.lower().replace("_", ":", 1)
        case _:
            return ""


def _blocks(node: ast.AST) -> bool:
    return _event(_calls(node, "register", "on")) in ("tool:pre", "prompt:submit")


def _listens_to_pattern(node: ast.AST) -> bool:
    return "*" in _event(_calls(node, "register", "on"))


def _mounts_elsewhere(node: ast.AST) -> bool:
    point = _event(_calls(node, "mount"))
    return bool(point) and point not in _MOUNT_POINTS


def _swallows(node: ast.AST) -> bool:
    if not isinstance(node, ast.ExceptHandler) or node.type is None:
        return False
    return "CancelledError" in ast.unparse(node.type) and not any(
        isinstance(part, ast.Raise) for part in ast.walk(node)
    )


def _has_schema(node: ast.AST) -> bool:
    return isinstance(node, (ast.FunctionDef, ast.AnnAssign, ast.Assign)) and (
        "input_schema" in _defines(node)
    )


def _defines(node: ast.FunctionDef | ast.AnnAssign | ast.Assign) -> tuple[str, ...]:
    if isinstance(node, ast.FunctionDef):
        return (node.name,)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return tuple(target.id for target in targets if isinstance(target, ast.Name))


def _spawns(node: ast.AST) -> bool:
    return _event(_calls(node, "get_capability")) == "session.spawn"


def _is_hook(node: ast.AST) -> bool:
    match node:
        case ast.Assign(
            targets=[ast.Name(id="__amplifier_module_type__")],
            value=ast.Constant(value="hook"),
        ):
            return True
        case _:
            return False


def _unregisters(node: ast.AST) -> bool:
    return _calls(node, "unregister") is not None


_MOUNT_POINTS: Final = frozenset(
    {
        "context",
        "module-source-resolver",
        "orchestrator",
        "providers",
        "session",
        "tools",
    }
)

DIFFERENCES: Final = (
    Difference(
        "blocking-hooks-fail-closed",
        "a handler of tool:pre or prompt:submit that raises, or answers what cannot be carried out, denies",
        _blocks,
    ),
    Difference(
        "patterns-match",
        "a handler of a pattern hears the events that match it",
        _listens_to_pattern,
    ),
    Difference(
        "arguments-are-validated",
        "arguments that do not fit the tool's schema are answered with an error, and the tool is not called",
        _has_schema,
    ),
    Difference(
        "cancellation-is-not-swallowed",
        "code that continues after a CancelledError is cancelled again, and left behind when it does not end",
        _swallows,
    ),
    Difference(
        "mount-points-are-fixed",
        "only the original's mount points exist",
        _mounts_elsewhere,
    ),
    Difference(
        "failed-hooks-end-the-start",
        "a hook whose mount raises ends the session's start, as it may be a guard",
        _is_hook,
    ),
    Difference(
        "handlers-of-the-session-stay",
        "a handler of the session's own modules is not unregistered by its name",
        _unregisters,
    ),
    Difference(
        "children-are-narrower",
        "a child has its parent's guards and limits, and options that spawning does not take are left out",
        _spawns,
    ),
)


def differences_in(file: Path) -> Iterator[FoundDifference]:
    """Yield the differences that concern a file."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (SyntaxError, ValueError):
        return
    # its first line is enough to find it
    for difference in DIFFERENCES:
        lines = [
            getattr(node, "lineno", 0) for node in nodes if difference.concerns(node)
        ]
        if lines:
            yield FoundDifference(difference.name, difference.meaning, file, min(lines))
