"""The table of known programs: which options and operands each may be given unasked; what it does not name asks."""

from __future__ import annotations

import re
import tomllib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs

from amplifier_kit.shell.kinds import kind_fits
from amplifier_kit.shell.path_policy import PathPolicy
from amplifier_kit.shell.scripts import Word, word_of
from amplifier_kit.shell.usages import Operand, Option, ProgramUsage, expand, read_usage

__all__ = [
    "CallFinding",
    "CallWord",
    "Refusal",
    "Table",
    "covered_table",
    "standard_table",
]

Refusal: TypeAlias = Literal["unlisted", "unknown", "secret"]
"""Why a call is refused."""

_FOLDER: Final = Path(__file__).with_name("known")
_COVERED: Final = Path(__file__).with_name("covered.toml")
_READING: Final = frozenset({"AWKFILE", "READ", "SHOWN", "SOURCE", "TREE"})
"""Kinds of what is read: a path of the folder is refused only for a secret."""

_DECISIVE: Final = frozenset({"AWK", "JQ", "SED", "YQ"})
"""Kinds that are checked in any case, as sets of words are: a program in such a language may open files."""

_NUMBER: Final = re.compile(r"-\d{1,7}")
_ABOUT_ITSELF: Final = frozenset({"--version", "--help", "-V"})


@attrs.frozen
class CallWord:
    """A word of a call, of which kind its place is, and where relative paths start there."""

    kind: str
    word: Word
    directory: str | None


@attrs.frozen(kw_only=True)
class CallFinding:
    """What the table says of a call.

    Args:
        name: the program, with its subcommands.
        refused: the word that no usage takes; empty when the call is one that the table names.
        cause: `unlisted` where the program or subcommand is not in the table, `secret` where it would read one, and
            `unknown` where only its arguments are none that the table names.
        effects: of the usage that the call is: `run`, `work`, `names`.
        arguments: the words that have a kind, in the order in which they were checked.
    """

    name: str = ""
    refused: str = ""
    cause: Refusal = "unknown"
    effects: frozenset[str] = frozenset()
    arguments: tuple[CallWord, ...] = ()


class _RefusedError(Exception):
    """A usage does not take a word."""

    def __init__(self, word: str, at: int, cause: Refusal = "unknown") -> None:
        super().__init__(word)
        self.word, self.at, self.cause = word, at, cause


class Table:
    """Programs and how they may be called unasked.

    Args:
        programs: usages by name; `a|b` names two programs, `git status` a subcommand.

    Raises:
        ValueError: a usage cannot be read.
    """

    def __init__(self, programs: Mapping[str, Sequence[str]]) -> None:
        self._usages: dict[str, tuple[ProgramUsage, ...]] = {}
        for key, texts in programs.items():
            names = key.split("|")
            usages = tuple(read_usage(text, names[0]) for text in texts)
            self._usages.update((name, usages) for name in names)
        # few names are patterns, such as `python3.*`; all others are found by one
        # look-up
        self._patterns = tuple(name for name in self._usages if "*" in name)

    @property
    def usages(self) -> Mapping[str, tuple[ProgramUsage, ...]]:
        """The usages by name."""
        return self._usages

    def knows(self, name: str) -> bool:
        """Whether the table names a program."""
        return self._find(name) is not None

    def find(
        self,
        name: str,
        words: Sequence[Word],
        path_policy: PathPolicy,
        *,
        is_checked: bool = True,
    ) -> CallFinding:
        """Return what the table says of a call.

        Args:
            name: the program.
            words: its arguments, patterns put beside what they stand for.
            path_policy: what its paths are evaluated by.
            is_checked: whether a usage takes words of the right kinds alone; else its kinds say what the words are.
        """
        usages = self._find(name)
        if usages is None:
            return CallFinding(refused=name, cause="unlisted")
        if len(words) == 1 and words[0].static in _ABOUT_ITSELF and not _is_raw(usages):
            runs = any("run" in usage.effects for usage in usages)
            return CallFinding(effects=frozenset({"run"} if runs else ()))
        # a program may be called in several ways: the first usage that takes the
        # call counts
        failed: list[_RefusedError] = []
        for usage in usages:
            try:
                finding = _Call(self, usage, path_policy, is_checked=is_checked).take(
                    words
                )
                return attrs.evolve(finding, name=finding.name or name)
            except _RefusedError as error:
                failed.append(error)
        # the usage that got furthest is most likely the one that was meant
        best = max(
            failed,
            key=lambda error: error.at,
            default=_RefusedError(name, 0, "unlisted"),
        )
        return CallFinding(refused=best.word or name, cause=best.cause)

    def subcommand(self, name: str, words: Sequence[Word]) -> Sequence[Word] | None:
        """Return the words of a call from its subcommand on; `None` when it has none or its options are not known."""
        for usage in self._find(name) or ():
            if usage.below is None:
                continue
            taken = _Call(self, usage, None).skip_options(words)
            if taken is not None:
                return taken
        return None

    def _find(self, name: str) -> tuple[ProgramUsage, ...] | None:
        if name in self._usages:
            return self._usages[name]
        pattern = next(
            (each for each in self._patterns if fnmatchcase(name, each)), None
        )
        if pattern is None:
            return None
        return self._usages[pattern]


