"""Properties of a shell text as a whole: where it works, whether it writes files, whether it lists their names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Final

import attrs

from amplifier_kit.shell.path_policy import PathPolicy
from amplifier_kit.shell.scripts import HOLE, Script, SimpleCommand, Word, word_of
from amplifier_kit.shell.setters import builtin_words
from amplifier_kit.shell.wrappers import found_name

__all__ = [
    "ScriptContext",
    "changes_names",
    "possible_directories",
    "program_of",
]

_WRITERS: Final = frozenset({
    "7z", "bunzip2", "bzip2", "cp", "curl", "dd", "gunzip", "gzip", "install", "ln", "mv", "patch", "rsync", "sed",
    "split", "tar", "tee", "truncate", "unzip", "wget", "xz",
})  # fmt: skip
_PLAIN_TEXT: Final = (".txt", ".log", ".out", ".err", ".csv", ".md")
_MOVES: Final = ("cd", "pushd", "popd")
_RUN_TEXTS: Final = frozenset({"eval", "trap"})
_UNQUOTED: Final = str.maketrans("", "", "\"'\\")
_SEVERAL: Final = re.compile(r"[;&|\n(){}`<>]|\b(?:do|then)\b")
_RENAMING: Final = re.compile(
    r"(?<![\w.-])(?:mv|cp|ln|rename|rsync|install|unzip|tar|cpio|git\b[^;&|\n]*?\b(?:mv|checkout|switch|stash|restore|pull"
    r"|merge|reset|rebase|clone|init|worktree|apply|am|cherry-pick|revert|submodule))(?![\w-])"
)
"""Programs behind which a path may be another than when the text was evaluated."""

_MAX_FOLDERS: Final = 256
"""In so many folders a text may work: each move to one that is not there yet doubles them."""

_MAX_CONTEXTS: Final = (32, 4, 1, 1, 1, 1)
"""In so many of them it is evaluated, by how deep it is nested; what may work in more works where nobody knows."""

_MAX_EVALUATIONS: Final = 500
"""So many commands are evaluated in more than one folder."""


@attrs.frozen(kw_only=True)
class ScriptContext:
    """One text in its surroundings.

    Args:
        script: the text, parsed.
        path_policy: what its paths are evaluated by, where it works.
        writes: whether it writes files that a program may read as more than plain text.
        texts: the names of the files of plain text that it writes.
        listed: what stands for the names that it could hand to `xargs`; `None` when they may be anything.
        depth: how many shells it is nested in.
        variables: those whose values are known.
    """

    script: Script
    path_policy: PathPolicy
    writes: bool
    texts: frozenset[str]
    listed: Word | None
    depth: int
    variables: Mapping[str, str]

    @classmethod
    def of(
        cls,
        script: Script,
        path_policy: PathPolicy,
        variables: Mapping[str, str],
        depth: int,
    ) -> ScriptContext:
        """Look at a text that works in the folder of a policy of paths."""
        return cls(
            script=script,
            path_policy=path_policy,
            writes=_writes(script),
            texts=_texts(script),
            listed=_listed(script, path_policy),
            depth=depth,
            variables=variables,
        )

    @classmethod
    def each(
        cls,
        script: Script,
        path_policy: PathPolicy,
        variables: Mapping[str, str],
        depth: int,
    ) -> Iterator[ScriptContext]:
        """Look at a text in each folder where it may work, when it starts in the folder of a policy of paths."""
        for moved in _moved(script, path_policy, depth):
            yield cls.of(script, moved, variables, depth)

    def is_renamed_before(self, command: SimpleCommand) -> bool:
        """Whether files may have other names by the time that a command runs."""
        if not self.path_policy.is_changing:
            return False
        if self.script.is_repeated or command not in self.script.commands:
            return True
        earlier = self.script.commands[: self.script.commands.index(command)]
        return any(_renames(each.text) for each in earlier)

    def fills(self, command: SimpleCommand) -> bool:
        """Whether the text writes files that a command which runs files may take for its own."""
        return self.writes or any(
            fnmatchcase(
                text,
                value.rpartition("/")[2]
                if word.is_pattern
                else value.rpartition("/")[2].rpartition("=")[2],
            )
            for word in command.words[1:]
            for value in word.values
            for text in self.texts
        )


def program_of(command: SimpleCommand) -> str:
    """Return the name of the program that a command runs, without its folder; a hole where nobody knows it."""
    return (command.words[0].static or HOLE).rpartition("/")[2]


def _moved(script: Script, path_policy: PathPolicy, depth: int) -> Iterator[PathPolicy]:
    """Yield the path policy as it is in each folder where the text may work."""
    possible = possible_directories(script, path_policy.directory)
    is_inside = all(
        _is_below(each, path_policy.directory)
        and path_policy.may_use(word_of(each or "/"))
        for each in possible
    )
    is_bounded = (
        len(possible) <= _MAX_CONTEXTS[depth]
        and len(possible) * len(script.commands) <= _MAX_EVALUATIONS
    )
    # one unknown folder is stricter than any known one, and it is one evaluation
    if len(possible) > 1 and not (is_inside and is_bounded):
        possible = frozenset({None})
    for directory in possible:
        yield attrs.evolve(path_policy, directory=directory)


def possible_directories(script: Script, start: str | None) -> frozenset[str | None]:
    """Return the folders in which the commands of a text may run; `None` stands for one that is not known.

    Args:
        script: the text, parsed.
        start: where it begins to run.
    """
    commands = [builtin_words(command) for command in script.commands]
    if any(
        words and words[0].static in _RUN_TEXTS and _may_move(words)
        for words in commands
    ):
        return frozenset({None})
    moves = [
        (command, words)
        for command, words in zip(script.commands, commands, strict=True)
        if words and words[0].static in _MOVES
    ]
    is_plain = all(command.statement is not None for command, _ in moves)
    # a `cd ..` in a loop may climb as often as the loop runs
    if script.is_repeated and not is_plain:
        return frozenset({None})
    firsts = {command.statement: command for command in reversed(script.commands)}
    # `cd sub && …` is what nearly every text begins with: a move to a folder that
    # is there cannot fail, so it is the only folder
    if len(moves) == 1 and is_plain and moves[0][0] is script.commands[0]:
        folder = _folder(moves[0][1], start)
        if folder is None or _exists(folder):
            return frozenset({folder})
    possible = {start}
    found = {start}
    for statement, parts in groupby(moves, key=lambda move: move[0].statement):
        outcomes = set[str | None]()
        for command, words in parts:
            reached = {_folder(words, folder) for folder in possible}
            # What stands before it may fail, and a move to a folder that is not there yet.
            is_certain = command is firsts[statement] and all(map(_exists, reached))
            if statement is None or not is_certain:
                outcomes |= possible
            possible = reached
            # such a move may be skipped or run in a shell of its own, so the
            # folders before it stay possible
            if statement is None:
                possible |= outcomes
            found |= reached
            if len(found) > _MAX_FOLDERS:
                return frozenset({None})
        possible |= outcomes
    return frozenset(found)


def _folder(move: Sequence[Word], start: str | None) -> str | None:
    """Return the folder that a command goes to; `None` when that is not known."""
    if len(move) != 2 or move[1].is_pattern:
        return None
    static = move[1].static
    if not static or start is None or static.startswith("-"):
        return None
    path = os.path.join(start, static)
    # resolved, so that two ways to one folder count as one
    real = os.path.realpath(path)
    # The shell takes `..` off the text, not off what a link leads to.
    is_plain = (
        ".." not in static.split("/")
        or os.path.realpath(os.path.normpath(path)) == real
    )
    if is_plain:
        return real
    return None


def _exists(folder: str | None) -> bool:
    return folder is not None and os.access(f"{folder}/.", os.X_OK)


def _may_move(words: Sequence[Word]) -> bool:
    """Whether a text that the shell runs may go to another folder."""
    return any(
        not word.is_known or re.search(r"\b(?:cd|pushd|popd|eval)\b", value)
        for word in words[1:]
        for value in word.values
    )


def _is_below(path: str | None, start: str | None) -> bool:
    return (
        path is not None
        and start is not None
        and os.path.commonpath((path, start)) == start
    )


def _texts(script: Script) -> frozenset[str]:
    """Return the names of the files of plain text that a text writes."""
    targets = [redirect.target for redirect in script.redirects if redirect.writes]
    targets += [
        word
        for command in script.commands
        if program_of(command) == "tee"
        for word in command.words[1:]
    ]
    return frozenset(
        value.rpartition("/")[2] for target in targets for value in target.values
    )


def _writes(script: Script) -> bool:
    """Whether a text writes files that a program may read as more than plain text."""
    return any(
        (
            program_of(command) in _WRITERS
            and not (
                program_of(command) == "tee" and all(map(_is_plain, command.words[1:]))
            )
        )
        or (
            program_of(command) == "git"
            and any(word.static == "apply" for word in command.words[1:])
        )
        for command in script.commands
    ) or any(
        redirect.writes and not redirect.is_of_handle and not _is_plain(redirect.target)
        for redirect in script.redirects
    )


def _listed(script: Script, path_policy: PathPolicy) -> Word | None:
    """Return what stands for the names that a text could hand to `xargs`, when all are names in the folder."""
    # then `xargs` may read a file instead of what the commands before it put out
    if any("<" in redirect.operator for redirect in script.redirects):
        return None
    # the others feed `xargs`; one that puts out anything else than names makes
    # them unknown
    commands = [
        command for command in script.commands if program_of(command) != "xargs"
    ]
    if not all(
        _lists_names(command) and all(map(path_policy.may_use, command.words[1:]))
        for command in commands
    ):
        return None
    filters = [
        found_name(command.words)
        for command in commands
        if program_of(command) == "find"
    ]
    values = tuple(f"./**/{name}" if name else "./**" for name in filters) or ("./**",)
    return Word(raw="…", values=values, is_pattern=True)


def _lists_names(command: SimpleCommand) -> bool:
    """Whether all that a command puts out are names of files that it was pointed at."""
    arguments = [word.raw for word in command.words[1:]]
    match program_of(command):
        case "fd" | "fdfind" | "find" | "ls":
            return all(
                word.is_known and "-printf" not in word.values for word in command.words
            )
        case "grep" | "egrep" | "fgrep" | "rg":
            return any(
                re.fullmatch(r"-[a-zA-Z]*l[a-zA-Z]*|--files|--files-with-matches", each)
                for each in arguments
            )
        case "git":
            return arguments[:1] == ["ls-files"]
        case "head" | "sort" | "tail" | "uniq":
            return all(each.startswith("-") or each.isdigit() for each in arguments)
        case _:
            return False


def _is_plain(word: Word) -> bool:
    """Whether a file certainly holds plain text, as its name says, or is a device."""
    return all(
        value.startswith("/dev/")
        or (value.endswith(_PLAIN_TEXT) and not value.endswith("CMakeLists.txt"))
        for value in word.values
    )


def _renames(text: str) -> bool:
    """Whether a program in a text gives files other names."""
    # quotes inside a name, as in `m'v'`, change nothing for the shell
    return bool(_RENAMING.search(text.translate(_UNQUOTED)))


def changes_names(text: str) -> bool:
    """Whether a text gives files other names before it uses them: what is there now says nothing then."""
    # a lone `mv a b` uses its paths before it renames anything
    return _renames(text) and bool(_SEVERAL.search(text.strip()))
