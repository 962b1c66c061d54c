"""Programs in the little languages of `sed` and `awk`: whether one certainly only reads and prints."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from amplifier_kit.shell.awk import is_plain_awk
from amplifier_kit.shell.path_policy import PathPolicy
from amplifier_kit.shell.scripts import Word

__all__ = ["LANGUAGES", "is_plain_sed"]

_ADDRESS: Final = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/I?)"
_SUBSTITUTION: Final = (
    r"s(?P<mark>[/"
    r"|,#:@!])(?:(?!(?P=mark))[^\\\n]|\\.)*(?P=mark)(?:(?!(?P=mark))[^\\\n]|\\.)*(?P=mark)[gpIi0-9]*"
)
_TEXT: Final = r"[aic](?:[ \t]*\\\n?)?[^\\\n]*"
"""A text that is put out reaches to the end of its line."""

_SED_COMMAND: Final = re.compile(
    rf"\s*(?:{_ADDRESS}(?:,\s*(?:{_ADDRESS}|[+~]\d+))?\s*)?!?\s*"
    rf"(?:(?P<group>\{{)|(?:[pdqDPG=hHxnN}}]|{_SUBSTITUTION}|{_TEXT})[ \t]*)"
)


def is_plain_sed(text: str) -> bool:
    """Whether a `sed` program neither runs a command nor opens a file."""
    position = 0
    while position < len(text):
        found = _SED_COMMAND.match(text, position)
        if found is None:
            return False
        position = found.end()
        if found["group"] or text[position : position + 1] == "}":
            continue
        if position < len(text) and text[position] not in ";\n":
            return False
        position += 1
    return True


def _sed(words: Sequence[Word], path_policy: PathPolicy) -> bool:
    """Find the programs among the arguments of `sed`."""
    programs: list[Word] = []
    operands: list[Word] = []
    changes = False
    rest = list(words)
    while rest:
        word = rest.pop(0)
        value = word.static
        if value in ("-e", "--expression", "-f", "--file"):
            if value in ("-f", "--file") or not rest:
                return False
            programs.append(rest.pop(0))
        elif value is not None and re.fullmatch(
            r"-[nErsuz]*|-[nErsuz]*i|-i[.\w]*|--in-place|--quiet|--regexp-extended",
            value,
        ):
            # behind the letter follows a suffix for backups, whose letters say
            # nothing
            changes |= value == "--in-place" or "i" in value.partition(".")[0].lstrip(
                "-"
            )
        elif word.may_be_option:
            return False
        else:
            operands.append(word)
    if not programs:
        programs, operands = operands[:1], operands[1:]
    if changes and not all(map(path_policy.may_use, operands)):
        return False
    return all(
        word.static is not None and is_plain_sed(word.static) for word in programs
    )


def _awk(words: Sequence[Word], _: PathPolicy) -> bool:
    rest = list(words)
    while rest and rest[0].may_be_option:
        # an option that is not known counts as the one that reads a program from
        # a file
        option = rest.pop(0).static or "-f"
        if option in ("-F", "-v") and rest:
            rest.pop(0)
        elif not re.match(r"-[Fv].", option):
            return False
    if any(value.startswith("/inet") for word in rest[1:] for value in word.values):
        return False  # it would connect
    return bool(rest) and rest[0].static is not None and is_plain_awk(rest[0].static)


LANGUAGES: Final[Mapping[str, Callable[[Sequence[Word], PathPolicy], bool]]] = {
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "sed": _sed,
}
"""By command: whether its arguments hold only programs that read and print, and files that it may change."""
