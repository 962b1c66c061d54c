"""Evaluations: cases, scorers, repeated runs with confidence intervals, reports and their comparison.

An evaluation is ordinary code: it runs in a test, in a script, on asyncio and on trio.
"""

from __future__ import annotations

from amplifier.testing.evals.cases import EvalCase, load_cases
from amplifier.testing.evals.comparison import Change, EvalComparison, compare
from amplifier.testing.evals.errors import ExperimentStoppedError, GraderError
from amplifier.testing.evals.experiment import Experiment, ExperimentOptions
from amplifier.testing.evals.grader import ModelGrader
from amplifier.testing.evals.intervals import Interval
from amplifier.testing.evals.page import render_page
from amplifier.testing.evals.report import CaseSummary, EvalReport, Mean
from amplifier.testing.evals.results import NamedScore, TrialResult
from amplifier.testing.evals.scorers import (
    Contains,
    Exact,
    MatchesSchema,
    MaxCost,
    MaxDuration,
    ToolTrajectory,
)
from amplifier.testing.evals.trials import Score, Scorer, ScoreValue, Trial

__all__ = [
    "CaseSummary",
    "Change",
    "Contains",
    "EvalCase",
    "EvalComparison",
    "EvalReport",
    "Exact",
    "Experiment",
    "ExperimentOptions",
    "ExperimentStoppedError",
    "GraderError",
    "Interval",
    "MatchesSchema",
    "MaxCost",
    "MaxDuration",
    "Mean",
    "ModelGrader",
    "NamedScore",
    "Score",
    "ScoreValue",
    "Scorer",
    "ToolTrajectory",
    "Trial",
    "TrialResult",
    "compare",
    "load_cases",
    "render_page",
]
