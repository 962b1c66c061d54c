"""What a shell text names: what it runs, in every spelling, and where it looks for it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

import attrs

from amplifier_kit.trust.runners import LAUNCHERS, RUNNERS
from amplifier_kit.trust.scripts import (
    HOLE,
    Named,
    is_data,
    pieces,
    scan_code,
    words_of,
)

__all__ = ["scan_shell"]

_SUBSTITUTION: Final = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_VARIABLE: Final = re.compile(
    r"\$(?:\{(?P<braced>[^{}]*)\}|(?P<bare>[A-Za-z_]\w*|[0-9@*#?!$-]))"
)
_DEFAULT: Final = re.compile(r"\w+:?[-=+](.*)", re.DOTALL)
_COMMENT: Final = re.compile(r"(?m)(?:^|(?<=[\s;]))#[^\n]*")
_TOKEN: Final = re.compile(
    r"""(?P<word>(?:\\.|'[^']*'|"(?:\\.|[^"\\])*"|[^\s;&|<>()'"\\]|['"\\])+)|(?P<sign>\n|[;&|()]|[<>]+&?)""",
    re.DOTALL,
)
_ESCAPES: Final = re.compile(r"\$'((?:\\.|[^'\\])*)'", re.DOTALL)
_QUOTING: Final = re.compile(r"""\\(.)|['"]""", re.DOTALL)
_ASSIGNED: Final = re.compile(
    r"\b([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|[^\s;&|()]*)|\bread\b([^;&|\n]*)"
)
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ksh", "zsh", "ash"})
_INTERPRETERS: Final = re.compile(
    r"(?:ba|da|k|z|a)?sh|\.|source|python[\d.]*|pypy3?|node|ruby|perl|php|deno|bun|lua|pwsh"
)
_BEFORE: Final = (
    "then", "do", "else", "elif", "if", "while", "until", "!", "{", "time", "exec", "env", "sudo", "doas", "nohup",
    "command", "builtin", "nice", "xargs", "timeout", "eval", "trap", "noglob", "setsid", "stdbuf", "ionice",
)  # fmt: skip
"""Words before a command."""

_COUNT: Final = re.compile(r"\d+(?:\.\d+)?[smhd]?")
_FOLDER_OPTIONS: Final = frozenset(
    {"-C", "-I", "--chdir", "--cwd", "--dir", "--directory", "--prefix"}
)
_MODULE_OPTIONS: Final = frozenset(
    {"-m", "-p", "-r", "--import", "--init-file", "--loader", "--rcfile", "--require"}
)
_VALUE_OPTIONS: Final = frozenset(
    {"-O", "-Q", "-W", "-X", "-o", "--conditions", "--env-file"}
)
_SHELL_TEXT: Final = re.compile(r"-[A-Za-z]*c[A-Za-z]*")
_PYTHON_TEXT: Final = re.compile(
    r"-[BbdEiIOqsSuvx]*(?P<option>[cm])(?P<value>.*)", re.DOTALL
)
_OTHER_TEXT: Final = re.compile(
    r"(?:-[A-Za-z]*?e|--eval=?|-p|--print)(?P<value>.*)", re.DOTALL
)
_MODULE: Final = re.compile(r"[\w./@-]+")
_PATTERN: Final = re.compile(r"[*?\[]|\{[^{}]*(?:,|\.\.)[^{}]*\}")
_SUBCOMMANDS: Final = frozenset({"eval", "exec", "run", "task", "test"})
_SCRIPT: Final = re.compile(r"(?i).+\.(?:py|sh|bash|[cm]?[jt]s|rb|pl)")


def scan_shell(text: str) -> Named:
    """Return what a shell text names; what it alone writes to does not count."""
    found = scan_code(text)
    scan = _ShellScan(found, _fixed(text))
    scan.assign(text)
    scan.read(text)
    # what is only written is an output; what is written and run counts
    found.words -= scan.written - found.run
    return found


def _fixed(text: str) -> frozenset[str]:
    """Return the variables that a text gives values which stand in it, and no others."""
    fixed, open_ = set[str](), set[str]()
    for name, value, read in _ASSIGNED.findall(text):
        if name:
            # a value with an expansion in it is known only when it runs
            (open_ if re.search(r"[$`]", value) else fixed).add(name)
        open_.update(read.split())
    return frozenset(fixed - open_)


@attrs.define(eq=False)
class _ShellScan:
    """Reads a shell text command by command."""

    found: Named
    fixed: frozenset[str]
    written: set[str] = attrs.field(factory=set)

    def assign(self, text: str) -> None:
        """Take the folders that variables name: other programs may look there."""
        for name, value, _ in _ASSIGNED.findall(text):
            folders = {part for word in words_of(value) for part in word.split(":")}
            self.found.folders.update(folders)
            if name == "PATH":
                self.found.paths.update(folders)

    def read(self, text: str) -> None:
        text = _ESCAPES.sub(
            lambda place: HOLE if "\\" in place[1] else f"'{place[1]}'", text
        )
        # joined lines first: a comment may not swallow what a shell would run
        text = _COMMENT.sub("", text.replace("\\\n", ""))
        inner: list[str] = []
        # from the inside out: a substitution may hold another one
        while (
            cut := _SUBSTITUTION.sub(
                lambda place: self._hole(place[1] or place[2] or "", inner), text
            )
        ) != text:
            text = cut
        text = _VARIABLE.sub(self._value, text)
        self._commands(list(_TOKEN.finditer(text)))
        for each in inner:
            self.read(each)

    def _hole(self, text: str, inner: list[str]) -> str:
        inner.append(text)
        return HOLE

    def _value(self, place: re.Match[str]) -> str:
        """Return what stands for a variable: nothing where its value stands in a text that is evaluated anyhow."""
        name = place["bare"] or place["braced"]
        default = _DEFAULT.fullmatch(name)
        if default is not None:
            self.found.words.add(default[1].strip("\"'"))
        # Positional parameters come from a text that is evaluated as well.
        if name in self.fixed or name[:1] in "@*123456789":
            return ""
        return HOLE

    def _commands(self, tokens: list[re.Match[str]]) -> None:
        words: list[str] = []
        depth, direction = 0, ""
        for token in tokens:
            sign = token["sign"]
            if sign is None:
                if direction == ">":
                    self.written.update(pieces(_unquoted(token["word"])))
                elif direction:
                    self.found.words.update(pieces(_unquoted(token["word"])))
                else:
                    words.append(token["word"])
                direction = ""
                continue
            direction = ""
            if sign[0] in "<>":
                direction = sign[0]
            if direction:
                continue
            # such a bracket closes nothing, and the words before it are no
            # command
            is_pattern = sign == ")" and depth == 0  # of a `case`
            if not is_pattern:
                self._command(words)
            depth = max(0, depth + {"(": 1, ")": -1}.get(sign, 0))
            words = []
        self._command(words)

    def _command(self, raw: list[str]) -> None:
        words = [_unquoted(word) for word in raw]
        for word in words:
            self.found.words.update(
                piece for piece in pieces(word) if not is_data(piece)
            )
        if words and words[0].lstrip("-s") == "include":  # of a makefile
            self.found.run.update(words[1:])
        # `FOO=1 sudo env python x.py` runs x.py: what stands before is passed
        # over
        start = self._start(words)
        if start == len(words) or words[start] in ("for", "case", "in", "function"):
            return
        self._options(words[start:])
        # a makefile has such marks before a command
        self._run(words[start].lstrip("@+-"))
        name = os.path.basename(words[start])
        # a name without a folder may still be the project's, through `PATH`
        self.found.programs.add(name)
        self.found.run.update(RUNNERS.get(name, ()))
        if _INTERPRETERS.fullmatch(name):
            self._script(name, words[start + 1 :], is_fed="xargs" in words[:start])
        elif name in LAUNCHERS:
            self._launched(words[start + 1 :])
        elif words[start : start + 2] == ["go", "run"]:
            self.found.run.update(
                [word for word in words[start + 2 :] if not word.startswith("-")][:1]
            )

    def _start(self, words: Sequence[str]) -> int:
        """Return where the command begins, behind what is set for it and what only starts it."""
        start, last = 0, ""
        for word in words:
            is_split = last == "env" and word.startswith(("-S", "--split-string"))
            is_before = (
                is_split
                or word in _BEFORE
                or word.startswith("-")
                or re.match(r"\w+=", word)
            )
            # of `timeout 5`
            if not is_before and not (start and _COUNT.fullmatch(word)):
                break
            start += 1
            # their arguments are a shell text of their own
            if is_split or word in ("eval", "trap"):
                if word.startswith("--"):
                    attached = word.partition("=")[2]
                else:
                    attached = word[2:]
                self._evaluate([attached] if is_split and attached else words[start:])
            if word in _BEFORE:
                last = word
        return start

    def _evaluate(self, words: Sequence[str]) -> None:
        text = " ".join(words)
        self.found.is_composed = self.found.is_composed or HOLE in text
        if text and HOLE not in text:
            self.read(text)

    def _options(self, words: Sequence[str]) -> None:
        """Take what options name whose meaning many programs share: folders to look in, and modules."""
        if words[0] in ("cd", "pushd", "PATH_add"):
            self.found.folders.update(words[1:])
            self.found.paths.update(words[1:] if words[0] == "PATH_add" else ())
        # the value may stand in the next word or in the same one, so both are
        # taken
        for option, value in zip(words[1:], [*words[2:], ""], strict=False):
            if option in _FOLDER_OPTIONS:
                self.found.folders.add(value)
            elif option in _MODULE_OPTIONS:
                self.found.modules.update([value, value.replace("::", "/")])
            elif option.startswith(("-m", "-M", "-r")):
                self.found.modules.add(option[2:].replace("::", "/"))
            elif option.startswith("-") and option[:2] in _FOLDER_OPTIONS:
                self.found.folders.add(option[2:])

    def _launched(self, words: Sequence[str]) -> None:
        """Read what a program is given that starts another one: any word of it may be that one."""
        for index, word in enumerate(words):
            name = os.path.basename(word)
            self.found.run.update(RUNNERS.get(name, ()))
            if (
                _SCRIPT.fullmatch(word)
                and HOLE not in word
                and not _PATTERN.search(word)
            ):
                self.found.run.add(word)
            if _INTERPRETERS.fullmatch(name) and name not in (".", "source"):
                self._script(name, words[index + 1 :])

    def _script(self, name: str, words: Sequence[str], *, is_fed: bool = False) -> None:
        """Read what an interpreter is given: a text, a module, or a file.

        Args:
            name: the interpreter.
            words: its arguments.
            is_fed: whether it is given others than these as well.
        """
        is_value = False
        for index, word in enumerate(words):
            if (
                is_value
                or word in _VALUE_OPTIONS
                or word in _MODULE_OPTIONS - {"-m", "-p"}
            ):
                is_value = not is_value
            elif word.startswith("-"):
                if self._text(name, word, words[index + 1 :]):
                    return
            elif not (name in ("bun", "deno") and word in _SUBCOMMANDS):
                self._run(word, is_file=True)
                return
        # an interpreter that `xargs` feeds runs files that no text names
        self.found.is_composed = self.found.is_composed or is_fed

    def _text(self, name: str, option: str, rest: Sequence[str]) -> bool:
        """Read the text or the module that an option gives an interpreter; return whether it is one that does."""
        value = " ".join(rest[:1])
        if name in _SHELLS:
            if _SHELL_TEXT.fullmatch(option) is None:
                return False
            self._evaluate([value])
            return True
        is_python = name.startswith(("python", "pypy"))
        given = (_PYTHON_TEXT if is_python else _OTHER_TEXT).fullmatch(option)
        if given is None:
            return False
        value = given["value"] or value
        self.found.is_python = self.found.is_python or is_python
        if is_python and given["option"] == "m":
            self.found.modules.add(value)
            return True
        self.found.is_composed = self.found.is_composed or value == HOLE
        self.found.modules.update(_MODULE.findall(value.replace("::", "/")))
        return True

    def _run(self, word: str, *, is_file: bool = False) -> None:
        # `$DIR/tools/run.sh` still ends in a path that may be the project's
        before, hole, tail = word.rpartition(HOLE)
        if _PATTERN.search(tail) and tail not in ("[", "[["):
            self.found.is_composed = True
        elif not hole:
            if word and (is_file or "/" in word):
                self.found.run.add(word)
        elif (
            tail.startswith("/")
            and tail.strip("/")
            and before.count(HOLE) == 0
            and "/" not in before
        ):
            self.found.run.add(tail.lstrip("/"))
        else:
            self.found.is_composed = True


def _unquoted(word: str) -> str:
    # stands for a name that is only found when it runs
    if word == "{}":
        return HOLE
    return _QUOTING.sub(lambda found: found[1] or "", word)
