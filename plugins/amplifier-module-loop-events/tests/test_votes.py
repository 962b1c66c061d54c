"""What handlers answer when they are asked for a choice: which answer wins, and which is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amplifier.kernel.turn.registry import HookRegistry
from amplifier.testing import VirtualClock
from amplifier_module_loop_events._selection import Vote, winning_vote
from amplifier_sdk import HookResult

NAMES = ("a", "b", "c")


def answering(data: Mapping[str, object]) -> Callable[[str, object], HookResult]:
    return lambda event, asked: HookResult(data=data)


def run(
    answers: Sequence[Mapping[str, object]], backend: str = "asyncio"
) -> Vote | None:
    """Let one handler for each answer vote, in their order."""

    async def main() -> Vote | None:
        hooks = HookRegistry()
        for data in answers:
            hooks.register("decision:x", answering(data))
        return await winning_vote(hooks, "decision:x", {}, NAMES, 1.0)

    return anyio.run(main, backend=backend)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    ("answers", "choice"),
    [
        ([], None),
        ([{"choice": "a", "score": 1}, {"choice": "b", "score": 2}], "b"),
        ([{"choice": "a", "score": 2}, {"choice": "b", "score": 2}], "a"),
        ([{"choice": "a"}], "a"),
        ([{"choice": "a", "score": 0}], None),
        ([{"choice": "a", "score": -1}], None),
        ([{"choice": "d", "score": 9}, {"choice": "b", "score": 1}], "b"),
        ([{"choice": 7, "score": 9}], None),
        ([{"choice": "a", "score": "high"}], None),
        ([{"choice": "a", "score": True}], None),
        (
            [
                {"choice": "a", "score": float("nan")},
                {"choice": "b", "score": float("inf")},
            ],
            None,
        ),
        ([{"score": 3}], None),
    ],
    ids=[
        "none",
        "highest",
        "tie",
        "plain",
        "zero",
        "against",
        "unknown",
        "no-name",
        "text",
        "bool",
        "endless",
        "empty",
    ],
)
def test_highest_score_wins_and_invalid_votes_do_not_count(
    answers: Sequence[Mapping[str, object]], choice: str | None, backend: str
) -> None:
    vote = run(answers, backend)

    assert (None if vote is None else vote.choice) == choice


def test_a_vote_has_its_score_and_its_reason() -> None:
    assert run([{"choice": "a", "score": 2, "reason": "cheaper"}]) == Vote(
        choice="a", score=2.0, reason="cheaper"
    )


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.floats(-5, 5)), max_size=6))
def test_whoever_wins_had_first_of_highest_scores_above_zero(
    votes: list[tuple[str, float]],
) -> None:
    vote = run([{"choice": name, "score": score} for name, score in votes])

    highest = max((score for _, score in votes), default=0.0)
    expected = (
        next((name for name, score in votes if score == highest), None)
        if highest > 0
        else None
    )
    assert (None if vote is None else vote.choice) == expected


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_answer_that_comes_too_late_or_never_does_not_count(backend: str) -> None:
    async def late(event: str, data: object) -> HookResult:
        await anyio.sleep(2)
        return HookResult(data={"choice": "a", "score": 9})

    def fails(event: str, data: object) -> HookResult:
        raise ValueError("broken")

    async def main() -> tuple[Vote | None, float]:
        hooks = HookRegistry()
        hooks.register("decision:x", late)
        hooks.register("decision:x", fails)
        hooks.register(
            "decision:x",
            lambda event, data: HookResult(data={"choice": "b", "score": 1}),
        )
        return await winning_vote(
            hooks, "decision:x", {}, NAMES, 1.0
        ), anyio.current_time()

    vote, seconds = VirtualClock().run(main, backend=backend)
    assert vote == Vote(choice="b", score=1.0)
    assert seconds == pytest.approx(1.0, abs=0.01)
