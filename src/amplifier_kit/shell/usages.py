"""Usages: the options and operands that a program may be given, written in one line each.

    grep = ["-in -A=NUMBER --color?=TEXT -e=TEXT! TEXT READ*"]

A usage is words. `-in` are options of one letter without a value, `-A=NUMBER` one with a value of that kind, and a `?`
before the sign of equality says that a value stands in the same word or is missing. `-name:` is a long option with one
dash, `-#` a number as an option. A `!` behind a value's kind says that the option stands for the first operand; a `!`
behind an option's name says that one of the options so marked is needed.

Other words are kinds of operands: `READ`, `READ?` for one or none, `READ*` for any number, `READ+` for at least one,
`READ...` for all that follows, dashes or not; `READ*:.` has a value that counts where none is given. `{a,b}` is one of
these words. `...` says that the next word names a subcommand, `...NAME` that it is looked up below another name.

Effects begin with a `!`: `!run` for what runs programs of the folder, `!work` for what works in it, `!names` for what
shows and changes the content of no file besides its operands. `!raw` says that no word is an option, `!bundle` that the
first word holds options without a dash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

__all__ = ["Operand", "Option", "ProgramUsage", "expand", "read_usage"]

_MACRO: Final = re.compile(r"<(\w+)>")
_OPTION: Final = re.compile(
    r"(?P<name>-[^=:!?]+)(?P<single>:)?(?P<needed>!)?(?P<loose>\?)?(?:=(?P<kind>[^!]+)(?P<first>!)?)?"
)
_OPERAND: Final = re.compile(
    r"(?P<kind>\{[^}]*\}|[A-Z]+)(?P<many>[?*+]|\.\.\.)?(?::(?P<default>.+))?"
)


@attrs.frozen(kw_only=True)
class Option:
    """An option.

    Args:
        name: with its dashes.
        kinds: what its values are, in order; nothing for an option without one.
        is_attached: whether a value stands in the same word or is missing.
        stands_first: whether its value stands for the first operand.
        is_needed: whether it, or another that is needed, must be given.
    """

    name: str
    kinds: tuple[str, ...] = ()
    is_attached: bool = False
    stands_first: bool = False
    is_needed: bool = False


@attrs.frozen(kw_only=True)
class Operand:
    """A place for operands; `many` is empty for one, or `?`, `*`, `+`, `...`."""

    kind: str
    many: str = ""
    default: str | None = None


@attrs.frozen(kw_only=True)
class ProgramUsage:
    """One way to call a program.

    Args:
        options: by name.
        operands: in order; at most one of them takes in any number.
        effects: `run`, `work` and `names`, as far as it has them.
        below: the name below which the next word is looked up; `None` when it is no subcommand.
        is_raw: whether no word is an option.
        is_bundled: whether the first word holds options without a dash.
    """

    options: Mapping[str, Option]
    operands: tuple[Operand, ...]
    effects: frozenset[str]
    below: str | None = None
    is_raw: bool = False
    is_bundled: bool = False

    @property
    def needed(self) -> frozenset[str]:
        """The options of which one must be given."""
        return frozenset(
            name for name, option in self.options.items() if option.is_needed
        )


def expand(text: str, macros: Mapping[str, str]) -> str:
    """Put in what `<NAME>` stands for in a usage."""
    return _MACRO.sub(lambda found: macros[found[1]], text)


def read_usage(text: str, name: str) -> ProgramUsage:
    """Read a usage of a program.

    Raises:
        ValueError: a word of it is none of a usage.
    """
    words = text.split()
    marks = {word[1:] for word in words if word.startswith("!")}
    below = next((word[3:] or name for word in words if word.startswith("...")), None)
    options = {
        option.name: option
        for word in words
        if word.startswith("-")
        for option in _options(word)
    }
    operands = [_operand(word) for word in words if word[0] not in "-!."]
    return ProgramUsage(
        options=options,
        operands=tuple(operands),
        effects=frozenset(marks - {"raw", "bundle"}),
        below=below,
        is_raw="raw" in marks,
        is_bundled="bundle" in marks,
    )


def _options(word: str) -> Iterator[Option]:
    found = _OPTION.fullmatch(word)
    if found is None:
        raise ValueError(f"{word!r} is no option of a usage")
    name, kind = found["name"], found["kind"]
    # `-in` are two options, and `-name:` or one with a value is a single one
    letters = not (name.startswith("--") or found["single"] or kind)
    for each in (f"-{letter}" for letter in name[1:]) if letters else [name]:
        yield Option(
            name=each,
            kinds=tuple(_split_kinds(kind)) if kind else (),
            is_attached=bool(found["loose"]),
            stands_first=bool(found["first"]),
            is_needed=bool(found["needed"]),
        )


def _split_kinds(kind: str) -> list[str]:
    if kind.startswith("{"):
        return [kind]
    return kind.split(",")


def _operand(word: str) -> Operand:
    found = _OPERAND.fullmatch(word)
    if found is None:
        raise ValueError(f"{word!r} is no operand of a usage")
    return Operand(
        kind=found["kind"], many=found["many"] or "", default=found["default"]
    )
