"""One run of an experiment: what is still to do, what is done, and what it cost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from inspect import isawaitable
from typing import Generic, Never, TypeAlias, TypeVar, cast

import anyio
import attrs

from amplifier.agent.agent import Agent
from amplifier.agent.result import AgentResult
from amplifier.testing.evals.cases import EvalCase
from amplifier.testing.evals.errors import GraderError
from amplifier.testing.evals.results import NamedScore, ResultFile, TrialResult
from amplifier.testing.evals.runner import RunUsage, run_agent, tool_calls_of
from amplifier.testing.evals.trials import Score, Scorer, Trial, score_of, scorer_name
from amplifier_kit.event_json import json_or_text
from amplifier_sdk.chat import Usage
from amplifier_sdk.convert import to_json

__all__ = ["ExperimentRun", "Job"]

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

Job: TypeAlias = tuple[EvalCase[InputT, OutputT], int]
"""A case, and which repetition of it."""


class ExperimentRun(Generic[InputT, OutputT]):
    """What the tasks of one run share.

    Args:
        subject: the agent or the function.
        scorers: of each answer.
        max_cost_usd: what all may cost together.
        file: the results that are there, and where new ones go.
        jobs: all trials by their keys.
    """

    def __init__(
        self,
        subject: object,
        scorers: Sequence[Scorer[InputT, OutputT]],
        max_cost_usd: Decimal | None,
        file: ResultFile,
        jobs: Mapping[str, Job[InputT, OutputT]],
    ) -> None:
        self._subject = subject
        self._scorers = scorers
        self._max_cost = max_cost_usd
        self._file = file
        self._spent = Decimal(0)
        self.stopped = ""
        self.done: dict[str, TrialResult] = {}
        for key in jobs:
            self._reuse(key)
        self.reused = len(self.done)
        self.undone = len(jobs) - self.reused
        # one iterator for all tasks: none waits for the slowest of another one's share
        self._queue: Iterator[tuple[str, Job[InputT, OutputT]]] = iter(
            [(key, job) for key, job in jobs.items() if key not in self.done]
        )

    def _reuse(self, key: str) -> None:
        stored = self._file.results.get(key)
        if stored is None:
            return
        # a run that raised was paid for as well, and may do better now
        self._book(stored)
        if not stored.error:
            self.done[key] = stored

    async def work(self) -> None:
        """Run one trial after the other, as long as there are any and the limit allows."""
        while not self.stopped:
            key, job = next(self._queue, ("", None))
            if job is None:
                return
            result = await self._trial(key, *job)
            # nothing is awaited from here on: no cancellation loses what was paid for
            self._file.append(result)
            self.done[key] = result
            self.undone -= 1
            self._book(result)

    def _book(self, result: TrialResult) -> None:
        if self._max_cost is None:
            return
        used = [result.usage]
        if result.scoring_usage is not None:
            used.append(result.scoring_usage)
        for usage in used:
            if usage is None or usage.cost_usd is None:
                # nothing can be limited that nobody counts
                self.stopped = f"the cost of case {result.case!r} is not known, so that max_cost_usd cannot hold"
                return
            self._spent += usage.cost_usd
        if self._spent >= self._max_cost:
            self.stopped = (
                f"${self._spent} are spent, and max_cost_usd is ${self._max_cost}"
            )

    async def _trial(
        self, key: str, case: EvalCase[InputT, OutputT], number: int
    ) -> TrialResult:
        result = TrialResult(
            key=key,
            case=case.name,
            number=number,
            inputs=to_json(case.inputs),
            expected=to_json(case.expected),
            duration=0,
        )
        account = RunUsage()
        started = anyio.current_time()
        try:
            answer = await self._ask(case, account)
        except (
            Exception
        ) as error:  # the application's: other trials are not its concern
            return attrs.evolve(
                result,
                error=_error_text(error),
                duration=anyio.current_time() - started,
                usage=account.usage,
            )
        duration = anyio.current_time() - started
        trial = _trial_of(answer, case, number, duration, account)
        result = attrs.evolve(
            result,
            output=json_or_text(trial.output),
            duration=trial.duration,
            usage=trial.usage,
            tool_calls=tuple(call.name for call in trial.tool_calls),
        )
        return await self._scored(result, trial)

    async def _ask(
        self, case: EvalCase[InputT, OutputT], account: RunUsage
    ) -> AgentResult[OutputT] | OutputT:
        if isinstance(self._subject, Agent):
            agent = cast("Agent[Never, OutputT]", self._subject)
            return await run_agent(agent, cast("str", case.inputs), account)
        function = cast(
            "Callable[[InputT], Awaitable[AgentResult[OutputT] | OutputT]]",
            self._subject,
        )
        return await function(case.inputs)

    async def _scored(
        self, result: TrialResult, trial: Trial[InputT, OutputT]
    ) -> TrialResult:
        """Add the scores, up to the first scorer that raises."""
        scores: list[NamedScore] = []
        used: list[Usage] = []
        error = ""
        for scorer in self._scorers:
            name = scorer_name(scorer)
            try:
                score = await _score(scorer, trial)
            except Exception as raised:  # the application's, as above
                error = f"scorer {name!r}: {_error_text(raised)}"
                if isinstance(raised, GraderError):
                    used.append(raised.usage)
                break
            if score.usage is not None:
                used.append(score.usage)
            scores.append(
                NamedScore(
                    name=name,
                    value=score.value,
                    passed=score.passed,
                    reason=score.reason,
                )
            )
        return attrs.evolve(
            result, scores=tuple(scores), error=error, scoring_usage=_total(used)
        )


async def _score(
    scorer: Scorer[InputT, OutputT], trial: Trial[InputT, OutputT]
) -> Score:
    value = scorer(trial)
    if isawaitable(value):
        value = await value
    return score_of(value)


def _trial_of(
    answer: AgentResult[OutputT] | OutputT,
    case: EvalCase[InputT, OutputT],
    number: int,
    duration: float,
    account: RunUsage,
) -> Trial[InputT, OutputT]:
    if not isinstance(answer, AgentResult):
        return Trial(case=case, number=number, output=answer, duration=duration)
    result = cast("AgentResult[OutputT]", answer)
    return Trial(
        case=case,
        number=number,
        output=result.output,
        duration=duration,
        usage=account.usage or result.usage,
        tool_calls=tool_calls_of(result),
    )


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _total(used: Sequence[Usage]) -> Usage | None:
    """Add up what was used; where one cost is not known, neither is their sum."""
    if not used:
        return None
    total = used[0]
    for usage in used[1:]:
        total += usage
    if any(usage.cost_usd is None for usage in used):
        return attrs.evolve(total, cost_usd=None)
    return total
