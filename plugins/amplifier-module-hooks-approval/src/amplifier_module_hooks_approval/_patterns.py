"""Rules in the short form `{pattern, action}`: patterns of shell commands, anchored."""

from __future__ import annotations

from typing import Final, Literal

import attrs

from amplifier_kit.rules import Rule
from amplifier_sdk import ConfigError
from amplifier_sdk.errors import Problem

__all__ = ["PatternRule"]

_WILD: Final = frozenset("*?[|$")


@attrs.frozen(kw_only=True)
class PatternRule:
    """A pattern of commands and what becomes of them.

    `ls*` is the command `ls` with any words behind it, never `lsof`; `pwd` is `pwd` alone.
    """

    pattern: str
    action: Literal["auto_approve", "auto_deny"]
    description: str | None = None

    def as_rule(self, subject: str) -> Rule:
        """Return the rule that means this.

        Args:
            subject: what is configured, for the message.

        Raises:
            ConfigError: the pattern approves commands that it does not name.
        """
        words = self.pattern.split()
        if self.action == "auto_deny":
            # As widely as it can be meant: the words as they are, and anything behind them.
            return Rule(
                decision="deny",
                tools=("*",),
                commands=(f"{' '.join(words)} **",),
                reason=self.description,
            )
        if words and words[-1].endswith("*"):
            words[-1:] = [word for word in (words[-1].rstrip("*"), "**") if word]
        if (
            not words
            # A wildcard inside a word would approve what nobody thought of, as `rm*`
            # does `rmdir`.
            or any(_WILD & set(word) for word in words if word != "**")
            or words[0] == "**"
        ):
            problem = (
                f"{self.pattern!r} approves commands that it does "
                "not name; write their words, as in 'git status*'"
            )
            raise ConfigError([Problem("pattern", problem)], subject=subject)
        return Rule(
            decision="allow", commands=(" ".join(words),), reason=self.description
        )
