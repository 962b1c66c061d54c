"""What an experiment came to: rates and means with their intervals, as values, as a table, as a page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Self

import attrs

from amplifier.testing.evals.intervals import Interval, mean_interval, wilson
from amplifier.testing.evals.results import TrialResult
from amplifier.testing.evals.tables import percent, percents, range_text, text_table
from amplifier_sdk.convert import from_json, to_json
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.values import Value

__all__ = ["CaseSummary", "EvalReport", "Mean"]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Mean(Value):
    """The mean of a measure over trials; `interval` is `None` for fewer than two."""

    name: str
    value: float
    interval: Interval | None
    trials: int

    @classmethod
    def of(cls, name: str, values: Sequence[float]) -> Self | None:
        """Make the mean of values; `None` where there are none."""
        if not values:
            return None
        return cls(
            name=name,
            value=fmean(values),
            interval=mean_interval(values),
            trials=len(values),
        )


@attrs.frozen(kw_only=True, eq=False, repr=False)
class CaseSummary(Value):
    """The trials of one case."""

    name: str
    results: tuple[TrialResult, ...]

    @property
    def passed(self) -> int:
        """How many trials passed."""
        return sum(result.passed for result in self.results)

    @property
    def pass_rate(self) -> float:
        """The part of the trials that passed."""
        return self.passed / len(self.results)

    @property
    def pass_interval(self) -> Interval | None:
        """Wilson's interval of the rate."""
        return wilson(self.passed, len(self.results))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why trials failed, each reason once."""
        reasons: dict[str, None] = {}
        for result in self.results:
            if result.error:
                reasons[result.error] = None
            for score in result.scores:
                if not score.passed:
                    reasons[f"{score.name}: {score.reason or score.value}"] = None
        return tuple(reasons)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EvalReport(Value):
    """The results of an experiment.

    Args:
        name: the experiment's.
        results: of each trial.
        reused: how many of them stood in the file of results already.
        damaged: how many lines of that file could not be read; their trials ran again.
    """

    name: str
    results: tuple[TrialResult, ...]
    reused: int = 0
    damaged: int = 0

    @property
    def passed(self) -> int:
        """How many trials passed."""
        return sum(result.passed for result in self.results)

    @property
    def pass_rate(self) -> float:
        """The part of the trials that passed; those that raised did not."""
        if not self.results:
            return 0.0
        return self.passed / len(self.results)

    @property
    def pass_interval(self) -> Interval | None:
        """Wilson's 95 % interval of the rate; `None` without trials."""
        return wilson(self.passed, len(self.results))

    @property
    def cases(self) -> tuple[CaseSummary, ...]:
        """The trials by case, in the order of the cases."""
        groups: dict[str, list[TrialResult]] = {}
        for result in self.results:
            groups.setdefault(result.case, []).append(result)
        return tuple(
            CaseSummary(name=name, results=tuple(results))
            for name, results in groups.items()
        )

    @property
    def scores(self) -> tuple[Mean, ...]:
        """The mean of each scorer, with Student's 95 % interval."""
        groups: dict[str, list[float]] = {}
        for result in self.results:
            for score in result.scores:
                groups.setdefault(score.name, []).append(score.value)
        return _means(Mean.of(name, values) for name, values in groups.items())

    @property
    def measures(self) -> tuple[Mean, ...]:
        """The mean of duration (seconds), cost (US dollars) and tokens, as far as they are known."""
        used = [result.usage for result in self.results if result.usage is not None]
        costs = [usage.cost_usd for usage in used if usage.cost_usd is not None]
        return _means(
            (
                Mean.of("seconds", [result.duration for result in self.results]),
                Mean.of("dollars", [float(cost) for cost in costs]),
                Mean.of("tokens", [float(usage.total_tokens) for usage in used]),
            )
        )

    def table(self) -> str:
        """Write the report as text: the cases, then the means."""
        rows = [
            (
                case.name,
                f"{case.passed}/{len(case.results)}",
                percents(case.pass_interval),
                "; ".join(case.reasons),
            )
            for case in self.cases
        ]
        rows.append(
            (
                "all",
                f"{self.passed}/{len(self.results)}",
                percents(self.pass_interval),
                percent(self.pass_rate),
            )
        )
        parts = [text_table(("case", "passed", "95 %", "why not"), rows)]
        means = [
            (
                mean.name,
                f"{mean.value:.4g}",
                range_text(mean.interval),
                str(mean.trials),
            )
            for mean in (*self.scores, *self.measures)
        ]
        if means:
            parts.append(text_table(("mean of", "value", "95 %", "trials"), means))
        return "\n\n".join(parts)

    def save(self, path: str | Path) -> None:
        """Write the report as JSON, for `load` and for later comparisons."""
        text = json.dumps(to_json(self), indent=1)
        Path(path).write_text(f"{text}\n", "utf-8")

    @classmethod
    def load(cls, path: str | Path) -> EvalReport:
        """Read a report that `save` wrote.

        Raises:
            ConfigError: the file is none.
            OSError: it cannot be read.
        """
        try:
            return from_json(json.loads(Path(path).read_bytes()), EvalReport)
        except ValueError as error:
            raise ConfigError.of(
                "", f"it is no report: {error}", subject=f"file {str(path)!r}"
            ) from error


def _means(found: Iterable[Mean | None]) -> tuple[Mean, ...]:
    return tuple(mean for mean in found if mean is not None)
