"""What holds for a shell text as a whole: where it works, whether it writes files, whether it lists their names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_sdk.kit.shell.places import Places
from amplifier_sdk.kit.shell.scripts import HOLE, Script, SimpleCommand, Word

__all__ = ["Scene", "program_of", "word_of"]

_WRITERS: Final = frozenset({
    "7z", "cp", "curl", "dd", "install", "ln", "mv", "patch", "rsync", "sed", "tar", "tee", "truncate", "unzip", "wget",
})  # fmt: skip
_PLAIN_TEXT: Final = (".txt", ".log", ".out", ".err", ".csv", ".md")


@attrs.frozen(kw_only=True)
class Scene:
    """One text in its surroundings.

    Args:
        script: the text, parsed.
        places: what its paths are judged by, where it works.
        writes: whether it writes files that a program may read as more than plain text.
        lists: whether everything that it could hand to `xargs` is the name of a file in the folder.
        depth: how many shells it is nested in.
        variables: those whose values are known.
    """

    script: Script
    places: Places
    writes: bool
    lists: bool
    depth: int
    variables: Mapping[str, str]

    @classmethod
    def of(cls, script: Script, places: Places, variables: Mapping[str, str], depth: int) -> Scene:
        """Look at a text that starts in the folder of the places."""
        places = _moved(script, places)
        return cls(
            script=script,
            places=places,
            writes=_writes(script),
            lists=_lists(script, places),
            depth=depth,
            variables=variables,
        )


def program_of(command: SimpleCommand) -> str:
    """Return the name of the program that a command runs, without its folder; a hole where nobody knows it."""
    return ((command.words[0].static if command.words else None) or HOLE).rpartition("/")[2]


def word_of(text: str) -> Word:
    """Make a word that means a text and nothing else."""
    return Word(raw=text, values=(text,))


def _moved(script: Script, places: Places) -> Places:
    """Return the places as they are where the text works, when it goes to another folder."""
    moves = [c for c in script.commands if c.words and c.words[0].static in ("cd", "pushd", "popd")]
    if not moves:
        return places
    targets = [command.words[1] if len(command.words) > 1 else None for command in moves]
    if len(moves) == 1 and moves[0] is script.commands[0] and targets[0] is not None:
        first = targets[0].static
        if first is not None and places.directory is not None and not first.startswith("-"):
            return attrs.evolve(places, directory=os.path.realpath(os.path.join(places.directory, first)))
    here = places
    for target in targets:
        static = None if target is None else target.static
        if static is None or static.startswith("-") or here.directory is None or not here.may_use(word_of(static)):
            return attrs.evolve(places, directory=None)
        here = attrs.evolve(here, directory=os.path.realpath(os.path.join(here.directory, static)))
    return places


def _writes(script: Script) -> bool:
    """Whether a text writes files that a program may read as more than plain text."""
    return any(
        program_of(command) in _WRITERS
        and not (program_of(command) == "tee" and all(map(_is_plain, command.words[1:])))
        for command in script.commands
    ) or any(
        redirect.writes and redirect.operator != ">&" and not _is_plain(redirect.target)
        for redirect in script.redirects
    )


def _lists(script: Script, places: Places) -> bool:
    """Whether everything that a text could hand to `xargs` is the name of a file in the folder."""
    return not any("<" in redirect.operator for redirect in script.redirects) and all(
        program_of(command) == "xargs" or (_lists_names(command) and all(map(places.may_use, command.words[1:])))
        for command in script.commands
    )


def _lists_names(command: SimpleCommand) -> bool:
    """Whether all that a command puts out are names of files that it was pointed at."""
    arguments = [word.raw for word in command.words[1:]]
    match program_of(command):
        case "fd" | "fdfind" | "find" | "ls":
            return all(word.is_known and "-printf" not in word.values for word in command.words)
        case "grep" | "egrep" | "fgrep" | "rg":
            return any(re.fullmatch(r"-[a-zA-Z]*l[a-zA-Z]*|--files|--files-with-matches", each) for each in arguments)
        case "git":
            return arguments[:1] == ["ls-files"]
        case "head" | "sort" | "tail" | "uniq":
            return all(each.startswith("-") or each.isdigit() for each in arguments)
        case _:
            return False


def _is_plain(word: Word) -> bool:
    """Whether a file certainly holds plain text, as its name says, or is a device."""
    return all(value.startswith("/dev/") or value.endswith(_PLAIN_TEXT) for value in word.values)
