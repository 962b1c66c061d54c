"""Experiments with the embedded model: what it answers is its own affair, what is counted is ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from amplifier import Agent
from amplifier.testing.evals import EvalCase, Experiment, ModelGrader, Trial

pytestmark = [pytest.mark.model, pytest.mark.process, pytest.mark.timeout(300)]


async def test_a_real_model_answers_and_grades(tmp_path: Path) -> None:
    def says_something(trial: Trial[str, str]) -> bool:
        return bool(trial.output.strip())

    experiment = Experiment(
        Agent("local", instructions="Answer in one short sentence."),
        [EvalCase("What colour is the sky?"), EvalCase("What do cats eat?")],
        [says_something, ModelGrader("The answer is about what was asked.")],
        concurrency=1,
        results=tmp_path / "results.jsonl",
    )

    report = await experiment.run()
    again = await experiment.run()

    for result in report.results:
        assert result.error == ""
        assert [score.name for score in result.scores] == ["says_something", "grader"]
        assert result.scores[0].passed
        # whichever grade it is, it was one of the schema, with a reason
        assert result.scores[1].value in (0, 1)
        assert result.usage is not None
        assert result.usage.output_tokens > 0
        assert result.scoring_usage is not None
        assert result.scoring_usage.output_tokens > 0
    assert again.reused == 2
    assert again.results == report.results
