"""What the text of a program names: words that may be paths, and those among them that are run.

This is no parser of any language. It finds too much rather than too little, in every spelling: quoted, behind an
expansion such as `$(git rev-parse --show-toplevel)/`, after a `cd`, as a module that is imported. A name that is only
put together while the program runs cannot be found; of such a text `is_composed` is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import attrs

__all__ = ["HOLE", "Named", "is_data", "pieces", "scan_code", "words_of"]

HOLE: Final = "\0"
"""What stands in a text for what is only known while it runs."""

_OPEN: Final = ("(", "[", "{", ",", "\\")
_MAX_JOINED: Final = 50
_BETWEEN: Final = re.compile(r"[\s'\"`;&|<>(){}\[\]$=,:*?!#\\\0]+")
_QUOTED: Final = re.compile(r"'([^'\n]{1,300})'|\"([^\"\n]{1,300})\"")
_EXPANDED: Final = re.compile(r"\$\{[^{}]*\}|\$\w+|\$\([^()]*\)|\{[^{}]*\}|[*?\[\]]")
_IMPORTING: Final = re.compile(
    r"\b(?:__import__|import\w*|from|require\w*|use|include\w*|load\w*|source)\b|^\s*\.\s"
)
_COMPOSED_IMPORT: Final = re.compile(
    r"\b(?:import_module|__import__|run_path|run_module)\(\s*(?:f[\"']|[A-Za-z_])"
)
_SEARCHING: Final = re.compile(
    r"\bsys\.path\b|PATH\b|\buse\s+lib\b|\bLOAD_PATH\b|\bchdir\b|\bcwd\b"
)
"""What a line of code says that names where modules and programs are looked for."""
_MODULE: Final = re.compile(r"[\w./@-]+")
_RUNNING: Final = re.compile(
    r"(?:^|[\s;&|({`\"'\[,])(?:\.|source|eval|exec\w*|(?:ba|da|k|z)?sh|python[\d.]*|node|ruby|perl|php|deno|bun|make|"
    r"npm|npx|yarn|pnpm|load\w*|require|import\w*|include|run|call|subprocess\S*|system|popen|spawn\w*)\b"
)
_DATA: Final = (
    ".cfg", ".css", ".csv", ".gif", ".html", ".ini", ".jpg", ".json", ".jsonl", ".lock", ".log", ".md",
    ".png", ".rst", ".svg", ".toml", ".tsv", ".txt", ".xml", ".yaml", ".yml",
)  # fmt: skip


@attrs.define(eq=False)
class Named:
    """What a text names.

    Args:
        words: what may be a path, as it is written; most of it is none.
        run: what is run as a program or read by one: a path, which need not exist yet.
        modules: what may be imported, by path or by dots.
        programs: what is run by a name that is looked for in `paths`.
        folders: where other programs may look for what they name, such as a value of `PYTHONPATH`.
        paths: those of them in which programs are looked for.
        is_python: whether it starts a Python in the folder where it runs itself.
        is_composed: whether it runs something whose name is put together while it runs.
    """

    words: set[str] = attrs.field(factory=set)
    run: set[str] = attrs.field(factory=set)
    modules: set[str] = attrs.field(factory=set)
    programs: set[str] = attrs.field(factory=set)
    folders: set[str] = attrs.field(factory=set)
    paths: set[str] = attrs.field(factory=set)
    is_python: bool = False
    is_composed: bool = False


def scan_code(text: str) -> Named:
    """Return what the text of a program in some language names; data files only where a line may run them."""
    found = Named(is_composed=_COMPOSED_IMPORT.search(text) is not None)
    for line in _statements(text):
        words = words_of(line)
        may_run = _RUNNING.search(line) is not None
        found.words.update(word for word in words if may_run or not is_data(word))
        if _IMPORTING.search(line):
            found.modules.update(_MODULE.findall(line.replace("::", "/")))
        if _SEARCHING.search(line):
            found.folders.update(words)
    return found


def words_of(text: str) -> set[str]:
    """Return all that may be a path in a text, quoted or not."""
    words = set(_BETWEEN.split(text))
    # a quoted path may hold blanks, at which the words above were split
    for quoted in _QUOTED.finditer(text):
        words.update(_EXPANDED.split(quoted[1] or quoted[2]))
    return words - {""}


def pieces(word: str) -> Iterator[str]:
    """Yield all that may be a path in a word of a command: the word, what stands behind `=`, and their parts."""
    for part in (word, word.partition("=")[2]):
        yield from filter(None, re.split(r"[\0*?\[\]]", part))
        yield from filter(None, _BETWEEN.split(part))


def _statements(text: str) -> Iterator[str]:
    """Yield the lines of a text, each with those that an open bracket or a comma at its end goes on in."""
    held: list[str] = []
    for line in text.splitlines():
        held.append(line)
        # a call may stand over several lines; a bound keeps a list of data from
        # joining up
        if not line.rstrip().endswith(_OPEN) or len(held) == _MAX_JOINED:
            yield " ".join(held)
            held.clear()
    yield " ".join(held)


def is_data(word: str) -> bool:
    """Tell whether a file of a name is none that is run, as long as nothing says so."""
    return word.lower().endswith(_DATA)
