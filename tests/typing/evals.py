"""What an `Experiment` infers and refuses. Checked by mypy and pyright, never run."""

from __future__ import annotations

from typing import assert_type

import attrs

from amplifier import Agent, AgentResult
from amplifier.testing.evals import (
    Contains,
    EvalCase,
    Exact,
    Experiment,
    ModelGrader,
    Score,
    Trial,
    load_cases,
)


@attrs.frozen
class Invoice:
    total: float


async def length(text: str) -> int:
    return len(text)


async def ask(text: str) -> AgentResult[Invoice]:
    return await Agent(output=Invoice).run(text)


def is_cheap(trial: Trial[str, Invoice]) -> bool:
    return trial.output.total < 10


async def is_even(trial: Trial[str, int]) -> Score:
    return Score(trial.output % 2)


clerk = Agent(output=Invoice)
tea = EvalCase("One tea.", Invoice(2.5))
word = EvalCase("tea", 3)

assert_type(tea, EvalCase[str, Invoice])
assert_type(Experiment(clerk, [tea], [is_cheap, Exact()]), Experiment[str, Invoice])
assert_type(Experiment(ask, [tea], [is_cheap]), Experiment[str, Invoice])
assert_type(Experiment(length, [word], [is_even, ModelGrader("?")]), Experiment[str, int])
open_question = EvalCase("One tea.")
Experiment(clerk, [open_question], [Contains("tea")], repeats=2)
assert_type(load_cases("cases.yaml"), tuple[EvalCase[str, str], ...])
assert_type(
    load_cases("cases.yaml", expected=Invoice), tuple[EvalCase[str, Invoice], ...]
)
assert_type(
    load_cases("cases.yaml", inputs=Invoice, expected=int),
    tuple[EvalCase[Invoice, int], ...],
)

Experiment(length, [word], [is_cheap])  # error: arg-type, list-item
Experiment(length, [EvalCase(1, 3)])  # error: arg-type
Experiment(clerk, [tea], repeat=3)  # error: call-overload
