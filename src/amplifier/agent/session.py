"""An open session of an agent: many turns, each with an answer of the agent's output type."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar, cast

import attrs

from amplifier.agent.partial_answers import PartialAnswer
from amplifier.agent.result import AgentResult
from amplifier.kernel.sessions.answers import AnswerCheck
from amplifier.kernel.sessions.session import AmplifierSession
from amplifier.kernel.turn.stream import EventFunction, TurnStream
from amplifier_sdk.chat import Usage
from amplifier_sdk.contracts import Coordinator
from amplifier_sdk.run_context import RUN_CONTEXT, RunContext
from amplifier_sdk.streaming import StreamEvent, TurnFinished

if TYPE_CHECKING:
    from amplifier.agent.agent import Agent
    from amplifier.kernel.modules.loader import ModuleLoader
    from amplifier_sdk.contracts import ApprovalSystem, DisplaySystem
    from amplifier_sdk.jsontypes import JSONObject, JSONValue
    from amplifier_sdk.media import Prompt
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
        check: what its answers have to be; `None` where any text will do.
    """

    agent: Agent[DepsT, OutputT]
    session: AmplifierSession
    deps: DepsT = attrs.field(repr=False)
    check: AnswerCheck | None = attrs.field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        agent: Agent[DepsT, OutputT],
        plan: JSONObject,
        loader: ModuleLoader,
        deps: DepsT,
        check: AnswerCheck | None,
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
        made = cls(agent, session, deps, check)
        session.coordinator.register_capability(RUN_CONTEXT, made._run_context)
        return made

    async def __aenter__(self) -> Self:
        await self.session.__aenter__()
        failures = self.session.failures
        if failures:
            # what an application names it needs: an agent without one of its tools is another one
            await self.session.__aexit__(None, None, None)
            raise failures[0]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self.session.__aexit__(kind, error, traceback)

    async def run(
        self, prompt: Prompt, *, sink: EventFunction | None = None
    ) -> AgentResult[OutputT]:
        """Answer a prompt; arguments and errors are those of `Agent.run`, `sink` is that of `AmplifierSession.execute`.

        Where the answer is not of the agent's type, the sink has had `TurnFinished` when the error is raised.
        """
        text = await self.session.execute(prompt, metadata=self._form(), sink=sink)
        return await self._result(text)

    @asynccontextmanager
    async def stream(self, prompt: Prompt) -> AsyncIterator[AgentStream[OutputT]]:
        """Answer a prompt and read its events; see `Agent.stream`."""
        schema = self.agent.output_schema
        partial = None if schema is None else PartialAnswer(schema)
        async with self.session.stream(prompt, metadata=self._form()) as events:
            yield AgentStream(events, self._result, partial)

    def _form(self) -> JSONObject | None:
        """Return what asks the model for answers of the agent's type."""
        if self.check is None:
            return None
        return self.check.metadata

    async def _result(self, text: str) -> AgentResult[OutputT]:
        """Return what the turn that ended last came to."""
        coordinator, finished = self.session.coordinator, self.session.last_turn
        assert finished is not None
        if self.check is None:
            output: object = text
        else:
            output = await self.check.take(coordinator, text, finished.usage)
        return AgentResult(
            output=cast("OutputT", output),
            text=text,
            session_id=self.session.session_id,
            usage=finished.usage,
            messages=tuple(await coordinator.context.get_messages()),
            limit=finished.limit,
            degradations=finished.degradations,
        )

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
    _make: Callable[[str], Awaitable[AgentResult[OutputT]]]
    _answer: PartialAnswer | None = None
    _result: AgentResult[OutputT] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent:
        event = await self._events.__anext__()
        if self._answer is not None:
            self._answer.read(event)
        if isinstance(event, TurnFinished):
            self._result = await self._make(event.text)
        return event

    @property
    def partial(self) -> JSONValue:
        """What is certain of a typed answer that is still being written, as JSON data; `None` before it begins.

        Texts grow; a number is there when it ends. The next event changes the value; copy what you keep. Nothing of
        it was checked yet, and a rejected answer is followed by another one.
        """
        if self._answer is None:
            return None
        return self._answer.value

    @property
    def result(self) -> AgentResult[OutputT]:
        """What the run came to.

        Raises:
            RuntimeError: the run has not ended; read its events first.
        """
        if self._result is None:
            raise RuntimeError("The run has not ended; read its events first")
        return self._result


def _sum(before: Usage | None, more: Usage | None) -> Usage | None:
    if before is None or more is None:
        return before or more
    return before + more
