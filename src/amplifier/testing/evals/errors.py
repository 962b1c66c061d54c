"""What evaluations raise of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amplifier_sdk.chat import Usage
from amplifier_sdk.errors import AmplifierError

if TYPE_CHECKING:
    from amplifier.testing.evals.report import EvalReport

__all__ = ["ExperimentStoppedError", "GraderError"]


class ExperimentStoppedError(AmplifierError):
    """A limit left trials undone, so that their experiment has no rate to assert.

    Args:
        reason: which limit.
        undone: how many trials were not started.
        report: of those that ended.
    """

    def __init__(self, reason: str, undone: int, report: EvalReport) -> None:
        self.reason: str = reason
        self.undone: int = undone
        self.report: EvalReport = report
        super().__init__(
            f"{undone} of {undone + len(report.results)} trials were not started: {reason}"
        )


class GraderError(AmplifierError):
    """A model that should score an answer gave no grade.

    Args:
        reason: why not.
        usage: what it has used all the same; without a cost where that is not known.
    """

    def __init__(self, reason: str, usage: Usage) -> None:
        self.reason: str = reason
        self.usage: Usage = usage
        super().__init__(f"The grader gave no grade: {reason}")
