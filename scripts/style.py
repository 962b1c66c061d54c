"""Measure the shape of the source: `python -m scripts.style [table] [tree] [lists]`.

Every figure is one that a reader feels: how long files and functions are, which modules import each other when imports
inside functions count, how dense the lines are, what is public, what is written twice.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from statistics import median
from typing import Final

import attrs

from tests.architecture.source_tree import ROOT, SourceFile, is_inside, source_files

__all__ = [
    "PACKAGES",
    "duplicate_lines",
    "import_cycles",
    "is_gerund",
    "private_imports",
    "room_cycles",
    "rows",
    "same_named_classes",
]

PACKAGES: Final = (
    "amplifier_sdk",
    "amplifier_kit",
    "amplifier.kernel",
    "amplifier.validation",
    "amplifier.testing",
    "amplifier.app",
    "amplifier.cli",
    "amplifier",
)
"""The packages of the root distribution; a file belongs to the first that holds it, the rest to `plugins`."""

NOUNS: Final = frozenset(
    {
        "listing",
        "logging",
        "mapping",
        "pricing",
        "sampling",
        "serving",
        "streaming",
        "string",
        "testing",
        "thing",
        "thinking",
        "timing",
    }
)
"""Words in -ing that name a thing or a field of work."""

BLOCK: Final = 8
"""How many lines of code must be equal to count as written twice."""

LAYOUT: Final = frozenset(
    {
        tokenize.COMMENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
        tokenize.INDENT,
        tokenize.NEWLINE,
        tokenize.NL,
    }
)
"""Tokens that make no line one of code."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@attrs.frozen(kw_only=True)
class Measures:
    """What is counted in one file; shares and averages are made of sums, so that files of a package add up."""

    file: SourceFile
    lines: int
    code: int  # the lines without comments, docstrings and blank ones
    text: Sequence[str]  # the lines that are not blank, without their indentation
    comments: int
    functions: Sequence[int]  # the lines of each, without decorators and docstring
    conditionals: int
    type_checks: int
    public_names: int
    documented: Sequence[bool]  # of each public function and method

    @property
    def module_name(self) -> str:
        """The last part of the module's name."""
        return self.file.module.rpartition(".")[2]


@cache
def measure(file: SourceFile) -> Measures:
    """Count what one file holds."""
    source = file.path.read_text("utf-8")
    lines = source.splitlines()
    nodes = file.nodes
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    functions = [node for node in nodes if isinstance(node, Function)]
    return Measures(
        file=file,
        lines=len(lines),
        code=len(_code_lines(tokens) - _docstring_lines(nodes)),
        text=[text for line in lines if (text := line.strip())],
        comments=sum(token.type == tokenize.COMMENT for token in tokens),
        functions=[_length(node) for node in functions],
        conditionals=sum(isinstance(node, ast.IfExp) for node in nodes),
        type_checks=sum(
            isinstance(node, ast.Call) and _called(node) == "isinstance"
            for node in nodes
        ),
        public_names=len(_exported(file)) if file.is_public else 0,
        documented=[
            ast.get_docstring(node) is not None
            for node in functions
            if not node.name.startswith("_")
        ],
    )


def _code_lines(tokens: Iterable[tokenize.TokenInfo]) -> set[int]:
    return {
        line
        for token in tokens
        if token.type not in LAYOUT
        for line in range(token.start[0], token.end[0] + 1)
    }


def _docstring_lines(nodes: Iterable[ast.AST]) -> set[int]:
    """Return the lines of texts that stand alone: docstrings, and what is said of a constant below it."""
    return {
        line
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node.value.value, str)
        for line in range(node.lineno, node.lineno + _span(node))
    }


def _length(function: Function) -> int:
    length = _span(function)
    if ast.get_docstring(function) is not None:
        length -= _span(function.body[0])
    return length


def _span(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _called(call: ast.Call) -> str | None:
    return call.func.id if isinstance(call.func, ast.Name) else None


def _exported(file: SourceFile) -> Sequence[str]:
    """Return the names in a module's `__all__`."""
    for node in file.tree.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id="__all__")], value=ast.List(elts=names)
            ):
                return [ast.unparse(name) for name in names]
            case _:
                pass
    return ()


def import_cycles(files: Iterable[SourceFile]) -> list[list[str]]:
    """Return each group of modules that reach each other by imports, those inside functions included; largest first.

    Imports for type checkers do not count: they never run.
    """
    modules = {file.module: file for file in files}
    return _cycles(
        {module: sorted(_needed(file, modules)) for module, file in modules.items()}
    )


