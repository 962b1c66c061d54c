"""The scorers that need no model."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import attrs
import pytest

from amplifier.testing import call
from amplifier.testing.evals import (
    Contains,
    EvalCase,
    Exact,
    MatchesSchema,
    MaxCost,
    MaxDuration,
    Score,
    Scorer,
    ToolTrajectory,
    Trial,
)
from amplifier.testing.evals.trials import scorer_name
from amplifier_sdk.chat import Usage
from amplifier_sdk.jsontypes import JSONObject


@attrs.frozen
class Point:
    x: int


SCHEMA: JSONObject = {
    "type": "object",
    "properties": {"x": {"$ref": "#/$defs/number"}},
    "required": ["x"],
    "$defs": {"number": {"type": "integer"}},
}


def trial(
    output: object, expected: object = None, *tools: str
) -> Trial[object, object]:
    return Trial(
        case=EvalCase("?", expected),
        number=1,
        output=output,
        duration=2,
        usage=Usage(
            input_tokens=1, output_tokens=1, total_tokens=2, cost_usd=Decimal("0.02")
        ),
        tool_calls=tuple(
            call(name, {"n": number}) for number, name in enumerate(tools)
        ),
    )


@pytest.mark.parametrize(
    ("scorer", "subject", "reason"),
    [
        (Exact(), trial("a", "a"), ""),
        (Exact(), trial(Point(1), Point(1)), ""),
        (Exact(), trial("a", "b"), "'a' is not 'b'"),
        (Exact(), trial("a" * 200, "b"), f"'{'a' * 118}… is not 'b'"),
        (Contains("b"), trial("abc"), ""),
        (Contains(), trial("abc", "b"), ""),
        (Contains("B"), trial("abc"), "'abc' does not contain 'B'"),
        (Contains("B", ignore_case=True), trial("abc"), ""),
        (MatchesSchema(SCHEMA), trial('{"x": 1}'), ""),
        (MatchesSchema(SCHEMA), trial({"x": 1}), ""),
        (MatchesSchema(SCHEMA), trial(Point(1)), ""),
        (MatchesSchema(SCHEMA), trial({"x": "a"}), 'x: "a" is not of type "integer"'),
        (MatchesSchema(SCHEMA), trial("[]"), 'the output: [] is not of type "object"'),
        (MatchesSchema(SCHEMA), trial("x"), "'x' is no JSON: Expecting value"),
        (MatchesSchema(Point), trial('{"x": 1}'), ""),
        (MatchesSchema(Point), trial('{"x": "a"}'), "x: expected an integer"),
        (MatchesSchema(int), trial("3"), ""),
        (MaxCost("0.02"), trial("a"), ""),
        (MaxCost(0.01), trial("a"), "$0.02 is more than $0.01"),
        (MaxCost(1), attrs.evolve(trial("a"), usage=None), "The cost is not known"),
        (MaxDuration(2), trial("a"), ""),
        (MaxDuration(1.5), trial("a"), "2 s is over 1.5 s"),
        (ToolTrajectory(), trial("a", None, "f"), ""),
        (ToolTrajectory("f", "h"), trial("a", None, "f", "g", "h"), ""),
        (ToolTrajectory(call("g", {"n": 1})), trial("a", None, "f", "g"), ""),
        (ToolTrajectory("f", "g", exact=True), trial("a", None, "f", "g"), ""),
        (ToolTrajectory(exact=True), trial("a"), ""),
        (
            ToolTrajectory(exact=True),
            trial("a", None, "f"),
            "0 of 0 steps; the calls were: f",
        ),
        (
            ToolTrajectory("f", exact=True),
            trial("a", None, "f", "g"),
            "1 of 1 steps; the calls were: f, g",
        ),
        (
            ToolTrajectory("g", "f"),
            trial("a", None, "f", "g"),
            "1 of 2 steps; the calls were: f, g",
        ),
        (
            ToolTrajectory(call("f", {"m": None})),
            trial("a", None, "f"),
            "0 of 1 steps; the calls were: f",
        ),
        (
            ToolTrajectory("f"),
            trial("a"),
            "0 of 1 steps; the calls were: none",
        ),
    ],
)
def test_a_scorer_says_why_a_trial_does_not_pass(
    scorer: Callable[[Trial[object, object]], Score],
    subject: Trial[object, object],
    reason: str,
) -> None:
    score = scorer(subject)

    assert score.passed is (not reason)
    assert score.reason.startswith(reason)
    assert (score.value == 1) is score.passed


def test_part_of_a_trajectory_is_part_of_a_score() -> None:
    steps = ToolTrajectory("f", "g")

    assert steps(trial("a", None, "f")).value == 0.5
    assert ToolTrajectory("f", exact=True)(trial("a", None, "f", "g")).value == 0.5


@pytest.mark.parametrize("scorer", [Exact(), Contains()])
def test_what_needs_an_expected_answer_says_so(scorer: Exact | Contains) -> None:
    with pytest.raises(ValueError, match="The case expects nothing; give it expected"):
        scorer(trial("a"))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"$ref": "https://example.org/other.json"},
    ],
)
def test_a_schema_that_is_none_is_refused(schema: JSONObject) -> None:
    with pytest.raises(ValueError, match="This is no valid JSON Schema: "):
        MatchesSchema(schema)


@pytest.mark.parametrize("cost", [0, -1, "a", float("inf"), float("nan")])
def test_a_cost_is_an_amount_of_money(cost: float | str) -> None:
    with pytest.raises(ValueError, match="A cost is a number of US dollars above 0"):
        MaxCost(cost)


@pytest.mark.parametrize("duration", [0, -1, float("nan")])
def test_a_duration_is_a_number_of_seconds(duration: float) -> None:
    with pytest.raises(ValueError, match="duration"):
        MaxDuration(duration)


def test_scorers_have_names() -> None:
    class Polite:
        def __call__(self, _: Trial[object, object]) -> bool:
            return True

    def brief(_: Trial[object, object]) -> bool:
        return True

    scorers: list[Scorer[object, object]] = [
        Exact(),
        Contains("a"),
        Contains(),
        brief,
        Polite(),
        MaxCost(1, name="x"),
    ]
    assert [scorer_name(scorer) for scorer in scorers] == [
        "exact",
        "contains 'a'",
        "contains",
        "brief",
        "Polite",
        "x",
    ]


@pytest.mark.parametrize(("value", "passed"), [(0.5, True), (0.49, False)])
def test_a_score_passes_from_one_half(value: float, *, passed: bool) -> None:
    assert Score(value).passed is passed
    assert Score(value, passed=not passed).passed is not passed
