"""What is declared has an effect: each field of the SDK's values and each key of a configuration has a reader.

A reader is found by its text: an attribute of that name that is read, of a receiver that may be the value, in code
that a session runs. A field that is read in another way stands in a table with the place that reads it, or with the
test that shows its effect; an entry of a table that is not needed fails as well.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import attrs
import pytest

from tests.architecture.source_tree import ROOT, SourceFile, source_files

_Field: TypeAlias = tuple[str, str]

_CONFIGURATIONS: Final = ("Config", "Settings", "Options", "Limits", "Schema")
"""How the names of configurations end."""

_TOOLS: Final = ("amplifier.validation", "amplifier.testing")
"""What reads a field only to check or to record it gives it no effect."""

_DECORATORS: Final = frozenset(
    f"amplifier_sdk.{name}" for name in ("decorators", "handlers", "hookspecs", "tools")
)

_RECEIVERS: Final[Mapping[str, frozenset[str]]] = {
    "ChatRequest": frozenset({"request", "asked", "self"}),
    "ChatResponse": frozenset({"response", "answer", "answered", "made", "self"}),
    "HookResult": frozenset(
        {"result", "answer", "asked", "wanted", "question", "self"}
    ),
    "ModelInfo": frozenset({"info", "model", "described", "found", "facts", "self"}),
    "ToolResult": frozenset({"result", "left", "made", "changed", "before", "self"}),
}
"""Values whose fields have names of many others: what the code calls such a value where it reads one."""

_TASK: Final = (
    "plugins/amplifier-module-tool-task/src/amplifier_module_tool_task/child_plan.py"
)
_READ_BY_NAME: Final[Mapping[_Field, str]] = {
    ("FunctionTool", "exclusive"): "src/amplifier/kernel/turn/batches.py",
    ("FunctionTool", "asks_first"): "src/amplifier/kernel/turn/replay.py",
    ("FunctionTool", "idempotent"): "src/amplifier/kernel/turn/replay.py",
    ("FunctionTool", "takes_context"): "src/amplifier/kernel/turn/tool_calls.py",
    ("TaskConfig", "inherit_tools"): _TASK,
    ("TaskConfig", "exclude_tools"): _TASK,
    ("TaskConfig", "inherit_hooks"): _TASK,
    ("TaskConfig", "exclude_hooks"): _TASK,
}
"""Fields that are read by `getattr`, by a key or of any value alike: the file that names them."""

_LIMITS: Final = "plugins/amplifier-module-tool-task/tests/test_limits.py"
_SHOWN_BY_A_TEST: Final[Mapping[_Field, str]] = {
    # for those who write approval providers, providers, handlers and loops
    ("Arguments", "repaired"): "tests/sdk/test_arguments_figures.py",
    ("ToolInfo", "read_only"): "tests/kernel/test_toolinfo.py",
    ("RunContext", "deps"): "tests/agent/test_tools.py",
    ("Turn", "calls_made"): "tests/sdk/authoring/test_loops.py",
    # all of them are handed on at once
    ("AgentLimits", "iterations"): _LIMITS,
    ("AgentLimits", "tool_calls"): _LIMITS,
    ("AgentLimits", "tokens"): _LIMITS,
    ("AgentLimits", "cost_usd"): _LIMITS,
}
"""Fields that the code of others reads, or that no code names: the tests that show what they do."""

_WITHOUT_EFFECT: Final = {("ChatRequest", "stream")}
"""Fields of the original's contract that have none, as the class says in its docstring."""


@attrs.frozen
class Declared:
    """A class whose fields are declared to have an effect."""

    name: str
    module: str
    docstring: str
    fields: tuple[str, ...]
    is_derived: bool  # its base may read its fields

    @property
    def package(self) -> str:
        """The top-level package, in which the keys of a plugin are read."""
        return self.module.partition(".")[0]


@attrs.frozen
class Read:
    """An attribute that is read: where, and of what."""

    module: str
    receiver: str


@cache
def declared() -> tuple[Declared, ...]:
    """Return the SDK's public values, and the configurations of kernel, application, kit and plugins."""
    return tuple(
        found
        for file in source_files()
        for node in file.tree.body
        if isinstance(node, ast.ClassDef)
        if (found := _declared(file, node)) is not None
    )


