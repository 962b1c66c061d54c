"""What the validator of plans accepts."""

from __future__ import annotations

import pytest

from amplifier import (
    MountPlanValidator,
)
from amplifier.kernel.plans.plan import MountPlan


@pytest.mark.parametrize(
    "plan",
    [
        {"session": {"orchestrator": "loop", "context": "context"}},
        {
            "session": {
                "orchestrator": {"module": "loop"},
                "context": {"module": "context", "config": {"a": 1}},
            }
        },
        {
            "session": {
                "orchestrator": "loop",
                "orchestrator_source": "git+x",
                "context": "context",
            },
            "orchestrator": {"config": {"model": "m"}},
            "context": {"config": {"max_tokens": 5}},
        },
    ],
)
def test_the_validator_accepts_what_a_session_accepts(plan: dict[str, object]) -> None:
    result = MountPlanValidator().validate(plan)

    assert result.passed
    assert (result.errors, result.warnings, result.format_errors()) == ((), (), "")
    assert result.summary() == "The mount plan has no problems"
    assert MountPlan.read(plan).modules["orchestrator"][0].module == "loop"


def test_each_mistake_is_a_line() -> None:
    result = MountPlanValidator().validate(
        {"session": {"orchestrator": "loop"}, "toools": []}
    )

    assert not result.passed
    assert result.errors == tuple(result)
    assert result.summary() == "The mount plan has 2 problems"
    assert MountPlanValidator().validate(3).summary() == "The mount plan has 1 problem"
    assert result.format_errors().splitlines() == [
        "toools: unknown key; did you mean 'tools'?",
        "session.context: missing; name the session's context module, for example 'context-simple'",
    ]
