"""Trials: one run of one case, and what scorers say of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import isfinite
from typing import Final, Generic, TypeAlias, TypeVar

import attrs

from amplifier.testing.evals.cases import EvalCase
from amplifier_sdk.chat import ToolCall, Usage
from amplifier_sdk.values import Value

__all__ = ["Score", "ScoreValue", "Scorer", "Trial", "score_of", "scorer_name"]

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
InputT_co = TypeVar("InputT_co", covariant=True)
OutputT_co = TypeVar("OutputT_co", covariant=True)

_PASSES: Final = 0.5


@attrs.frozen(kw_only=True, eq=False)
class Trial(Generic[InputT_co, OutputT_co]):
    """One run of a case that gave an answer.

    Args:
        case: what was asked.
        number: which repetition it is, from 1.
        output: the answer.
        duration: how long it took, in seconds.
        usage: what the run has used; `None` where that is not known.
        tool_calls: the calls that the model made, in their order; those of sub-agents are not among them.
    """

    case: EvalCase[InputT_co, OutputT_co]
    number: int
    output: OutputT_co
    duration: float
    usage: Usage | None = None
    tool_calls: tuple[ToolCall, ...] = ()


def _passes(score: Score) -> bool:
    return score.value >= _PASSES


@attrs.frozen(eq=False, repr=False)
class Score(Value):
    """What a scorer says of a trial.

    Args:
        value: from 0 to 1, where more is better.
        passed: whether that is good enough; default from 0.5.
        reason: why, for readers of the report.
        usage: what the scorer itself has used; it counts against the experiment's limit.
    """

    value: float = attrs.field()
    passed: bool = attrs.field(
        default=attrs.Factory(_passes, takes_self=True), kw_only=True
    )
    reason: str = attrs.field(default="", kw_only=True)
    usage: Usage | None = attrs.field(default=None, kw_only=True)

    @value.validator
    def _check_value(self, _: object, value: float) -> None:
        if not (isfinite(value) and 0 <= value <= 1):
            raise ValueError(f"A score is a number from 0 to 1; got {value!r}")


ScoreValue: TypeAlias = Score | bool | float
"""What a scorer returns: a score, whether the trial passes, or a number from 0 to 1, which passes from 0.5."""

Scorer: TypeAlias = Callable[
    [Trial[InputT, OutputT]], ScoreValue | Awaitable[ScoreValue]
]
"""Scores a trial; sync or async. One that raises makes the trial fail, and the report says why."""


def score_of(value: ScoreValue) -> Score:
    """Read what a scorer returned.

    Raises:
        TypeError: it is no score.
        ValueError: it is a number that no score can have.
    """
    if isinstance(value, Score):
        return value
    # a function that forgets its return would pass or fail every trial in silence
    if not isinstance(value, (bool, int, float)):
        raise TypeError(
            f"A scorer returns a Score, a bool or a number from 0 to 1; got {value!r}"
        )
    return Score(float(value))


def scorer_name(scorer: Scorer[InputT, OutputT]) -> str:
    """Return what reports call a scorer: its `name`, that of its function, or that of its class."""
    for attribute in ("name", "__name__"):
        name = getattr(scorer, attribute, None)
        if isinstance(name, str):
            return name
    return type(scorer).__name__