def _declared(file: SourceFile, node: ast.ClassDef) -> Declared | None:
    is_value = any("attrs." in ast.unparse(made) for made in node.decorator_list)
    is_public = not node.name.startswith("_")
    is_configuration = node.name.endswith(_CONFIGURATIONS)
    is_settings = file.module == "amplifier.app.settings.schema"
    is_of_sdk = file.module.startswith("amplifier_sdk.")
    if not is_value or not (
        is_settings or (is_public and (is_of_sdk or is_configuration))
    ):
        return None
    names = (
        field.target.id
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if "ClassVar" not in ast.unparse(field.annotation)
        # the converter carries them, in every class alike
        if field.value is None or ast.unparse(field.value) != "NO_EXTRAS"
    )
    fields = tuple(name for name in names if not name.startswith("_"))
    said = ast.get_docstring(node) or ""
    return Declared(node.name, file.module, said, fields, bool(node.bases))


@cache
def reads() -> Mapping[str, tuple[Read, ...]]:
    """Return the attributes that are read in code that a session runs, by name."""
    found: defaultdict[str, list[Read]] = defaultdict(list)
    for file in source_files():
        if file.module.startswith(_TOOLS):
            continue
        for node in file.nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                receiver = ast.unparse(node.value).rpartition(".")[2]
                found[node.attr].append(Read(file.module, receiver))
    return {name: tuple(listed) for name, listed in found.items()}


def readers(owner: Declared, field: str) -> Iterator[Read]:
    """Yield what may be a reader of a field."""
    receivers = _RECEIVERS.get(owner.name)
    for read in reads().get(field, ()):
        package = read.module.partition(".")[0]
        is_own = not owner.package.startswith("amplifier_module_") or (
            package == owner.package
            or (owner.is_derived and package == "amplifier_kit")
        )
        # what another object calls its own is no reader of this one
        is_self = read.receiver == "self" and read.module != owner.module
        if is_own and not is_self and (receivers is None or read.receiver in receivers):
            yield read


def names_text(path: Path, text: str) -> bool:
    """Whether a file has a text as a name, as a string or as an attribute."""
    return any(
        (isinstance(node, ast.Constant) and node.value == text)
        or (isinstance(node, ast.Attribute) and node.attr == text)
        or (isinstance(node, ast.keyword) and node.arg == text)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    )


def unread() -> dict[_Field, Declared]:
    """Return the fields that no attribute of their name reads."""
    return {
        (owner.name, field): owner
        for owner in declared()
        for field in owner.fields
        if next(readers(owner, field), None) is None
    }


def test_each_declared_field_and_key_has_a_reader() -> None:
    tables = {*_READ_BY_NAME, *_SHOWN_BY_A_TEST, *_WITHOUT_EFFECT}

    assert len(declared()) > 100
    assert set(unread()) - tables == set(), "nobody reads these"
    assert tables - set(unread()) == set(), "these have a reader, and need no entry"


@pytest.mark.parametrize(
    ("field", "place"), [*_READ_BY_NAME.items(), *_SHOWN_BY_A_TEST.items()]
)
def test_a_field_of_a_table_is_named_where_the_table_says(
    field: _Field, place: str
) -> None:
    assert names_text(ROOT / place, field[1])


def test_a_field_without_effect_says_so() -> None:
    for key in _WITHOUT_EFFECT:
        assert f"`{key[1]}` has no effect" in " ".join(unread()[key].docstring.split())


def test_each_parameter_of_a_decorator_is_read() -> None:
    """Of what authors decorate with: `tool`, `on` and the like, in their implementation behind the overloads."""
    found = {
        f"{file.module}.{node.name}": _unread_parameters(node)
        for file in source_files()
        if file.module in _DECORATORS
        for node in file.tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
        if not any("overload" in ast.unparse(made) for made in node.decorator_list)
    }

    assert {"amplifier_sdk.tools.tool", "amplifier_sdk.handlers.on"} <= set(found)
    assert {name: unread for name, unread in found.items() if unread} == {}


def _unread_parameters(node: ast.FunctionDef) -> set[str]:
    given = node.args
    names = {arg.arg for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    loaded = {
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
    }
    return names - loaded


def test_each_capability_that_the_sdk_names_is_asked_for() -> None:
    (named,) = (
        file for file in source_files() if file.module == "amplifier_sdk.capabilities"
    )
    names = {
        node.target.id
        for node in named.tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    used = {
        node.id
        for file in source_files()
        if file is not named
        for node in file.nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }

    assert names - used == set()
