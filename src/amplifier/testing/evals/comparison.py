"""Two runs beside each other: what got better, what got worse, and whether chance alone explains it."""

from __future__ import annotations

from statistics import fmean
from typing import Final

import attrs

from amplifier.testing.evals.intervals import Interval, mean_interval, rate_difference
from amplifier.testing.evals.report import CaseSummary, EvalReport
from amplifier.testing.evals.results import TrialResult
from amplifier.testing.evals.tables import range_text, text_table
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.values import Value

__all__ = ["Change", "EvalComparison", "compare"]

_LESS_IS_BETTER: Final = frozenset({"seconds", "dollars", "tokens"})


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Change(Value):
    """How a figure changed over the cases that both runs have.

    Args:
        name: of the figure.
        before: its value in the first run.
        after: its value in the second.
        interval: the 95 % interval of the difference; `None` where there are too few cases.
    """

    name: str
    before: float
    after: float
    interval: Interval | None

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes zero: chance alone hardly explains the change."""
        return self.interval is not None and self.interval.excludes_zero

    @property
    def verdict(self) -> str:
        """`better`, `worse`, or `unclear` where chance may explain the change."""
        if not self.is_clear:
            return "unclear"
        rose = self.after > self.before
        if rose != (self.name in _LESS_IS_BETTER):
            return "better"
        return "worse"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EvalComparison(Value):
    """Two runs of the same cases.

    Args:
        pass_rate: over the cases that both have; its interval is Newcombe's.
        means: of scores, then of seconds, dollars and tokens; their intervals are Student's, over the cases'
            differences.
        better: the cases of which more trials pass now.
        worse: the cases of which fewer do.
        added: the cases that only the second run has.
        removed: the cases that only the first one has.
    """

    pass_rate: Change
    means: tuple[Change, ...]
    better: tuple[str, ...]
    worse: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]

    def table(self) -> str:
        """Write the comparison as text."""
        rows = [
            (
                change.name,
                f"{change.before:.4g}",
                f"{change.after:.4g}",
                range_text(change.interval),
                change.verdict,
            )
            for change in (self.pass_rate, *self.means)
        ]
        lines = [text_table(("", "before", "after", "95 % of the change", ""), rows)]
        for title in ("better", "worse", "added", "removed"):
            names: tuple[str, ...] = getattr(self, title)
            if names:
                lines.append(f"{title}: {', '.join(names)}")
        return "\n".join(lines)


def compare(before: EvalReport, after: EvalReport) -> EvalComparison:
    """Compare two runs, case by case; a case is known by its name.

    Raises:
        ConfigError: they have no case in common, or a case of one name asks something else.
    """
    old = {case.name: case for case in before.cases}
    new = {case.name: case for case in after.cases}
    pairs = [(old[name], case) for name, case in new.items() if name in old]
    _check(pairs)
    return EvalComparison(
        pass_rate=_rate_change(pairs),
        means=_mean_changes(pairs),
        better=tuple(b.name for a, b in pairs if b.pass_rate > a.pass_rate),
        worse=tuple(b.name for a, b in pairs if b.pass_rate < a.pass_rate),
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
    )


_Pairs = list[tuple[CaseSummary, CaseSummary]]


def _check(pairs: _Pairs) -> None:
    problems = [
        Problem(old.name, "asks something else in the second run; give it another name")
        for old, new in pairs
        if old.results[0].inputs != new.results[0].inputs
    ]
    if not pairs:
        problems.append(Problem("cases", "the two runs have none in common"))
    if problems:
        raise ConfigError(problems, subject="comparison")


def _rate_change(pairs: _Pairs) -> Change:
    old = sum(a.passed for a, _ in pairs), sum(len(a.results) for a, _ in pairs)
    new = sum(b.passed for _, b in pairs), sum(len(b.results) for _, b in pairs)
    return Change(
        name="pass rate",
        before=old[0] / old[1],
        after=new[0] / new[1],
        interval=rate_difference(old, new),
    )


def _mean_changes(pairs: _Pairs) -> tuple[Change, ...]:
    figures: dict[str, list[tuple[float, float]]] = {}
    for old_case, new_case in pairs:
        old, new = _figures(old_case), _figures(new_case)
        for name, value in new.items():
            if name in old:
                figures.setdefault(name, []).append((old[name], value))
    return tuple(
        Change(
            name=name,
            before=fmean(old for old, _ in values),
            after=fmean(new for _, new in values),
            # of the differences, so that hard and easy cases add no spread
            interval=mean_interval([new - old for old, new in values]),
        )
        for name, values in figures.items()
    )


def _figures(case: CaseSummary) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for result in case.results:
        for name, value in _measured(result):
            values.setdefault(name, []).append(value)
    return {name: fmean(found) for name, found in values.items()}


def _measured(result: TrialResult) -> list[tuple[str, float]]:
    found = [(f"score {score.name}", score.value) for score in result.scores]
    found.append(("seconds", result.duration))
    if result.usage is not None:
        found.append(("tokens", float(result.usage.total_tokens)))
        if result.usage.cost_usd is not None:
            found.append(("dollars", float(result.usage.cost_usd)))
    return found
