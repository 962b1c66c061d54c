"""Rules on simple commands: which run, which are asked about, which never run; with examples that are checked."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import attrs

from amplifier_kit.shell.decisions import Decision
from amplifier_kit.shell.path_policy import PathPolicy
from amplifier_kit.shell.scripts import HOLE, SimpleCommand, Word

__all__ = ["END", "CommandRule", "PathRule"]

PathRule: TypeAlias = Literal["any", "read", "write", "work"]
"""What a rule wants of a command's paths.

`read`: they lead to no secret and to nobody's home. `write`: they lie in folders that may be written. `work`: the
same, and may be those folders themselves. The last two want the command to run in such a folder as well.
"""

END: Final = "$"
"""The last word of a pattern that nothing may follow."""


@attrs.frozen(kw_only=True)
class CommandRule:
    """One rule.

    A pattern is words that the command begins with: `git status`. In a word `*` stands for any characters, and
    `a|b` for either; `**` stands for any words, and `$` at the end for the command's end.

    Args:
        decision: what becomes of a command that fits one of the patterns.
        commands: the patterns.
        paths: what all the command's words behind the first must be, or the rule does not fit.
        runs_files: whether such a command runs a file of the folder it works in; then it does not fit where the same
            text also writes files, whose content nobody has seen.
        reason: why, for the person and the model.
        match: commands that must fit; checked when the rules are loaded.
        not_match: commands that must not.
    """

    decision: Decision
    commands: tuple[str, ...]
    paths: PathRule = "any"
    runs_files: bool = False
    reason: str | None = None
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()

    def fits(self, command: SimpleCommand, name: str, path_policy: PathPolicy) -> bool:
        """Whether the rule is about a command.

        What is not known before it runs fits every pattern of a rule that asks, and none of another's words. For one
        that asks or denies, options may stand between the words, as in `git -C . push`.

        Args:
            command: the command.
            name: its name, without the folder where that is one of the system's.
            path_policy: what its paths are evaluated by.
        """
        # the folder of a program of the system is taken off, so that `/bin/rm` is
        # `rm`
        words = (Word(raw=name, values=(name,)), *command.words[1:])
        patterns = _beginning_with(self.commands, name, self.decision)
        if not any(_fits(pattern, words, 0, self.decision) for pattern in patterns):
            return False
        if self.paths in ("write", "work") and not path_policy.is_inside:
            # it works in the folder where it runs, whatever its arguments name
            return False
        return all(self._path_fits(word, path_policy) for word in command.words[1:])

    def _path_fits(self, word: Word, path_policy: PathPolicy) -> bool:
        if self.runs_files and any(
            value.startswith("/dev/") and value != "/dev/null" for value in word.values
        ):
            return False  # what comes from a handle has not been seen
        checks = {
            "read": path_policy.may_read,
            "write": path_policy.may_write,
            "work": path_policy.may_use,
        }
        return self.paths == "any" or checks[self.paths](word)


@lru_cache(maxsize=4096)
def _beginning_with(
    patterns: tuple[str, ...], name: str, decision: Decision
) -> tuple[tuple[str, ...], ...]:
    """Return the words of the patterns that may fit a command of a name: there are many, and many commands."""
    word = Word(raw=name, values=(name,))
    return tuple(
        each
        for each in _split(patterns)
        if not each or each[0] == "**" or _fits_word(each[0], word, decision)
    )


@lru_cache(maxsize=256)
def _split(patterns: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(shlex.split(pattern)) for pattern in patterns)


def _fits(
    pattern: Sequence[str], words: Sequence[Word], at: int, decision: Decision
) -> bool:
    """Whether the words from a place on fit."""
    if not pattern:
        return True
    first, rest = pattern[0], pattern[1:]
    if first == END and not rest:
        return at >= len(words)
    if first == "**":
        return any(
            _fits(rest, words, index, decision) for index in range(at, len(words) + 1)
        )
    if (
        at < len(words)
        and _fits_word(first, words[at], decision)
        and _fits(rest, words, at + 1, decision)
    ):
        return True
    return (
        # a rule that allows takes its words as they stand; only refusals are read
        # widely
        decision != "allow" and at > 0 and _fits_further(pattern, words, at, decision)
    )


def _fits_further(
    pattern: Sequence[str], words: Sequence[Word], at: int, decision: Decision
) -> bool:
    """Whether words fit with options between them, or in another order: what refuses takes in all that may be meant."""
    if pattern[0].startswith("-"):
        positions = range(at + 1, len(words))
        return any(
            _fits(pattern[1:], [*words[:index], *words[index + 1 :]], at, decision)
            for index in positions
            if _fits_word(pattern[0], words[index], decision)
        )
    if at >= len(words) or not words[at].may_be_option:
        return False
    return any(_fits(pattern, words, at + taken, decision) for taken in (1, 2))


def _fits_word(pattern: str, word: Word, decision: Decision) -> bool:
    """Whether all that a word may be fits, for a rule that allows; for others one value is enough."""
    # the asymmetry is the point: in doubt a command is asked about, never allowed
    check = any
    if decision == "allow":
        check = all
    return check(
        _fits_value(pattern, value, loose=decision == "ask") for value in word.values
    )


def _fits_value(pattern: str, value: str, *, loose: bool) -> bool:
    start, hole, _ = value.partition(HOLE)
    for alternative in pattern.split("|"):
        if hole and loose and _may_become(start, alternative):
            return True
        if loose and _abbreviates(value, alternative):
            return True
        if (
            (alternative == "*" and not loose)
            if hole
            else fnmatchcase(value, alternative)
        ):
            return True
    return False


def _abbreviates(value: str, pattern: str) -> bool:
    """Whether a long option may be short for the one that a pattern names."""
    option = value.partition("=")[0]
    # GNU's getopt takes any unambiguous beginning of a long option
    return option.startswith("--") and len(option) > 3 and pattern.startswith(option)


def _may_become(start: str, pattern: str) -> bool:
    """Whether a word of which only the start is known may fit a pattern."""
    literal = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    return start.startswith(literal) or literal.startswith(start)
