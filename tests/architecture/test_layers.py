"""Who may import whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import pytest
from packaging.utils import canonicalize_name

from tests.architecture.source_tree import (
    PLUGINS,
    ROOT,
    Import,
    SourceFile,
    distributions_of,
    is_inside,
    plugin_files,
    requirements_of,
    root_files,
)

# It names the command that installs an extra, and imports the standard library alone.
INSTALLATION: Final = "amplifier_kit.installation"

LAYERS: Final[Mapping[str, tuple[str, ...]]] = {
    "amplifier_sdk": ("amplifier_sdk",),
    "amplifier_kit": ("amplifier_sdk", "amplifier_kit"),
    "amplifier.kernel": ("amplifier_sdk", "amplifier.kernel"),
    "amplifier.agent": (
        "amplifier_sdk",
        "amplifier_kit.files.documents",
        INSTALLATION,
        "amplifier.kernel",
        "amplifier.agent",
        "amplifier.serving",
    ),
    "amplifier.serving": (
        "amplifier_sdk",
        "amplifier_kit.event_json",
        "amplifier_kit.trace_context",
        INSTALLATION,
        "amplifier.kernel",
        "amplifier.agent",
        "amplifier.serving",
    ),
    "amplifier.server": (
        "amplifier_sdk",
        "amplifier_kit",
        "amplifier.kernel",
        "amplifier.app",
        "amplifier.serving",
        "amplifier.server",
    ),
    "amplifier.validation": (
        "amplifier_sdk",
        "amplifier_kit",
        "amplifier.kernel",
        "amplifier.validation",
    ),
    "amplifier.compat": (
        "amplifier_sdk",
        INSTALLATION,
        "amplifier.kernel",
        "amplifier.testing",
        "amplifier.compat",
    ),
    "amplifier.testing": (
        "amplifier_sdk",
        "amplifier_kit",
        "amplifier.kernel",
        "amplifier.validation",
        "amplifier.agent",
        "amplifier.testing",
    ),
    "amplifier.app": (
        "amplifier_sdk",
        "amplifier_kit",
        "amplifier.kernel",
        "amplifier.validation",
        "amplifier.app",
    ),
    "amplifier.acp": (
        "amplifier_sdk",
        "amplifier_kit",
        "amplifier.kernel",
        "amplifier.app",
        "amplifier.acp",
    ),
    "amplifier.mcp_server": (
        "amplifier_sdk",
        "amplifier_kit",
        "amplifier.kernel",
        "amplifier.app",
        "amplifier.mcp_server",
    ),
    "amplifier.cli": (
        "amplifier.acp",
        "amplifier.mcp_server",
        "amplifier_sdk",
        "amplifier_kit",
        "amplifier.kernel",
        "amplifier.validation",
        "amplifier.app",
        "amplifier.agent",
        "amplifier.compat",
        "amplifier.server",
        "amplifier.cli",
    ),
    "amplifier": ("amplifier_sdk", "amplifier_kit", "amplifier"),
}
"""What each package of the root distribution may import of it; a file belongs to the first that holds it."""

SDK_LIBRARIES: Final = frozenset(
    {"anyio", "attrs", "cattrs", "pluggy", "typing_extensions"}
)
SDK_LAZY_LIBRARIES: Final = SDK_LIBRARIES | {"jsonschema_rs"}
"""What the SDK may import inside functions; the kit imports what its extras bring."""

PLUGIN_LIBRARIES: Final = frozenset(
    {"amplifier_kit", "amplifier_sdk", "anyio", "attrs"}
)
"""What a plugin has through the SDK, whose contracts are written in them; the rest it requires itself."""

KERNEL_LIBRARIES: Final = frozenset({"anyio", "attrs", "pluggy"})
KERNEL_LAZY_LIBRARIES: Final = KERNEL_LIBRARIES | {
    "cattrs",
    "jsonschema_rs",
    "structlog",
}

FLOORS: Final = (
    {
        "cancellation",
        "capabilities",
        "channels",
        "cleanups",
        "clock",
        "groups",
        "reports",
        "resources",
        "spans",
        "suspension",
    },
    {"budgets", "foreign", "plans"},
    {"hooks", "modules"},
    {"turn"},
    {"coordinator", "handwritten"},
    {"sessions"},
)
"""The kernel's rooms from the ground up; each imports only from below and, without cycles, its own floor."""

LOOKS_UP: Final = {
    (
        "coordinator",
        "sessions",
    ): "for types: a module written for the original finds its session there",
}
"""Each import from a higher floor, with its reason; none runs when a module is imported."""


def _package_of(file: SourceFile) -> str:
    return next(package for package in LAYERS if is_inside(file.module, package))


def _inside_any(name: str, packages: Iterable[str]) -> bool:
    return any(is_inside(name, package) for package in packages)


def _is_project(name: Import) -> bool:
    return name.root in {
        "amplifier",
        "amplifier_kit",
        "amplifier_sdk",
    } or name.root.startswith("amplifier_module_")


