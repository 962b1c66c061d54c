"""Commands that run other commands: what they run is found and evaluated like any other."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs

from amplifier_kit.shell.prefixes import PREFIXES, Prefix
from amplifier_kit.shell.scripts import HOLE, Assignment, SimpleCommand, Word

__all__ = ["UNKNOWN", "Inner", "found_name", "inner_of"]

UNKNOWN: Final = Word(raw="…", values=(HOLE,))
"""An argument that is known only when the command runs."""


@attrs.frozen(kw_only=True)
class Inner:
    """What a command runs besides itself.

    Args:
        commands: commands, to be evaluated in its place.
        texts: shell texts, to be read and evaluated in its place.
        opaque: why what it runs cannot be known; `None` when it can.
        own: the command as far as it does something of its own; `None` when it does nothing.
    """

    commands: tuple[SimpleCommand, ...] = ()
    texts: tuple[str, ...] = ()
    opaque: str | None = None
    own: SimpleCommand | None = None


_SHELLS: Final = frozenset({"ash", "bash", "dash", "ksh", "mksh", "sh", "zsh"})
_FIND_RUNS: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_WIDENING: Final = frozenset({"-o", "-or", "!", "-not", ",", None})
"""Words with which `find` finds more than what one pattern says."""

_FIND_OPTIONS: Final = ("-H", "-P", "-E", "-O")


def inner_of(name: str, command: SimpleCommand, listed: Word = UNKNOWN) -> Inner | None:
    """Return what a command runs, or `None` when it is no wrapper.

    Args:
        name: the command's name without its folder.
        command: the command.
        listed: what `xargs` gives to what it runs.
    """
    if name in _SHELLS:
        return _shell(command)
    reader = _READERS.get(name)
    if reader is not None:
        return reader(command)
    prefix = PREFIXES.get(name)
    if prefix is None:
        return None
    return _behind(name, prefix, command, listed)


def _behind(
    name: str, prefix: Prefix, command: SimpleCommand, listed: Word
) -> Inner | None:
    """Pass over what stands before the command that a prefix runs, and return that."""
    words = list(command.words[1:])
    assignments = list(command.assignments)
    operands = prefix.operands
    while words:
        value = words[0].static
        if value is None:
            return Inner(opaque=f"what {name} runs is known only when it runs")
        if value.startswith("-") and value != "-":
            taken = prefix.words_of(value)
            # an unknown option may take the next word, and then the command is
            # not what it seems
            if not taken:
                return _query(name, value) or Inner(
                    opaque=f"the option {value!r} of {name} is not known here"
                )
            del words[:taken]
        elif prefix.assigns and "=" in value:
            variable, _, content = value.partition("=")
            assignments.append(
                Assignment(name=variable, value=Word(raw=content, values=(content,)))
            )
            del words[0]
        elif operands:
            operands -= 1
            del words[0]
        else:
            break
    # without a command `xargs` runs `echo`
    if name == "xargs":
        mark = _mark_of(command.words[1 : len(command.words) - len(words)], prefix)
        words = _given(words or [Word(raw="echo", values=("echo",))], mark, listed)
    if not words:
        return None
    inner = SimpleCommand(words=tuple(words), assignments=tuple(assignments))
    return Inner(commands=(inner,), own=None if prefix.replaces else command)


def _mark_of(options: Sequence[Word], prefix: Prefix) -> Word | None:
    """Return what stands for the input of `xargs` in what it runs, as `-I` and `--replace` say it."""
    mark: Word | None = None
    at = 0
    while at < len(options):
        option = options[at].static or ""
        letter, value = prefix.letter_with_value(option)
        name, _, text = option.partition("=")
        if name == "--replace":
            mark = Word(raw=text, values=(text or "{}",))
        elif letter == "I":
            if value:
                mark = Word(raw=value, values=(value,))
            else:
                mark = UNKNOWN if at + 1 == len(options) else options[at + 1]
        at += prefix.words_of(option)
    return mark


def _given(words: Sequence[Word], mark: Word | None, listed: Word) -> list[Word]:
    """Return the words that `xargs` runs: what it reads stands at the end, or where the mark does."""
    if mark is None:
        return [*words, listed]
    text = mark.static
    # then any argument may hold it; the command's own name was known before
    if text is None:
        return [words[0], *[UNKNOWN] * len(words[1:])]
    return [
        listed
        if word.static == text
        else attrs.evolve(
            word, values=tuple(value.replace(text, HOLE) for value in word.values)
        )
        for word in words
    ]


def _query(name: str, option: str) -> Inner | None:
    """`command -v` says where a command is and runs nothing."""
    if name == "command" and option in ("-v", "-V"):
        return Inner()
    return None


def _shell(command: SimpleCommand) -> Inner | None:
    """Find the text behind `-c`; a shell with a file is a program like others, one without reads its input."""
    for index, word in enumerate(command.words[1:], start=1):
        value = word.static
        if value is None:
            return Inner(opaque="what the shell runs is known only when it runs")
        # `-c` may stand among other letters, as in `bash -lc`
        if value.startswith("-") and not value.startswith("--") and "c" in value:
            text = None
            if len(command.words) > index + 1:
                text = command.words[index + 1].static
            if text is None:
                return Inner(
                    opaque="the text that the shell runs is known only when it runs"
                )
            return Inner(texts=(text,), commands=_with_own(command))
        if value in (
            "-e",
            "-n",
            "-u",
            "-v",
            "-x",
            "-eu",
            "-ex",
            "-eux",
            "--norc",
            "--noprofile",
            "--posix",
        ):
            continue
        if value.startswith(("-", "+")):
            return Inner(opaque=f"the option {value!r} of the shell is not known here")
        return None
    # `curl … | sh`: the text comes from the pipe, and nobody has seen it
    return Inner(opaque="the shell runs what it reads")


def _with_own(command: SimpleCommand) -> tuple[SimpleCommand, ...]:
    """Keep the variables that the command is given: they are evaluated wherever they stand."""
    true = Word(raw="true", values=("true",))
    if command.assignments:
        return (SimpleCommand(words=(true,), assignments=command.assignments),)
    return ()


def _eval(command: SimpleCommand) -> Inner:
    values = [word.static for word in command.words[1:]]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Inner(opaque="the text that eval runs is known only when it runs")
    # `eval` joins its arguments with blanks before it reads them
    return Inner(texts=(" ".join(known),))


def _trap(command: SimpleCommand) -> Inner:
    if len(command.words) < 2:
        return Inner()
    text = command.words[1].static
    if text is None:
        return Inner(opaque="the text that trap runs is known only when it runs")
    return Inner(texts=() if text in ("-", "-p", "-l", "") else (text,))


def _find(command: SimpleCommand) -> Inner | None:
    """Take out what `-exec` runs; what is found lies below where the search begins, unless it follows links."""
    words = command.words
    runs: list[SimpleCommand] = []
    rest: list[Word] = []
    index = 0
    found = _found_by(words)
    while index < len(words):
        if words[index].static not in _FIND_RUNS:
            rest.append(words[index])
            index += 1
            continue
        end = next(
            (
                i
                for i in range(index + 1, len(words))
                if _ends_run(words[i - 1], words[i])
            ),
            len(words),
        )
        runs.append(
            SimpleCommand(
                words=tuple(_put(word, found) for word in words[index + 1 : end])
            )
        )
        index = end + 1
    if not runs:
        return None
    if not all(run.words for run in runs):
        return Inner(opaque="what find runs is missing")
    return Inner(commands=tuple(runs), own=SimpleCommand(words=tuple(rest)))


def _ends_run(before: Word, word: Word) -> bool:
    """Whether what `-exec` runs ends at a word: a `+` that is not behind `{}` is one of its arguments."""
    return word.static == ";" or (word.static == "+" and before.static == "{}")


def _found_by(words: Sequence[Word]) -> tuple[str, ...]:
    # with links followed the search may leave the folder where it begins
    if any(word.static in ("-L", "-follow") for word in words):
        return (HOLE,)
    starts: list[str] = []
    for word in words[1:]:
        if word.raw.startswith(("-", "(", "!")) and not word.raw.startswith(
            _FIND_OPTIONS
        ):
            break
        starts += [HOLE] if not word.is_known or word.is_pattern else word.values
    name = found_name(words)
    end = "**"
    if name:
        end = f"**/{name}"
    return tuple(f"{start}/{end}" for start in starts) or (f"./{end}",)


def found_name(words: Sequence[Word]) -> str:
    """Return the pattern that every name fits which `find` finds; nothing when there is none, or more than one."""
    values = [word.static for word in words]
    # `-o`, `!` or a second `-name` find files that the first pattern does not
    # name
    if not _WIDENING.isdisjoint(values) or values.count("-name") != 1:
        return ""
    at = values.index("-name") + 1
    name = None
    if at < len(values):
        name = values[at]
    if name and re.fullmatch(r"[\w*][\w*.-]*", name):
        return name
    return ""


def _put(word: Word, found: tuple[str, ...]) -> Word:
    if "{}" not in "".join(word.values):
        return word
    values = [value.replace("{}", place) for value in word.values for place in found]
    return attrs.evolve(word, values=tuple(values), is_pattern=True)


_READERS: Final[Mapping[str, Callable[[SimpleCommand], Inner | None]]] = {
    "eval": _eval,
    "find": _find,
    "trap": _trap,
}