@attrs.define(eq=False)
class _Call:
    """One call, read by one usage."""

    _table: Table
    _usage: ProgramUsage
    _path_policy: PathPolicy | None
    _is_checked: bool = True
    _arguments: list[CallWord] = attrs.field(factory=list, init=False)
    _given: set[str] = attrs.field(factory=set, init=False)
    _stood_first: bool = attrs.field(default=False, init=False)
    _has_operands: bool = attrs.field(default=False, init=False)
    _is_moved: bool = attrs.field(default=False, init=False)
    _queue: deque[Word] = attrs.field(factory=deque, init=False)
    _length: int = attrs.field(default=0, init=False)

    def take(self, words: Sequence[Word]) -> CallFinding:
        """Return what is to be said of a call of the usage.

        Raises:
            _RefusedError: the usage does not take one of its words.
        """
        usage = self._usage
        self._start(words)
        operands: list[Word] = []
        ends = self._rest_begins()
        is_behind_dashes = usage.is_raw
        while self._queue:
            word = self._queue.popleft()
            if is_behind_dashes or not _may_be_option(word):
                if usage.below is not None:
                    return self._below(word)
                operands.append(word)
                self._has_operands = True
                # behind `docker run IMAGE` the dashes belong to what runs in it
                if ends is not None and len(operands) >= ends - self._stood_first:
                    operands += self._queue
                    break
            elif word.static == "--":
                is_behind_dashes = True
            else:
                self._option(word)
        if usage.below is not None or (
            usage.needed and usage.needed.isdisjoint(self._given)
        ):
            raise _RefusedError("", 0)
        self._place(operands)
        return CallFinding(effects=usage.effects, arguments=tuple(self._arguments))

    def skip_options(self, words: Sequence[Word]) -> Sequence[Word] | None:
        """Return the words from the first that is no option on; `None` when an option is not known."""
        self._start(words)
        while self._queue and _may_be_option(self._queue[0]):
            try:
                self._option(self._queue.popleft())
            except _RefusedError:
                return None
        return tuple(self._queue)

    def _start(self, words: Sequence[Word]) -> None:
        self._length = len(words)
        self._queue = deque(
            _unbundled(self._usage, words) if self._usage.is_bundled else words
        )

    def _refuse(self, word: Word) -> _RefusedError:
        return _RefusedError(word.raw, self._length - len(self._queue))

    def _rest_begins(self) -> int | None:
        operands = self._usage.operands
        if operands and operands[-1].many == "...":
            return len(operands) - 1
        return None

    def _below(self, word: Word) -> CallFinding:
        """Return what is to be said of a subcommand with all that follows."""
        assert self._path_policy is not None
        name = f"{self._usage.below} {word.static}"
        if word.static is None or word.is_pattern or not self._table.knows(name):
            raise _RefusedError(word.raw, self._length, "unlisted")
        finding = self._table.find(
            name, tuple(self._queue), self._path_policy, is_checked=self._is_checked
        )
        if finding.refused:
            raise _RefusedError(finding.refused, self._length, finding.cause)
        arguments = (*self._arguments, *finding.arguments)
        return attrs.evolve(
            finding, effects=self._usage.effects | finding.effects, arguments=arguments
        )

    def _option(self, word: Word) -> None:
        """Take an option with its values."""
        options, value = self._usage.options, word.static
        # a pattern that begins with a dash may become any option
        if value is None or (word.is_pattern and "=" not in value):
            raise self._refuse(word)
        name, equals, text = value.partition("=")
        if value in options:
            self._values(options[value], word, None)
        elif (
            equals
            and name in options
            and options[name].kinds
            and (name.startswith("--") or len(name) > 2)
        ):
            self._values(options[name], word, text)
        elif "-#" in options and _NUMBER.fullmatch(value):
            self._given.add("-#")
        elif value.startswith("--"):
            raise self._refuse(word)
        else:
            self._letters(word, value)

    def _letters(self, word: Word, value: str) -> None:
        for at in range(1, len(value)):
            option = self._usage.options.get(f"-{value[at]}")
            if option is None:
                raise self._refuse(word)
            if option.kinds:
                self._values(option, word, value[at + 1 :] or None)
                return
            self._values(option, word, None)

    def _values(self, option: Option, word: Word, attached: str | None) -> None:
        self._given.add(option.name)
        self._stood_first |= option.stands_first
        kinds = option.kinds
        if attached is not None:
            self._check(kinds[0], attrs.evolve(word, raw=word.raw, values=(attached,)))
            kinds = kinds[1:]
        elif option.is_attached:
            return
        for kind in kinds:
            if not self._queue:
                raise self._refuse(word)
            value = self._queue.popleft()
            # it may become several words, and the others would stand in other
            # places
            if value.may_split or value.is_pattern:
                raise self._refuse(value)
            self._check(kind, value)

    def _check(self, kind: str, word: Word) -> None:
        if self._path_policy is None:
            return
        self._arguments.append(CallWord(kind, word, self._path_policy.directory))
        is_decisive = self._is_checked or kind in _DECISIVE or kind.startswith("{")
        if is_decisive and not kind_fits(kind, word, self._path_policy):
            # inside the folders all may be read but secrets, so only one can be
            # the reason
            is_secret = kind in _READING and kind_fits("WORK", word, self._path_policy)
            raise _RefusedError(
                word.raw,
                self._length - len(self._queue),
                "secret" if is_secret else "unknown",
            )
        if kind == "DIR":
            # tar goes there from then on
            if self._usage.is_bundled and (self._has_operands or self._is_moved):
                raise self._refuse(word)
            self._is_moved = True
            self._path_policy = attrs.evolve(
                self._path_policy, directory=self._path_policy.real(word.values[0])
            )

    def _place(self, words: Sequence[Word]) -> None:
        """Check operands, each for its place: those in the middle are for the one that takes in any number."""
        slots = self._usage.operands[self._stood_first :]
        at = next(
            (
                index
                for index, operand in enumerate(slots)
                if operand.many in ("*", "+", "...")
            ),
            None,
        )
        if at is None:
            self._place_each(slots, words)
            return
        many, behind = slots[at], slots[at + 1 :]
        # places behind the one for any number are filled from the end, as in `cp
        # A… DIR`
        last = max(0, len(words) - len(behind))
        first = min(at, last)
        found = words[first:last] or (
            [] if many.default is None else [word_of(many.default)]
        )
        if many.many == "+" and not found:
            raise _RefusedError("", 0)
        self._place_each(slots[:at], words[:first])
        for word in found:
            self._check(many.kind, word)
        self._place_each(behind, words[last:])

    def _place_each(self, slots: Sequence[Operand], words: Sequence[Word]) -> None:
        """Check operands of which each has a place of its own."""
        missing = slots[len(words) :]
        if len(words) > len(slots) or any(operand.many != "?" for operand in missing):
            raise _RefusedError(words[-1].raw if words else "", len(words))
        for operand, word in zip(slots, words, strict=False):
            if (word.may_split or word.is_pattern) and not self._usage.is_raw:
                raise self._refuse(word)
            self._check(operand.kind, word)


