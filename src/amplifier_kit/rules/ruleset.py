"""Rules together: the strictest answer of those that fit counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import attrs

from amplifier_kit.rules.calls import RuledCall
from amplifier_kit.rules.rule import Rule
from amplifier_kit.shell.decisions import Decision, strictest
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["Evaluation", "RuleSet"]


@attrs.frozen(kw_only=True)
class Evaluation:
    """What becomes of a call; `rule` is the one that decided, counted from 0, `None` where none fits."""

    decision: Decision
    reason: str
    rule: int | None = None


@attrs.frozen
class RuleSet:
    """Rules and what becomes of a call that none is about."""

    rules: tuple[Rule, ...]
    otherwise: Decision = "ask"

    @classmethod
    def load(
        cls,
        rules: Sequence[Mapping[str, JSONValue]],
        *,
        directory: Path,
        otherwise: Decision = "ask",
    ) -> Self:
        """Read rules as they stand in a configuration and check their examples.

        Args:
            rules: the rules as mappings, with the fields of `Rule`.
            directory: where the relative paths of examples start.
            otherwise: what becomes of a call that no rule is about.

        Raises:
            ConfigError: a rule cannot be read or an example does not hold; names every one.
        """
        from amplifier_sdk.configuration import read_config

        return cls.checked(
            [
                read_config(Rule, rule, subject=f"rules[{index}]")
                for index, rule in enumerate(rules)
            ],
            directory=directory,
            otherwise=otherwise,
        )

    @classmethod
    def checked(
        cls, rules: Sequence[Rule], *, directory: Path, otherwise: Decision = "ask"
    ) -> Self:
        """Put rules together after their patterns and examples were checked; the arguments are those of `load`.

        Raises:
            ConfigError: a pattern cannot be read or an example does not hold; names every one.
        """
        problems = [
            Problem(f"rules[{index}]{'.' if key else ''}{key}", message)
            for index, rule in enumerate(rules)
            for key, message in rule.problems(directory)
        ]
        if problems:
            raise ConfigError(problems, subject="rules on tool calls")
        return cls(tuple(rules), otherwise)

    def evaluate(self, call: RuledCall) -> Evaluation:
        """Evaluate a call: the strictest answer counts, of equal ones the first."""
        answers = [(rule.becomes(call), index) for index, rule in enumerate(self.rules)]
        known = [
            (decision, index) for decision, index in answers if decision is not None
        ]
        if not known:
            return Evaluation(decision=self.otherwise, reason="no rule is about it")
        decision = strictest(decision for decision, _ in known)
        index = next(index for each, index in known if each == decision)
        rule = self.rules[index]
        if rule.reason is not None:
            return Evaluation(decision=decision, reason=rule.reason, rule=index)
        certain = "may be about it"
        if decision == rule.decision:
            certain = "is about it"
        return Evaluation(
            decision=decision, reason=f"rule {index + 1} {certain}", rule=index
        )