def _breach(file: SourceFile, name: Import, rule: str) -> str:
    return f"{file}:{name.line} imports {name.name}: {rule}"


@pytest.mark.parametrize("package", LAYERS)
def test_a_layer_imports_only_itself_and_what_lies_below(package: str) -> None:
    allowed = LAYERS[package]
    breaches = [
        _breach(file, name, f"{package} may import {', '.join(allowed)}")
        for file in root_files()
        if _package_of(file) == package
        for name in file.imports
        if _is_project(name) and not _inside_any(name.name, allowed)
    ]

    assert breaches == []


@pytest.mark.parametrize(
    ("package", "at_the_top", "anywhere"),
    [
        ("amplifier_sdk", SDK_LIBRARIES, SDK_LAZY_LIBRARIES),
        ("amplifier.kernel", KERNEL_LIBRARIES, KERNEL_LAZY_LIBRARIES),
    ],
)
def test_a_ground_layer_uses_few_libraries(
    package: str, at_the_top: frozenset[str], anywhere: frozenset[str]
) -> None:
    breaches = [
        _breach(
            file,
            name,
            f"at the top {sorted(at_the_top)}, inside functions {sorted(anywhere)}",
        )
        for file in root_files()
        if is_inside(file.module, package)
        for name in file.imports
        if not _is_project(name) and not name.is_stdlib
        if name.root not in (anywhere if name.lazy or name.typing_only else at_the_top)
    ]

    assert breaches == []


def _rooms(*, when_imported: bool = False) -> dict[str, set[str]]:
    """Return what each room of the kernel imports of the others, as a rule also inside functions and for types."""
    rooms: dict[str, set[str]] = {}
    for file in root_files():
        if file.module == "amplifier.kernel" or not is_inside(
            file.module, "amplifier.kernel"
        ):
            continue
        room = file.module.split(".")[2]
        rooms.setdefault(room, set()).update(
            name.name.split(".")[2]
            for name in file.imports
            if is_inside(name.name, "amplifier.kernel")
            and name.name != "amplifier.kernel"
            if not (when_imported and (name.lazy or name.typing_only))
        )
    return rooms


def _higher(*, when_imported: bool = False) -> set[tuple[str, str]]:
    level = {name: number for number, floor in enumerate(FLOORS) for name in floor}
    return {
        (room, needed)
        for room, imported in _rooms(when_imported=when_imported).items()
        for needed in imported
        if level[needed] > level[room]
    }


def test_every_room_of_the_kernel_stands_on_one_floor() -> None:
    assert sorted(room for floor in FLOORS for room in floor) == sorted(_rooms())


def test_a_room_of_the_kernel_imports_no_higher_floor() -> None:
    assert _higher(when_imported=True) == set()


def test_room_of_kernel_looks_up_only_where_reason_is_given() -> None:
    assert _higher() == LOOKS_UP.keys()


@pytest.mark.parametrize("package", LAYERS)
def test_no_modules_import_each_other_in_a_ring(package: str) -> None:
    files = {file.module: file for file in root_files() if _package_of(file) == package}
    graph = {
        module: {
            needed
            for name in file.imports
            if not name.lazy and not name.typing_only
            if (needed := _module(name, files)) is not None and needed != module
        }
        for module, file in files.items()
    }

    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def _module(name: Import, files: Mapping[str, SourceFile]) -> str | None:
    """Return the module that a name is, or else the one it comes from."""
    if name.name in files:
        return name.name
    parent = name.name.rpartition(".")[0]
    return parent if parent in files else None


def _foreign_imports(plugin: Path) -> Iterator[str]:
    required = _required(plugin)
    own = {file.module.partition(".")[0] for file in plugin_files(plugin)}
    for file in plugin_files(plugin):
        for name in file.imports:
            if name.is_stdlib or name.root in own | PLUGIN_LIBRARIES:
                continue
            if _is_project(name) or not distributions_of(name.root) & required:
                yield _breach(
                    file,
                    name,
                    f"a plugin imports {sorted(PLUGIN_LIBRARIES)}, itself and what it requires",
                )


def _required(plugin: Path) -> set[str]:
    return {
        canonicalize_name(requirement.name) for requirement in requirements_of(plugin)
    }


def test_plugins_import_the_sdk_and_what_they_require() -> None:
    assert [breach for plugin in PLUGINS for breach in _foreign_imports(plugin)] == []


def test_plugins_require_amplifier_and_no_other_plugin() -> None:
    required = {plugin.name: _required(plugin) for plugin in PLUGINS}

    assert [name for name, names in required.items() if "amplifier" not in names] == []
    assert [
        f"{plugin} requires {name}"
        for plugin, names in required.items()
        for name in sorted(names)
        if name.startswith("amplifier-module-")
    ] == []


def test_the_tree_holds_the_packages_these_rules_speak_of() -> None:
    modules = {file.module for file in root_files()}

    assert {"amplifier_sdk", "amplifier.kernel"} <= modules
    assert PLUGINS, f"no plugin under {ROOT / 'plugins'}"
