"""Commands that stand before another one, such as `timeout`: which of their words belong to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

__all__ = ["PREFIXES", "Prefix"]


@attrs.frozen(kw_only=True)
class Prefix:
    """A command whose arguments are options, then perhaps operands, then the command that it runs.

    Args:
        flags: the letters of options without a value.
        with_value: the letters of options with one, in the same word or the next.
        long: long options without a value, or with one behind `=` alone.
        long_with_value: long options whose value stands behind `=` or in the next word.
        operands: how many words stand before the command.
        assigns: whether variables may stand before it.
        replaces: whether it does nothing of its own.
    """

    flags: str = ""
    with_value: str = ""
    long: tuple[str, ...] = ()
    long_with_value: tuple[str, ...] = ()
    operands: int = 0
    assigns: bool = False
    replaces: bool = True

    def words_of(self, option: str) -> int:
        """Return how many words an option takes; 0 when it is not known."""
        if option == "--":
            return 1
        if not option.startswith("--"):
            return self._words_of_letters(option)
        name, equals, _ = option.partition("=")
        if name not in (*self.long, *self.long_with_value):
            return 0
        if equals or name in self.long:
            return 1
        return 2

    def letter_with_value(self, option: str) -> tuple[str, str]:
        """Return the letter of an option that has a value, and the value as far as it stands in the same word."""
        letters = ""
        if not option.startswith("--"):
            letters = option[1:]
        index = next(
            (at for at, letter in enumerate(letters) if letter in self.with_value),
            len(letters),
        )
        return letters[index : index + 1], letters[index + 1 :]

    def _words_of_letters(self, option: str) -> int:
        letter, value = self.letter_with_value(option)
        # one unknown letter makes the whole word unknown: it might take the next
        # word
        if not set(self.flags).issuperset(option[1:].removesuffix(letter + value)):
            return 0
        if letter and not value:
            return 2
        return 1


PREFIXES: Final[Mapping[str, Prefix]] = {
    "builtin": Prefix(),
    "chronic": Prefix(),
    "command": Prefix(flags="p"),
    "coproc": Prefix(),
    "doas": Prefix(flags="nsL", with_value="uC", replaces=False),
    "env": Prefix(
        flags="iv0", with_value="u", long=("--ignore-environment",), assigns=True
    ),
    "exec": Prefix(flags="cl", with_value="a"),
    "ionice": Prefix(flags="t", with_value="cn"),
    "nice": Prefix(
        flags="0123456789", with_value="n", long_with_value=("--adjustment",)
    ),
    "nohup": Prefix(),
    "setsid": Prefix(flags="cfw", long=("--wait", "--fork", "--ctty")),
    "stdbuf": Prefix(
        with_value="ioe", long_with_value=("--input", "--output", "--error")
    ),
    "sudo": Prefix(
        flags="AbEHnPSiks",
        with_value="ugpCrtThD",
        long=("--login", "--shell"),
        assigns=True,
        replaces=False,
    ),
    "then": Prefix(),
    "time": Prefix(flags="pv"),
    "timeout": Prefix(
        flags="v",
        with_value="ks",
        long=("--foreground", "--preserve-status", "--verbose"),
        long_with_value=("--kill-after", "--signal"),
        operands=1,
    ),
    "xargs": Prefix(
        flags="0rtpx",
        with_value="nLPIdsE",
        # The value of the last two stands behind `=` or is missing: the next word is the command.
        long=(
            "--null",
            "--no-run-if-empty",
            "--verbose",
            "--exit",
            "--max-lines",
            "--replace",
        ),
        long_with_value=("--max-args", "--max-procs", "--delimiter"),
    ),
}
"""Those that are known, by name."""
