"""What the text of a program names: words that may be paths, and those among them that are run.

This is no parser of any language. It finds too much rather than too little, in every spelling: quoted, behind an
expansion such as `$(git rev-parse --show-toplevel)/`, after a `cd`, as a module that is imported. A name that is only
put together while the program runs cannot be found; of such a text `is_composed` is true.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

__all__ = ["Named", "scan_code", "scan_shell"]

_HOLE: Final = "\0"
_SUBSTITUTION: Final = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_VARIABLE: Final = re.compile(r"\$(?:\{(?P<braced>[^{}]*)\}|(?P<bare>[A-Za-z_]\w*|[0-9@*#?!$-]))")
_DEFAULT: Final = re.compile(r"\w+:?[-=+](.*)", re.DOTALL)
_COMMENT: Final = re.compile(r"(?m)(?:^|(?<=[\s;]))#[^\n]*")
_TOKEN: Final = re.compile(
    r"""(?P<word>(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^\s;&|<>()'"\\]|['"\\])+)|(?P<sign>\n|[;&|()]|[<>]+&?)""", re.DOTALL
)
_QUOTING: Final = re.compile(r"""\\(.)|['"]""", re.DOTALL)
_ASSIGNED: Final = re.compile(r"\b([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|[^\s;&|()]*)|\bread\b([^;&|\n]*)")
_BETWEEN: Final = re.compile(r"[\s'\"`;&|<>(){}\[\]$=,:*?!#\\\0]+")
_QUOTED: Final = re.compile(r"'([^'\n]{1,300})'|\"([^\"\n]{1,300})\"")
_EXPANDED: Final = re.compile(r"\$\{[^{}]*\}|\$\w+|\$\([^()]*\)|\{[^{}]*\}|[*?\[\]]")
_IMPORTING: Final = re.compile(r"\b(?:import|from|require\w*|use|include\w*|load\w*|source)\b|^\s*\.\s")
_MODULE: Final = re.compile(r"[\w./@-]+")
_RUNNING: Final = re.compile(
    r"(?:^|[\s;&|({`\"'\[,])(?:\.|source|eval|exec\w*|(?:ba|da|k|z)?sh|python[\d.]*|node|ruby|perl|php|deno|bun|make|"
    r"npm|npx|yarn|pnpm|load\w*|require|import\w*|include|run|call|subprocess\S*|system|popen|spawn\w*)\b"
)
_DATA: Final = (
    ".cfg", ".css", ".csv", ".gif", ".html", ".ini", ".jpg", ".json", ".jsonl", ".lock", ".log", ".md",
    ".png", ".rst", ".svg", ".toml", ".tsv", ".txt", ".xml", ".yaml", ".yml",
)  # fmt: skip
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ksh", "zsh", "ash"})
_INTERPRETERS: Final = re.compile(
    r"(?:ba|da|k|z|a)?sh|\.|source|python[\d.]*|pypy3?|node|ruby|perl|php|deno|bun|lua|pwsh"
)
_BEFORE: Final = (
    "then", "do", "else", "elif", "if", "while", "until", "!", "{", "time", "exec", "env", "sudo", "doas", "nohup",
    "command", "builtin", "nice", "xargs", "timeout", "eval", "trap",
)  # fmt: skip
"""Words before a command."""

_RUNNERS: Final[Mapping[str, tuple[str, ...]]] = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "gmake": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    "npm": ("package.json",),
    "yarn": ("package.json",),
    "pnpm": ("package.json",),
    "bun": ("package.json",),
    "nox": ("noxfile.py",),
    "tox": ("tox.ini",),
}
"""Programs that run what a file of the folder says, and those files."""


@attrs.define(eq=False)
class Named:
    """What a text names.

    Args:
        words: what may be a path, as it is written; most of it is none.
        run: what is run as a program or read by one: a path, which need not exist yet.
        modules: what may be imported, by path or by dots.
        is_composed: whether it runs something whose name is put together while it runs.
    """

    words: set[str] = attrs.field(factory=set)
    run: set[str] = attrs.field(factory=set)
    modules: set[str] = attrs.field(factory=set)
    is_composed: bool = False


def scan_code(text: str) -> Named:
    """Return what the text of a program in some language names; data files only where a line may run them."""
    found = Named()
    for line in text.splitlines():
        _take_words(line, found, may_run=_RUNNING.search(line) is not None)
    return found


def scan_shell(text: str) -> Named:
    """Return what a shell text names; what it alone writes to does not count."""
    found = scan_code(text)
    scan = _ShellScan(found, _fixed(text))
    scan.read(text)
    found.words -= scan.written - found.run
    return found


def _take_words(text: str, found: Named, *, may_run: bool) -> None:
    words = set(_BETWEEN.split(text))
    for quoted in _QUOTED.finditer(text):
        words.update(_EXPANDED.split(quoted[1] or quoted[2]))
    found.words.update(word for word in words if word and (may_run or not word.lower().endswith(_DATA)))
    if _IMPORTING.search(text):
        found.modules.update(_MODULE.findall(text))