def _is_raw(usages: Sequence[ProgramUsage]) -> bool:
    return any(usage.is_raw for usage in usages)


def _may_be_option(word: Word) -> bool:
    return word.may_be_option and word.static != "-"


def _unbundled(usage: ProgramUsage, words: Sequence[Word]) -> Iterator[Word]:
    """Yield words whose first may be letters of options, as in `tar xzf`; their values follow in order."""
    letters = None
    if words:
        letters = words[0].static
    if letters is None or letters.startswith("-") or words[0].is_pattern:
        yield from words
        return
    rest = list(words[1:])
    for letter in letters:
        yield Word(raw=letters, values=(f"-{letter}",))
        option = usage.options.get(f"-{letter}")
        if option is not None and option.kinds and rest:
            yield rest.pop(0)
    yield from rest


@cache
def standard_table() -> Table:
    """Return the table of what runs unasked."""
    return _read(sorted(_FOLDER.glob("*.toml")))


@cache
def covered_table() -> Table:
    """Return the table of what an answer may cover that names the words of the program and its subcommand."""
    return _read([_COVERED])


def _read(paths: Sequence[Path]) -> Table:
    programs: dict[str, Sequence[str]] = {}
    for path in paths:
        data = tomllib.loads(path.read_text("utf-8"))
        macros = data.get("macros", {})
        programs |= {
            name: [expand(text, macros) for text in texts]
            for name, texts in data["programs"].items()
        }
    return Table(programs)
