"""Properties of a shell text as a whole: where it works, whether it writes files, whether it lists their names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

import attrs

from amplifier_kit.shell.path_policy import PathPolicy
from amplifier_kit.shell.renames import renames
from amplifier_kit.shell.scripts import HOLE, Script, SimpleCommand, Word, word_of
from amplifier_kit.shell.setters import builtin_words
from amplifier_kit.shell.wrappers import found_name

__all__ = ["ScriptContext", "possible_directories", "program_of"]

_WRITERS: Final = frozenset({
    "7z", "bunzip2", "bzip2", "cp", "curl", "dd", "gunzip", "gzip", "install", "ln", "mv", "patch", "rsync", "sed",
    "split", "tar", "tee", "truncate", "unzip", "wget", "xz",
})  # fmt: skip
_PLAIN_TEXT: Final = (".txt", ".log", ".out", ".err", ".csv", ".md")
_MOVES: Final = ("cd", "pushd", "popd")
_RUN_TEXTS: Final = frozenset({"eval", "trap"})
_MAX_FOLDERS: Final = 256
"""In so many folders a text may work: each move to one that is not there yet doubles them."""


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
        """Look at a text that starts in the folder of a policy of paths."""
        path_policy = _moved(script, path_policy)
        return cls(
            script=script,
            path_policy=path_policy,
            writes=_writes(script),
            texts=_texts(script),
            listed=_listed(script, path_policy),
            depth=depth,
            variables=variables,
        )

    def is_renamed_before(self, command: SimpleCommand) -> bool:
        """Whether files may have other names by the time that a command runs."""
        if not self.path_policy.is_changing:
            return False
        if self.script.is_repeated or command not in self.script.commands:
            return True
        earlier = self.script.commands[: self.script.commands.index(command)]
        return any(renames(each.text) for each in earlier)

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
    return ((command.words[0].static if command.words else None) or HOLE).rpartition(
        "/"
    )[2]


def _moved(script: Script, path_policy: PathPolicy) -> PathPolicy:
    """Return the path policy as it is where the text works, when it goes to another folder."""
    starts = {path_policy.directory, *path_policy.alternatives}
    found = (possible_directories(script, start) for start in starts)
    possible = frozenset[str | None]().union(*found)
    if len(possible) == 1:
        return attrs.evolve(path_policy, directory=next(iter(possible)))
    # Below the start a relative path leads to what it leads to from there, or to something further inside.
    if all(
        _is_below(each, path_policy.directory)
        and path_policy.may_use(word_of(each or "/"))
        for each in possible
    ):
        return attrs.evolve(path_policy, alternatives=tuple(possible))
    return attrs.evolve(path_policy, directory=None)


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
    moves = [words for words in commands if words and words[0].static in _MOVES]
    if len(moves) == 1 and moves[0] is commands[0]:
        folder = _folder(moves[0], start)
        if folder is None or _exists(folder):
            return frozenset({folder})
    # A move to a folder that is not there yet may fail.
    possible = {start}
    found = {start}
    for words in moves:
        reached = {_folder(words, folder) for folder in possible}
        possible = reached | (set() if all(map(_exists, reached)) else possible)
        found |= possible
        if len(found) > _MAX_FOLDERS:
            return frozenset({None})
    return frozenset(found)


def _folder(move: Sequence[Word], start: str | None) -> str | None:
    """Return the folder that a command goes to; `None` when that is not known."""
    if len(move) == 2:
        target = move[1]
    else:
        target = None
    if target is None or target.is_pattern:
        static = None
    else:
        static = target.static
    if not static or start is None or static.startswith("-"):
        return None
    path = os.path.join(start, static)
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
    if any("<" in redirect.operator for redirect in script.redirects):
        return None
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