def _fixed(text: str) -> frozenset[str]:
    """Return the variables that a text gives values which stand in it, and no others."""
    fixed, open_ = set[str](), set[str]()
    for name, value, read in _ASSIGNED.findall(text):
        if name:
            (open_ if re.search(r"[$`]", value) else fixed).add(name)
        open_.update(read.split())
    return frozenset(fixed - open_)


@attrs.define(eq=False)
class _ShellScan:
    """Reads a shell text command by command."""

    found: Named
    fixed: frozenset[str]
    written: set[str] = attrs.field(factory=set)

    def read(self, text: str) -> None:
        text = _COMMENT.sub("", text.replace("\\\n", ""))
        inner: list[str] = []
        while (cut := _SUBSTITUTION.sub(lambda place: self._hole(place[1] or place[2] or "", inner), text)) != text:
            text = cut
        text = _VARIABLE.sub(self._value, text)
        self._commands(list(_TOKEN.finditer(text)))
        for each in inner:
            self.read(each)

    def _hole(self, text: str, inner: list[str]) -> str:
        inner.append(text)
        return _HOLE

    def _value(self, place: re.Match[str]) -> str:
        """Return what stands for a variable: nothing where its value stands in a text that is looked at anyhow."""
        name = place["bare"] or place["braced"]
        default = _DEFAULT.fullmatch(name)
        if default is not None:
            self.found.words.add(default[1].strip("\"'"))
        # Positional parameters come from a text that is looked at as well.
        return "" if name in self.fixed or name[:1] in "@*123456789" else _HOLE

    def _commands(self, tokens: list[re.Match[str]]) -> None:
        words: list[str] = []
        depth, direction = 0, ""
        for token in tokens:
            sign = token["sign"]
            if sign is None:
                if direction == ">":
                    self.written.update(_pieces(_unquoted(token["word"])))
                elif direction:
                    self.found.words.update(_pieces(_unquoted(token["word"])))
                else:
                    words.append(token["word"])
                direction = ""
                continue
            direction = sign[0] if sign[0] in "<>" else ""
            if direction:
                continue
            is_pattern = sign == ")" and depth == 0  # of a `case`
            if not is_pattern:
                self._command(words)
            depth = max(0, depth + {"(": 1, ")": -1}.get(sign, 0))
            words = []
        self._command(words)

    def _command(self, raw: list[str]) -> None:
        words = [_unquoted(word) for word in raw]
        for word in words:
            self.found.words.update(piece for piece in _pieces(word) if not piece.lower().endswith(_DATA))
        start = 0
        evaluated = False
        while start < len(words) and (
            words[start] in _BEFORE or words[start].startswith("-") or re.match(r"\w+=", words[start])
        ):
            evaluated = evaluated or words[start] in ("eval", "trap")
            start += 1
        if evaluated:
            self._evaluate(words[start:])
        if start == len(words) or words[start] in ("for", "case", "in", "function"):
            return
        name = os.path.basename(words[start])
        self._run(words[start])
        for file in _RUNNERS.get(name, ()):
            self.found.run.add(file)
        if _INTERPRETERS.fullmatch(name):
            self._script(name, words[start + 1 :])

    def _evaluate(self, words: list[str]) -> None:
        text = " ".join(words)
        self.found.is_composed = self.found.is_composed or _HOLE in text
        if text and _HOLE not in text:
            self.read(text)

    def _script(self, name: str, words: list[str]) -> None:
        """Read what an interpreter is given: a text, a module, or a file."""
        for index, word in enumerate(words):
            rest = words[index + 1 :]
            if not word.startswith("-"):
                self._run(word, is_file=True)
                return
            if word in ("-c", "-e", "-lc", "-ec") and rest:
                if name in _SHELLS:
                    self._evaluate(rest[:1])
                else:
                    self.found.is_composed = self.found.is_composed or rest[0] == _HOLE
                    self.found.modules.update(_MODULE.findall(rest[0]))
                return
            if word == "-m" and rest:
                self.found.modules.add(rest[0])
                return

    def _run(self, word: str, *, is_file: bool = False) -> None:
        before, hole, tail = word.rpartition(_HOLE)
        if re.search(r"[*?\[]", tail) and tail not in ("[", "[["):
            self.found.is_composed = True
        elif not hole:
            if word and (is_file or "/" in word):
                self.found.run.add(word)
        elif tail.startswith("/") and tail.strip("/") and before.count(_HOLE) == 0 and "/" not in before:
            self.found.run.add(tail.lstrip("/"))
        else:
            self.found.is_composed = True


def _pieces(word: str) -> Iterator[str]:
    for part in (word, word.partition("=")[2]):
        yield from filter(None, re.split(r"[\0*?\[\]]", part))
        yield from filter(None, _BETWEEN.split(part))


def _unquoted(word: str) -> str:
    return _QUOTING.sub(lambda found: found[1] or "", word)
