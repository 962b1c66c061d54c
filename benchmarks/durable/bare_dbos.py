"""Bare DBOS: a workflow with a step for each answer of a model and one for each tool call, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from uuid import uuid4

from dbos import DBOS, DBOSConfig, SetWorkflowID

from benchmarks.durable.samples import answer_samples

__all__: list[str] = []


@DBOS.step()
def answer(step: int) -> dict[str, object]:
    """Answer as a model does that calls a tool."""
    return {"role": "assistant", "tool_calls": [{"name": "noop", "step": step}]}


@DBOS.step()
def call(step: int) -> str:
    """Run the tool."""
    return f"done {step}"


@DBOS.workflow()
def turn(steps: int) -> str:
    """Run a turn of so many steps."""
    for step in range(steps):
        answer(step)
        call(step)
    return "Done."


def sampler(url: str) -> Callable[[int], float]:
    """Return what runs a turn and says how long it took."""
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": url.replace("postgresql://", "postgresql+psycopg://"),
        "log_level": "CRITICAL",
    }
    DBOS(config=config)
    DBOS.launch()

    def sample(steps: int) -> float:
        begun = perf_counter()
        with SetWorkflowID(uuid4().hex):
            if turn(steps) != "Done.":
                raise RuntimeError("the workflow did not finish")
        return perf_counter() - begun

    return sample


if __name__ == "__main__":
    answer_samples(sampler(sys.argv[1]))
    DBOS.destroy()
