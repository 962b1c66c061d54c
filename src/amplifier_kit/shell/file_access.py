"""Which files a shell text reads and writes, as far as its words say so: rules on paths and backups go by that.

Words are resolved as the policy resolves them, and each counts for what the table says of its place: an operand of
`cat` is read, one of `grep -r` with all below it, the pattern of a search is no path. What a program that the table
does not name does, and one that belongs to the folder, is not known: it may use any file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import attrs

from amplifier_kit.shell.changes import Change, change_of, written_over
from amplifier_kit.shell.grammar import parse_script
from amplifier_kit.shell.path_policy import PathPolicy
from amplifier_kit.shell.script_context import (
    ScriptContext,
    changes_names,
    possible_directories,
)
from amplifier_kit.shell.scripts import (
    HOLE,
    SYSTEM_FOLDERS,
    ShellSyntaxError,
    SimpleCommand,
    Word,
    word_of,
)
from amplifier_kit.shell.table import CallWord, standard_table
from amplifier_kit.shell.wrappers import UNKNOWN, inner_of

__all__ = ["FileAccess", "file_accesses"]

_MAX_DEPTH: Final = 5
_NO_PATHS: Final = frozenset({
    "AWK", "BRANCH", "COUNT", "DATE", "FORMAT", "GLOB", "INTEGER", "JQ", "MODE", "NAME", "NUMBER", "REV", "SED", "SET",
    "SETTING", "SMALL", "SUFFIX", "SUM", "SWITCH", "TEXT", "WORD",
})  # fmt: skip
_READ: Final = frozenset({"AWKFILE", "DIR", "LIST", "READ", "SOURCE", "YQ"})
_SEARCHED: Final = frozenset({"COPIED", "LISTING", "SHOWN", "TREE"})


@attrs.frozen
class FileAccess:
    """A file that a text may use.

    Args:
        path: absolute; `None` where it is known only when the text runs.
        writes: whether it may be changed.
        is_searched: whether all below it is used as well.
        change: what becomes of what it holds, where that is known.
    """

    path: str | None
    writes: bool = True
    is_searched: bool = False
    change: Change = "none"


_UNKNOWN: Final = FileAccess(None)


def file_accesses(
    text: str, directory: str, variables: Mapping[str, str] | None = None
) -> tuple[FileAccess, ...]:
    """Return the files that a text may use.

    Args:
        text: what the shell is to run.
        directory: the absolute folder where it runs.
        variables: those whose values are known; default the home folder and the name of the user.
    """
    known = variables
    if known is None:
        known = {"HOME": os.path.expanduser("~"), "USER": os.environ.get("USER", HOLE)}
    directory = os.path.realpath(directory)
    path_policy = PathPolicy(
        directory=directory, writable=(directory,), is_changing=changes_names(text)
    )
    found = _of_text(text, path_policy, known, 0)
    return tuple(dict.fromkeys(_settled(each, path_policy) for each in found))


def _settled(access: FileAccess, path_policy: PathPolicy) -> FileAccess:
    """Take back that anything is lost where nothing is: a device, or what is made again."""
    path = access.path
    if path is None or path_policy.is_lasting(path):
        return access
    return attrs.evolve(access, change="none")


def _of_text(
    text: str, path_policy: PathPolicy, variables: Mapping[str, str], depth: int
) -> Iterator[FileAccess]:
    try:
        script = parse_script(text, variables)
    except ShellSyntaxError:
        # a text that cannot be read may use any file: rules on paths must ask
        yield _UNKNOWN
        return
    if depth > _MAX_DEPTH or script.doubts:
        yield _UNKNOWN
    if depth > _MAX_DEPTH:
        return
    folders = possible_directories(script, path_policy.directory)
    # behind a repeated move nobody knows how often it was made
    if folders != {path_policy.directory} and script.is_repeated:
        folders |= {None}
    for folder in folders:
        reader = _Reader(
            ScriptContext.of(
                script, attrs.evolve(path_policy, directory=folder), variables, depth
            ),
            folder,
        )
        for command in script.commands:
            yield from reader.command(command, depth)
        for redirect in script.redirects:
            if not redirect.is_of_handle:
                change: Change = "replaced" if redirect.writes else "none"
                use = partial(FileAccess, writes=redirect.writes, change=change)
                # the shell itself opens it, whatever the command does
                yield from reader.word(redirect.target, use)


@attrs.frozen
class _Reader:
    """Reads the commands of a text where they run in one folder."""

    context: ScriptContext
    folder: str | None

    @property
    def path_policy(self) -> PathPolicy:
        return attrs.evolve(self.context.path_policy, directory=self.folder)

    def command(self, command: SimpleCommand, depth: int) -> Iterator[FileAccess]:
        """Yield what a command uses, and what it runs."""
        program = command.program
        if program is None or depth > _MAX_DEPTH:
            yield from self._unknown(command.words)
            return
        folder, _, base = program.rpartition("/")
        name = program
        if folder in SYSTEM_FOLDERS:
            name = base
        inner = None
        if not command.is_function:
            inner = inner_of(name, command, self.context.listed or UNKNOWN)
        if inner is None:
            yield from self._by_table(name, command)
            return
        if inner.opaque is not None:
            yield from self._unknown(command.words[1:])
        if inner.own is not None:
            yield from self._by_table(name, inner.own)
        for each in inner.commands:
            yield from self.command(each, depth + 1)
        for text in inner.texts:
            yield from _of_text(
                text, self.path_policy, self.context.variables, depth + 1
            )

    def word(self, word: Word, use: partial[FileAccess]) -> Iterator[FileAccess]:
        """Yield what a word leads to, each of the names that a pattern stands for."""
        if any("/**" in value for value in word.values):
            starts = (value.partition("/**")[0] or "/" for value in word.values)
            yield from (
                use(self._absolute(start), is_searched=True) for start in starts
            )
            return
        for value in (*word.values, *self._matches(word)):
            yield from (
                use(self._absolute(path)) for path in self.path_policy.paths_in(value)
            )

    def _by_table(self, name: str, command: SimpleCommand) -> Iterator[FileAccess]:
        words = [
            each
            for word in command.words[1:]
            for each in (word, *map(word_of, self._matches(word)))
        ]
        if command.is_function:
            yield from self._unknown(words)
            return
        finding = standard_table().find(name, words, self.path_policy, is_checked=False)
        if finding.refused or "run" in finding.effects:
            change: Change = "none"
            if finding.refused:
                change = "possible"
            # a program that is named by a path is a file that is used as well
            given = [*command.words[:1], *words] if "/" in name else words
            yield from self._unknown(given, change)
            for argument in finding.arguments:
                change = change_of(argument.kind)
                if change != "none":
                    yield from self._argument(argument, _unlikely(change))
        else:
            found = [
                access
                for argument in finding.arguments
                for access in self._argument(argument)
            ]
            yield from found
            for argument in written_over(finding.arguments, self.path_policy):
                yield from self._argument(argument, "replaced")
            # A program that works in the folder takes all of it where it names no file: git, a commit.
            if (
                "work" in finding.effects
                and "names" not in finding.effects
                and not _all_exist(found)
            ):
                yield _UNKNOWN

    def _argument(
        self, argument: CallWord, change: Change | None = None
    ) -> Iterator[FileAccess]:
        if argument.kind in _NO_PATHS or argument.kind.startswith("{"):
            return
        is_searched = argument.kind in _SEARCHED
        use = partial(
            FileAccess,
            writes=argument.kind not in _READ | _SEARCHED,
            is_searched=is_searched,
            change=change or change_of(argument.kind),
        )
        yield from attrs.evolve(self, folder=argument.directory).word(
            argument.word, use
        )

    def _unknown(
        self, words: Sequence[Word], change: Change = "possible"
    ) -> Iterator[FileAccess]:
        """Yield what the words of a command lead to that may use any file besides."""
        yield _UNKNOWN
        use = partial(FileAccess, change=change)
        for word in words:
            yield from self.word(word, use)
            for value in word.values:
                if not value.startswith("-") and "=" in value:  # as in `of=FILE`
                    yield use(self._absolute(value.partition("=")[2]))

    def _matches(self, word: Word) -> tuple[str, ...]:
        """Return the names that a pattern stands for, and a hole where it may stand for others."""
        if not word.is_pattern:
            return ()
        # what is there now is named even where more may come: a backup is better
        # than none
        now = attrs.evolve(self.path_policy, is_changing=False).matches(word)
        if now is not None and not self.path_policy.is_changing:
            return now
        return (*(now or ()), HOLE)

    def _absolute(self, path: str) -> str | None:
        if HOLE in path or (self.folder is None and not path.startswith("/")):
            return None
        return os.path.join(self.folder or "/", path)


def _unlikely(change: Change) -> Change:
    """Return what a program of the folder does with a file of a kind: what it writes over, it mostly made itself."""
    if change == "replaced":
        return "possible"
    return change


def _all_exist(found: Sequence[FileAccess]) -> bool:
    """Whether every word is a file, so that none is a revision, and there is one."""
    return bool(found) and all(
        access.path is not None and os.path.lexists(access.path) for access in found
    )
