"""An open session of an agent: many turns, each with an answer of the agent's output type."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar, cast

import attrs

from amplifier.agent.errors import OutputError, OutputRejectedError
from amplifier.agent.instructions import split
from amplifier.agent.prompts import ask_again, instructions_of
from amplifier.agent.result import AgentResult
from amplifier.agent.validators import validated
from amplifier.kernel.groups import open_group
from amplifier.kernel.sessions.session import AmplifierSession
from amplifier.kernel.turn.stream import EventFunction, TurnStream
from amplifier_sdk.chat import Usage
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.errors import OutputMisfitError
from amplifier_sdk.limits import LimitChanges
from amplifier_sdk.run_context import RUN_CONTEXT, RunContext
from amplifier_sdk.streaming import StreamEvent, TurnFinished

if TYPE_CHECKING:
    from amplifier.agent.agent import Agent
    from amplifier.kernel.modules.loader import ModuleLoader
    from amplifier_sdk.contracts import ApprovalSystem, DisplaySystem
    from amplifier_sdk.jsontypes import JSONObject
    from amplifier_sdk.progress import ToolContext

__all__ = ["AgentSession", "AgentStream"]

DepsT = TypeVar("DepsT")
OutputT = TypeVar("OutputT")


@attrs.define(eq=False)
class AgentSession(Generic[DepsT, OutputT]):
    """A conversation with an agent.

    Args:
        agent: whom it is with.
        session: the kernel's session, for what an agent has no word of.
        deps: what the agent's functions find as `ctx.deps`.
    """

    agent: Agent[DepsT, OutputT]
    session: AmplifierSession
    deps: DepsT = attrs.field(repr=False)

    @classmethod
    def of(
        cls,
        agent: Agent[DepsT, OutputT],
        plan: JSONObject,
        loader: ModuleLoader,
        deps: DepsT,
        *,
        approval_system: ApprovalSystem | None = None,
        display_system: DisplaySystem | None = None,
        session_id: str | None = None,
    ) -> Self:
        """Make the session of an agent's plan."""
        session = AmplifierSession(
            plan,
            loader,
            session_id,
            approval_system=approval_system,
            display_system=display_system,
        )
        made = cls(agent, session, deps)
        session.coordinator.register_capability(RUN_CONTEXT, made._run_context)
        return made

    async def __aenter__(self) -> Self:
        await self.session.__aenter__()
        await self._instruct()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self.session.__aexit__(kind, error, traceback)

    async def run(self, prompt: str) -> AgentResult[OutputT]:
        """Answer a prompt; arguments and errors are those of `Agent.run`."""
        return await self._answer(prompt)

    @asynccontextmanager
    async def stream(self, prompt: str) -> AsyncIterator[AgentStream[OutputT]]:
        """Answer a prompt and read its events; see `Agent.stream`."""
        events = TurnStream()
        reading = AgentStream[OutputT](events)

        async def run() -> None:
            try:
                reading.finished = await self._answer(prompt, events.send)
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                # whatever ended the run is the reader's
                events.close(error)
            finally:
                events.close()

        async with open_group() as group:
            group.start_soon(run)
            try:
                yield reading
            finally:
                group.cancel_scope.cancel()
        events.raise_unseen()

    # -- a turn

    async def _answer(
        self, prompt: str, sink: EventFunction | None = None
    ) -> AgentResult[OutputT]:
        """Ask until the answer is of the wanted type, within the limits of one run."""
        problems: list[str] = []
        usage: Usage | None = None
        limits = self.agent.turn_limits
        while True:
            text, finished = await self._turn(prompt, limits, sink)
            usage = _sum(usage, finished.usage)
            try:
                output = await self._read(text, attempt=len(problems) + 1)
            except (OutputMisfitError, OutputRejectedError) as misfit:
                problems.append(str(misfit))
                if len(problems) > self.agent.output_retries or finished.limit:
                    raise OutputError(text, tuple(problems), usage) from None
                prompt = ask_again(misfit)
                limits = _left(limits, finished)
                continue
            if sink is not None:
                await _send(sink, finished)
            return await self._result(output, text, usage, finished)

    async def _read(self, text: str, *, attempt: int) -> OutputT:
        """Return an answer as a value of the output type that all validators accept."""
        wanted = self.agent.output_schema
        output = text if wanted is None else wanted.read(text)
        if not self.agent.output_validators:
            return cast("OutputT", output)
        context = self._run_context(self.session.coordinator, attempt=attempt)
        return await validated(
            cast("OutputT", output),
            cast("RunContext[DepsT]", context),
            self.agent.output_validators,
        )

    async def _turn(
        self, prompt: str, limits: LimitChanges, sink: EventFunction | None
    ) -> tuple[str, TurnFinished]:
        """Run one turn; the event that ends it is for who knows whether another one follows."""

        def pass_on(event: StreamEvent) -> object:
            if isinstance(event, TurnFinished):
                return None
            assert sink is not None
            return sink(event)

        handed = None if sink is None else cast("EventFunction", pass_on)
        text = await self.session.execute(prompt, limits, sink=handed)
        finished = self.session.last_turn
        assert finished is not None
        return text, finished

    async def _result(
        self, output: OutputT, text: str, usage: Usage | None, finished: TurnFinished
    ) -> AgentResult[OutputT]:
        messages = await self.session.coordinator.context.get_messages()
        return AgentResult(
            output=output,
            text=text,
            session_id=self.session.session_id,
            usage=usage,
            messages=tuple(messages),
            limit=finished.limit,
        )

    async def _instruct(self) -> None:
        """Put what always holds before the conversation, unless there is one already."""
        text, _ = split(self.agent.instructions)
        always = instructions_of(text, self.agent.output_schema)
        context = self.session.coordinator.context
        if always is not None and not await context.get_messages():
            await context.add_message({"role": "system", "content": always})

    def _run_context(
        self,
        coordinator: Coordinator,
        /,
        *,
        call: ToolContext | None = None,
        attempt: int = 1,
    ) -> RunContext[object]:
        """Make the context of this session or one below it."""
        session = getattr(coordinator, "session", None)
        if not isinstance(session, AmplifierSession):
            session = self.session
        ledger = session.ledger
        usage = ledger.spending.usage
        if ledger.running is not None:
            usage = _sum(usage, ledger.running.total.usage)
        return RunContext(
            deps=self.deps,
            session_id=session.session_id,
            usage=usage,
            limits=ledger.limits_of(ledger.changes),
            call_id="" if call is None else call.call_id,
            attempt=attempt,
            call=call,
            read=session.coordinator.context.get_messages,
        )


