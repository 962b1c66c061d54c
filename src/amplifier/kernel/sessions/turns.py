"""Turns: the loop is called with what is mounted, and whatever happens the history is closed."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from time import time
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
import attrs

from amplifier.kernel.budgets.ledger import Ledger
from amplifier.kernel.calls.proxies import ToolProxy
from amplifier.kernel.calls.state import NO_METADATA
from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier.kernel.plans.plan import MountPlan
from amplifier.kernel.reports import report
from amplifier.kernel.sessions.history import SessionHistory
from amplifier.kernel.spans import Span, current_module, current_span, current_turn_id
from amplifier_sdk.content import ToolCallBlock
from amplifier_sdk.contracts import Orchestrator, Tool
from amplifier_sdk.errors import (
    BudgetExceededError,
    ConfigError,
    ModuleError,
    ModuleValidationError,
    Problem,
    TurnCancelled,
)
from amplifier_sdk.events import CANCEL_COMPLETED, SESSION_RESUME, SESSION_START, CancelCompleted, SessionStart
from amplifier_sdk.history import OpenCall, closing_message, open_calls, result_message
from amplifier_sdk.journal import Journal, TurnEnded, TurnStarted
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import LimitChanges, Limits
from amplifier_sdk.loops import Loop
from amplifier_sdk.messages import Message, MessageDict
from amplifier_sdk.results import ToolResult
from amplifier_sdk.secret import withhold
from amplifier_sdk.streaming import TextDelta, TurnFinished

if TYPE_CHECKING:
    from amplifier.kernel.calls.loopcalls import LoopCalls

__all__ = ["Turns"]

_Status: TypeAlias = Literal["completed", "cancelled", "failed"]

_ENDS: Final = {"cancelled": "the turn was cancelled", "failed": "the turn failed"}


@attrs.define(eq=False, repr=False)
class Turns:
    """Runs a session's turns, one after the other.

    `answer` is the last turn's, `status` says how it ended, `last_error` with what type of error and message,
    `ended_at` when (seconds since the epoch); `count` is how many turns there were.
    """

    plan: MountPlan
    coordinator: ModuleCoordinator
    ledger: Ledger
    failures: list[ModuleError]
    is_resumed: bool = False
    count: int = 0
    answer: str | None = None
    status: _Status = "completed"
    ended_at: float | None = None
    last_error: tuple[str, str] | None = None
    history: SessionHistory = attrs.field(
        init=False, default=attrs.Factory(lambda self: SessionHistory(self.coordinator), takes_self=True)
    )
    _started: bool = False
    _called: tuple[object, bool] = (None, False)
    _announced: LoopCalls | None = None
    _tools: dict[str, Tool] = attrs.field(factory=dict)
    _proxies: dict[str, Tool] = attrs.field(factory=dict)

    async def run(
        self,
        prompt: str,
        changes: LimitChanges | None = None,
        metadata: Mapping[str, JSONValue] | None = None,
    ) -> str:
        """Run one turn in the caller's task and return its answer.

        Args:
            prompt: what the person asks.
            changes: limits of this turn, in place of the session's.
            metadata: what the application gives the turn besides.

        Raises:
            TurnCancelled: `cancel` stopped it; the history is closed.
            BudgetExceededError: nothing is left of a budget, or the turn took its `wall_time`.
            Exception: whatever a provider or the loop raised, unchanged.
        """
        coordinator = self.coordinator
        host = coordinator.host
        coordinator.reset_turn()
        host.metadata = metadata or NO_METADATA
        self.answer, self.last_error, self._announced = None, None, None
        limits = self.ledger.begin(changes)
        span = Span(coordinator.session_id, current_span.get())
        token = current_span.set(span)
        try:
            with anyio.move_on_after(limits.wall_time) as scope:
                span.scope = host.scope = scope
                coordinator.cancellation.attach(scope)
                try:
                    if host.journal is not None:
                        await host.journal.append(TurnStarted(turn_id=current_turn_id(), prompt=prompt))
                    if not self._started:
                        await self._announce()
                    await self.history.mend()
                    self.answer = await self._orchestrate(prompt)
                    if host.reached is not None:
                        self.answer += await self._tell_limit(*host.reached)
                    await self.history.note()
                finally:
                    coordinator.cancellation.attach(None)
            if scope.cancelled_caught:
                raise self._stopped(limits)
            if host.journal is not None or coordinator.cancellation.is_cancelled:
                await self._end_turn("completed")
            self.status = "completed"
            assert self.answer is not None
            return self.answer
        except BaseException as error:
            failed = isinstance(error, Exception) and not isinstance(error, TurnCancelled)
            self.status = "failed" if failed else "cancelled"
            self.last_error = (type(error).__name__, str(error)) if failed else None
            await self._end_turn(self.status, error)
            raise
        finally:
            current_span.reset(token)
            span.was_cancelled = coordinator.cancellation.is_cancelled
            self.count += 1
            self.ended_at = time()
            self.ledger.settle()
            host.end_turn()

    def _stopped(self, limits: Limits) -> BaseException:
        """Return what a turn raises whose scope was cancelled: by `cancel`, or by its deadline."""
        text = self.coordinator.host.text
        if self.coordinator.cancellation.is_immediate:
            return TurnCancelled(text, immediate=True)
        return BudgetExceededError("wall_time", f"{limits.wall_time:g} s", partial_text=text)

    @property
    def finished(self) -> TurnFinished | None:
        """The last turn's result, if it has an answer."""
        if self.answer is None:
            return None
        host = self.coordinator.host
        total = host.total
        return TurnFinished(
            text=self.answer,
            usage=total.usage,
            iterations=host.spending.provider_calls,
            finish_reason=host.finish_reason,
            tool_calls=total.tool_calls,
            children=total.children,
            limit=host.limit,
            unread=tuple(host.steering),
            degradations=tuple(host.degradations),
        )

    async def _announce(self) -> None:
        """Emit `session:start` or `session:resume` before the first turn."""
        self._started = True
        settings = self.plan.session
        payload = SessionStart()
        if settings.metadata is not None:
            payload["metadata"] = settings.metadata
        if settings.raw:
            payload["config"] = withhold(self.coordinator.config)
        event = SESSION_RESUME if self.is_resumed else SESSION_START
        await self.coordinator.process_hook_result(await self.coordinator.hooks.emit(event, payload), event)

    async def _orchestrate(self, prompt: str) -> str:
        """Call the loop with what is mounted now."""
        orchestrator, providers = self.coordinator.orchestrator, self.coordinator.providers
        if not providers and getattr(orchestrator, "needs_provider", True):
            raise ConfigError([Problem("providers", self._no_provider())], subject="session")
        arguments: dict[str, object] = {
            "prompt": prompt,
            "context": self.coordinator.context,
            "providers": dict(providers),
            "tools": self._proxied(),
            "hooks": self.coordinator.hooks,
        }
        if self._takes_coordinator(orchestrator):
            arguments["coordinator"] = self.coordinator
        # What the code of a turn registers, such as a context's handler, is no application's.
        owner = current_module.set(self.coordinator)
        try:
            if getattr(type(orchestrator), "execute", None) is not Loop.execute:
                answer: object = await self._execute_by_hand(orchestrator, arguments)
            else:
                answer = await orchestrator.execute(**arguments)  # type: ignore[arg-type]  # the contract's five
        finally:
            current_module.reset(owner)
        if not isinstance(answer, str):
            problem = f"its execute returned {type(answer).__name__}; it must return the answer's text"
            raise ModuleValidationError(self.plan.modules["orchestrator"][0].module, problem)
        return answer

    async def _execute_by_hand(self, orchestrator: Orchestrator, arguments: dict[str, object]) -> object:
        """Call a loop that announces its tool calls and stores their results itself.

        Its hooks tell of each call once, and its context stores injections behind results. `coordinator.hooks` are
        those hooks as long as it runs.
        """
        from amplifier.kernel.calls.loopcalls import LoopCalls  # the SDK's loops need none of them
        from amplifier.kernel.calls.loopcontext import LoopContext
        from amplifier.kernel.calls.loophooks import LoopHooks

        coordinator, hooks = self.coordinator, self.coordinator.hooks
        coordinator.host.loop_calls = self._announced = calls = LoopCalls()
        coordinator.hooks = arguments["hooks"] = LoopHooks(coordinator, calls)
        arguments["context"] = LoopContext(coordinator.context, coordinator.host.decisions)
        try:
            return await orchestrator.execute(**arguments)  # type: ignore[arg-type]  # the contract's five
        finally:
            coordinator.hooks, coordinator.host.loop_calls = hooks, None

    async def _tell_limit(self, name: str, amount: object) -> str:
        """Return what the answer of a turn that ended early says of it, and tell the reader of the turn."""
        note = f"[The turn ended early: its limit {name!r} of {amount} is reached.]"
        note = f"\n\n{note}" if self.answer else note
        stream = self.coordinator.host.stream
        if stream is not None:
            await stream.send(TextDelta(text=note))
        return note

    def _no_provider(self) -> str:
        failed = "; ".join(" ".join(str(failure).split()) for failure in self.failures)
        return "no provider is mounted" + (f": {failed}" if failed else "; name one in the plan's 'providers'")

    def _proxied(self) -> dict[str, Tool]:
        """Return the tools as proxies, made anew only when the tools changed."""
        tools = self.coordinator.tools
        if tools != self._tools:
            self._tools = dict(tools)
            self._proxies = {name: ToolProxy(tool, self.coordinator.host, name) for name, tool in tools.items()}
        return dict(self._proxies)

    async def _end_turn(self, status: _Status, error: BaseException | None = None) -> None:
        """Close the history and tell everybody; runs to its end even when the caller is cancelled."""
        coordinator, journal = self.coordinator, self.coordinator.host.journal
        with anyio.CancelScope(shield=True), anyio.move_on_after(self.plan.session.limits.cleanup_timeout):
            if status != "completed":
                await self._close_history(_reason(status, error))
            if journal is not None:
                await self._write_end(journal, status)
            if coordinator.cancellation.is_cancelled:
                await coordinator.announce_cancel()
                payload = CancelCompleted(was_immediate=coordinator.cancellation.is_immediate)
                await coordinator.hooks.emit_reserved(CANCEL_COMPLETED, payload)

    async def _write_end(self, journal: Journal, status: _Status) -> None:
        """Write the turn's last record; a failing journal fails a turn that did not fail already."""
        try:
            await journal.append(TurnEnded(turn_id=current_turn_id(), status=status))
        except Exception as error:  # foreign code
            if status == "completed":
                raise
            report("journal.failed", error, session_id=self.coordinator.session_id)

    async def _close_history(self, reason: str) -> None:
        """Answer every open call: with its result if it finished, else with a note that it did not.

        Text that the model had begun is kept as an incomplete answer.
        """
        context, host = self.coordinator.context, self.coordinator.host
        try:
            messages = await context.get_messages()
            for call in open_calls(messages):
                result = host.finished.get(call.id) or self._result_by_hand(messages, call)
                if result is not None:
                    message = result_message(call.id, call.name, result)
                else:
                    message = closing_message(call, f"the call did not finish: {reason}")
                await context.add_message(message)
            await host.decisions.store_waiting()
            if host.unfinished_text:
                await context.add_message(
                    {"role": "assistant", "content": host.unfinished_text, "metadata": {"incomplete": True}}
                )
        except Exception as error:  # foreign code; the turn's own error matters more
            report("history.not_closed", error, session_id=self.coordinator.session_id)

    def _result_by_hand(self, messages: Sequence[MessageDict], call: OpenCall) -> ToolResult | None:
        """Return the result of a call that a loop written by hand ran under another id than the history's."""
        if self._announced is None:
            return None
        last = next(message for message in reversed(messages) if message.get("role") == "assistant")
        blocks = (block for block in Message.from_dict(last).content if isinstance(block, ToolCallBlock))
        made = next((block for block in blocks if block.id == call.id), None)
        return None if made is None else self._announced.take_result(made.name, made.input)

    def _takes_coordinator(self, orchestrator: Orchestrator) -> bool:
        """Whether the loop takes a `coordinator` besides the contract's five; looked at once for each loop."""
        if self._called[0] is not orchestrator:
            parameters = inspect.signature(orchestrator.execute).parameters
            catches_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
            self._called = (orchestrator, catches_all or "coordinator" in parameters)
        return self._called[1]


def _reason(status: _Status, error: BaseException | None) -> str:
    """Say why a turn ended, for the model that reads about its calls."""
    if isinstance(error, BudgetExceededError):
        return f"the turn's limit {error.limit!r} of {error.amount} was reached"
    return _ENDS[status]
