"""An experiment: each case asked several times, scored, stored, within limits that all trials share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final, Generic, Never, TypedDict, TypeVar, cast, overload

import anyio
import attrs
from typing_extensions import Unpack

from amplifier.agent.agent import Agent
from amplifier.agent.result import AgentResult
from amplifier.kernel.groups import open_group
from amplifier.testing.evals._run import ExperimentRun, Job
from amplifier.testing.evals.cases import EvalCase
from amplifier.testing.evals.errors import ExperimentStoppedError
from amplifier.testing.evals.fingerprints import Describer, digest
from amplifier.testing.evals.report import EvalReport
from amplifier.testing.evals.results import ResultFile
from amplifier.testing.evals.scorers import dollars
from amplifier.testing.evals.trials import Scorer, scorer_name
from amplifier_sdk.bounds import count
from amplifier_sdk.convert import to_json
from amplifier_sdk.errors import ConfigError, Problem

__all__ = ["Experiment", "ExperimentOptions"]

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

_FORMAT: Final = 1
"""Part of each key: results of another format are not used again."""


class ExperimentOptions(TypedDict, total=False):
    """The options of an experiment; see `Experiment`."""

    repeats: int
    concurrency: int
    max_cost_usd: Decimal | float | str | None
    results: str | Path | None
    version: str
    name: str


@attrs.frozen(kw_only=True)
class _Options:
    repeats: int = attrs.field(default=1, validator=count)
    concurrency: int = attrs.field(default=4, validator=count)
    max_cost_usd: Decimal | None = attrs.field(
        default=None, converter=attrs.converters.optional(dollars)
    )
    results: Path | None = attrs.field(
        default=None, converter=attrs.converters.optional(Path)
    )
    version: str = ""
    name: str = "experiment"


@attrs.frozen(init=False, eq=False)
class Experiment(Generic[InputT, OutputT]):
    """Asks each case and scores the answers; it may run any number of times, on both event loops.

    A trial that raises fails and ends no other. Cancelling the run cancels all of them.

    Args:
        subject: an agent, which runs each case in a session of its own, or an async function of a case's inputs that
            returns the output, or an `AgentResult` where cost and tool calls matter.
        cases: what is asked, each with a name of its own.
        scorers: what decides whether a trial passes; without any, one passes that raised nothing.
        repeats: how often each case runs; all run once before one is repeated.
        concurrency: how many trials run at once.
        max_cost_usd: what all trials and scorers together may cost, those of `results` included. From then on no trial
            is started; those that run come to their end, so that the agent's own limits bound the rest. A cost that
            is not known stops the experiment as well.
        results: a file to which each result is appended. What it holds already does not run again, unless the agent,
            the case, a scorer or the version has changed, or the trial raised.
        version: stands for what an experiment cannot see a change of, such as a provider object or files of prompts.
        name: what reports call it.

    Raises:
        ConfigError: two cases or two scorers have one name, or inputs have no JSON form; names them.
        ValueError: an option is out of its bounds.
    """

    subject: object
    cases: tuple[EvalCase[InputT, OutputT], ...]
    scorers: tuple[Scorer[InputT, OutputT], ...]
    options: _Options

    @overload
    def __init__(
        self: Experiment[str, OutputT],
        subject: Agent[Never, OutputT],
        cases: Sequence[EvalCase[str, OutputT]],
        scorers: Sequence[Scorer[str, OutputT]] = (),
        **options: Unpack[ExperimentOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Experiment[InputT, OutputT],
        subject: Callable[[InputT], Awaitable[AgentResult[OutputT]]],
        cases: Sequence[EvalCase[InputT, OutputT]],
        scorers: Sequence[Scorer[InputT, OutputT]] = (),
        **options: Unpack[ExperimentOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Experiment[InputT, OutputT],
        subject: Callable[[InputT], Awaitable[OutputT]],
        cases: Sequence[EvalCase[InputT, OutputT]],
        scorers: Sequence[Scorer[InputT, OutputT]] = (),
        **options: Unpack[ExperimentOptions],
    ) -> None: ...
    def __init__(
        self,
        subject: object,
        cases: Sequence[object],
        scorers: Sequence[object] = (),
        **options: Unpack[ExperimentOptions],
    ) -> None:
        asked = tuple(cast("Sequence[EvalCase[InputT, OutputT]]", cases))
        scored = tuple(cast("Sequence[Scorer[InputT, OutputT]]", scorers))
        _check(asked, scored)
        self.__attrs_init__(subject, asked, scored, _Options(**options))

    async def run(self) -> EvalReport:
        """Run what no stored result stands for, and report on all of it.

        Raises:
            ExperimentStoppedError: a limit left trials undone; has the report of the others.
            ConfigError: `results` needs a `version`; says for what.
            OSError: the file of results cannot be read or written.
        """
        options = self.options
        jobs = self._jobs()
        with ResultFile.open(options.results) as file:
            run = ExperimentRun(
                self.subject, self.scorers, options.max_cost_usd, file, jobs
            )
            async with open_group() as group:
                for _ in range(min(options.concurrency, run.undone)):
                    group.start_soon(run.work)
        report = EvalReport(
            name=options.name,
            results=tuple(run.done[key] for key in jobs if key in run.done),
            reused=run.reused,
            damaged=file.damaged,
        )
        if run.undone:
            raise ExperimentStoppedError(run.stopped, run.undone, report)
        return report

    def run_sync(self, *, backend: str = "asyncio") -> EvalReport:
        """Do what `run` does where no event loop runs, as in scripts.

        Args:
            backend: `asyncio` or `trio`.

        Raises:
            RuntimeError: an event loop runs in this thread.
            Exception: as `run`.
        """
        return anyio.run(self.run, backend=backend)

    def _jobs(self) -> dict[str, Job[InputT, OutputT]]:
        """Return the trials by their keys, those of all cases before those of a repetition."""
        common: object = None
        if self.options.results is not None:
            describer = Describer(self.options.version)
            common = [
                describer.describe(self.subject, "the subject"),
                describer.describe(self.scorers, "the scorers"),
                self.options.version,
            ]
        jobs = {}
        for number in range(1, self.options.repeats + 1):
            for case in self.cases:
                asked = to_json(attrs.asdict(case, recurse=False))
                jobs[digest(_FORMAT, common, asked, number)] = (case, number)
        return jobs


def _check(
    cases: Sequence[EvalCase[InputT, OutputT]],
    scorers: Sequence[Scorer[InputT, OutputT]],
) -> None:
    problems: list[Problem] = []
    if not cases:
        problems.append(
            Problem("cases", "there is none; an empty experiment would pass")
        )
    problems += _repeated("cases", [case.name for case in cases])
    problems += _repeated("scorers", [scorer_name(scorer) for scorer in scorers])
    for case in cases:
        try:
            to_json(attrs.asdict(case, recurse=False))
        except (TypeError, ValueError) as error:
            problems.append(Problem(f"cases: {case.name}", str(error)))
    if problems:
        raise ConfigError(problems, subject="experiment")


def _repeated(path: str, names: Sequence[str]) -> list[Problem]:
    return [
        Problem(path, f"{number} are called {name!r}; give each a name of its own")
        for name, number in Counter(names).items()
        if number > 1
    ]