@attrs.define(eq=False)
class AgentStream(Generic[OutputT]):
    """The events of one run, for one reader; the last one is `TurnFinished`.

    An answer that is rejected is followed by the events of the next attempt.
    """

    _events: TurnStream
    finished: AgentResult[OutputT] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent:
        return await self._events.__anext__()

    @property
    def result(self) -> AgentResult[OutputT]:
        """What the run came to.

        Raises:
            RuntimeError: the run has not ended; read its events first.
        """
        if self.finished is None:
            raise RuntimeError("The run has not ended; read its events first")
        return self.finished


async def _send(sink: EventFunction, event: StreamEvent) -> None:
    waiting = sink(event)
    if waiting is not None:
        await waiting


def _sum(before: Usage | None, more: Usage | None) -> Usage | None:
    if before is None or more is None:
        return before or more
    return before + more


def _left(limits: LimitChanges, finished: TurnFinished) -> LimitChanges:
    """Return what a run may still take after a turn: the attempts share its limits."""
    left = dict(limits)
    spent: dict[str, int | Decimal | None] = {
        "iterations": finished.iterations,
        "tool_calls": finished.tool_calls,
    }
    if finished.usage is not None:
        spent["tokens"] = finished.usage.total_tokens
        spent["cost_usd"] = finished.usage.cost_usd
    for name, amount in spent.items():
        limit = left.get(name)
        if limit is not None and amount is not None:
            # a limit is above 0: the least that is left ends the next turn at once
            rest = Decimal(str(limit)) - amount
            least = Decimal("0.000001") if name == "cost_usd" else Decimal(1)
            left[name] = (
                max(rest, least) if name == "cost_usd" else int(max(rest, least))
            )
    return cast("LimitChanges", left)