def room_cycles(files: Iterable[SourceFile], package: str) -> list[list[str]]:
    """Return each group of rooms of a package, its folders and modules, that reach each other by imports."""
    rooms: dict[str, set[str]] = defaultdict(set)
    for file in files:
        if is_inside(file.module, package) and file.module != package:
            names = [name.name for name in file.imports if not name.typing_only]
            inside = (
                name for name in names if is_inside(name, package) and name != package
            )
            rooms[_room(file.module, package)].update(
                _room(name, package) for name in inside
            )
    return _cycles(
        {
            room: sorted((needed & rooms.keys()) - {room})
            for room, needed in rooms.items()
        }
    )


def _room(module: str, package: str) -> str:
    return module.removeprefix(f"{package}.").partition(".")[0]


def _cycles(graph: Mapping[str, Sequence[str]]) -> list[list[str]]:
    groups = [sorted(group) for group in _strongly_connected(graph) if len(group) > 1]
    return sorted(groups, key=lambda group: (-len(group), group))


def _needed(file: SourceFile, modules: Mapping[str, SourceFile]) -> set[str]:
    """Return the modules that a file imports: an imported name is a module itself, or else comes from one."""
    names = [name.name for name in file.imports if not name.typing_only]
    found = {name if name in modules else name.rpartition(".")[0] for name in names}
    return (found & modules.keys()) - {file.module}


def _strongly_connected(graph: Mapping[str, Sequence[str]]) -> Iterator[set[str]]:
    """Yield the strongly connected parts: in the order of finishing, whatever reaches a module backwards is with it."""
    backwards: dict[str, list[str]] = {module: [] for module in graph}
    for module, needed in graph.items():
        for other in needed:
            backwards[other].append(module)
    order: list[str] = []
    seen: set[str] = set()
    for module in graph:
        order += _finished(module, graph, seen)
    seen = set()
    for module in reversed(order):
        if group := set(_finished(module, backwards, seen)):
            yield group


def _finished(
    start: str, graph: Mapping[str, Sequence[str]], seen: set[str]
) -> Iterator[str]:
    """Yield what can be reached and was not seen, each after all that it leads to."""
    waiting = [(start, False)]
    while waiting:
        module, finished = waiting.pop()
        if finished:
            yield module
        elif module not in seen:
            seen.add(module)
            waiting.append((module, True))
            waiting += [(other, False) for other in graph[module]]


def private_imports(files: Iterable[SourceFile]) -> list[str]:
    """Return each import of a private module by a file that stands outside of the module's folder."""
    files = list(files)
    modules = {file.module: file for file in files}
    return [
        f"{file.module} imports {needed}"
        for file in files
        for needed in sorted(_needed(file, modules))
        if (folder := _private_to(needed)) is not None
        and not is_inside(file.module, folder)
    ]


def _private_to(module: str) -> str | None:
    """Return the folder whose files alone may import a module; `None` where no part of its name is private."""
    parts = module.split(".")
    private = [index for index, part in enumerate(parts) if part.startswith("_")]
    return ".".join(parts[: private[-1]]) if private else None


def is_gerund(module: str) -> bool:
    """Whether the last part of a module's name is a verb in -ing rather than a noun."""
    words = module.rpartition(".")[2].strip("_").split("_")
    return bool(re.search(r"[aeiouy].*ing$", words[-1])) and words[-1] not in NOUNS


def same_named_classes(files: Iterable[SourceFile]) -> dict[str, list[str]]:
    """Return each public class name that several public modules of different files define, with the modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in files:
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(file.module)
    return {
        name: sorted(modules)
        for name, modules in sorted(found.items())
        if len(modules) > 1
    }


def duplicate_lines(files: Iterable[SourceFile]) -> dict[str, int]:
    """Return how many lines of each file stand in a block of equal lines that occurs elsewhere too; imports apart."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for file in files:
        lines = _code(file)
        for start in range(len(lines) - BLOCK + 1):
            places[tuple(lines[start : start + BLOCK])].append((file.module, start))
    repeated: dict[str, set[int]] = defaultdict(set)
    for found in places.values():
        if len(found) > 1:
            for module, start in found:
                repeated[module].update(range(start, start + BLOCK))
    return {module: len(lines) for module, lines in repeated.items()}


@cache
def _code(file: SourceFile) -> Sequence[str]:
    """Return the lines of a file, without imports, comments and blank lines."""
    imports = {
        line
        for node in file.nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return [
        text
        for number, line in enumerate(file.path.read_text("utf-8").splitlines(), 1)
        if (text := line.strip()) and number not in imports and not text.startswith("#")
    ]


def rows(files: Iterable[SourceFile]) -> dict[str, dict[str, str]]:
    """Return the table: for each package, and for all, each measure as text."""
    files = list(files)
    parts: dict[str, list[SourceFile]] = {
        package: [] for package in (*PACKAGES, "plugins")
    }
    for file in files:
        parts[
            next((name for name in PACKAGES if is_inside(file.module, name)), "plugins")
        ].append(file)
    return {name: _row(part) for name, part in (parts | {"all": files}).items() if part}


def _row(files: Sequence[SourceFile]) -> dict[str, str]:
    measures = [measure(file) for file in files]
    lines = sum(one.lines for one in measures)
    sizes = sorted(one.lines for one in measures)
    text = [line for one in measures for line in one.text]
    functions = sorted(length for one in measures for length in one.functions)
    nine_in_ten = functions[len(functions) * 9 // 10]
    documented = [known for one in measures for known in one.documented]
    cycles = import_cycles(files)
    return {
        "files": f"{len(files)}",
        "lines": f"{lines:,}",
        "lines of code": f"{sum(one.code for one in measures):,}",
        "file: median, longest": f"{median(sizes):.0f}, {sizes[-1]}",
        "function: median, 9 in 10, longest": f"{median(functions):.0f}, {nine_in_ten}, {functions[-1]}",
        "cycles, modules in the largest": f"{len(cycles)}, {len(cycles[0]) if cycles else 0}",
        "public names": f"{sum(one.public_names for one in measures):,}",
        "documented": f"{sum(documented) / max(len(documented), 1):.0%}",
        "comments": f"{sum(one.comments for one in measures) / lines:.1%}",
        "characters a line": f"{sum(map(len, text)) / len(text):.1f}",
        "conditional expressions / 1,000": f"{1000 * sum(one.conditionals for one in measures) / lines:.1f}",
        "isinstance / 1,000": f"{1000 * sum(one.type_checks for one in measures) / lines:.1f}",
        "private modules": f"{sum(one.module_name.startswith('_') and not one.file.is_package for one in measures)}",
        "gerund modules": f"{sum(is_gerund(file.module) for file in files)}",
        "same-named classes": f"{len(same_named_classes(files))}",
        "duplicate lines": f"{sum(duplicate_lines(files).values()) / lines:.1%}",
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    views: Mapping[str, Callable[[Sequence[SourceFile]], str]] = {
        "table": _table,
        "tree": _tree,
        "lists": _lists,
    }
    parser.add_argument("views", nargs="*", choices=views, default=["table"])
    parser.add_argument("--of", default="", metavar="PACKAGE", help="of one package")
    given = parser.parse_args(arguments)
    files = source_files()
    if given.of:
        files = tuple(file for file in files if is_inside(file.module, given.of))
    for view in given.views:
        print(views[view](files))


def _table(files: Sequence[SourceFile]) -> str:
    """Return a Markdown table: a line for each measure, a column for each package."""
    table = rows(files)
    head = [["", *table], ["---", *["--:"] * len(table)]]
    body = [
        [measured, *(row[measured] for row in table.values())]
        for measured in table["all"]
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in head + body)


def _tree(files: Sequence[SourceFile]) -> str:
    """Return the lines of each folder, with all below it."""
    lines: Counter[str] = Counter()
    for file in files:
        path = file.path.relative_to(ROOT)
        for folder in path.parents:
            lines[folder.as_posix()] += measure(file).lines
    return "\n".join(
        f"{count:>7,}  {'  ' * folder.count('/')}{folder}"
        for folder, count in sorted(lines.items())
    )


def _lists(files: Sequence[SourceFile]) -> str:
    """Return what the figures of the table count."""
    gerunds = [file.module for file in files if is_gerund(file.module)]
    return "\n".join(
        [
            *(
                f"cycle of {len(cycle)}: {' '.join(cycle)}"
                for cycle in import_cycles(files)
            ),
            *(f"gerund: {module}" for module in gerunds),
            *(
                f"{name}: {' '.join(modules)}"
                for name, modules in same_named_classes(files).items()
            ),
        ]
    )


if __name__ == "__main__":
    main()
