"""Turns: the loop is called with what is mounted, and whatever happens the history is closed."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from time import time
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
import attrs

from amplifier.kernel.budgets.expenses import Spending
from amplifier.kernel.budgets.ledger import Ledger
from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier.kernel.foreign import ForeignCall
from amplifier.kernel.hooks.decisions import never
from amplifier.kernel.plans.plan import MountPlan
from amplifier.kernel.reports import report
from amplifier.kernel.sessions.history import SessionHistory
from amplifier.kernel.spans import Span, current_module, current_span, current_turn_id
from amplifier.kernel.turn.proxies import ToolProxy
from amplifier.kernel.turn.turn import RunningTurn
from amplifier_sdk.contracts import Orchestrator, Tool
from amplifier_sdk.errors import (
    BudgetExceededError,
    ConfigError,
    ModuleError,
    ModuleValidationError,
    TurnCancelled,
    TurnSuspendedError,
)
from amplifier_sdk.events import (
    CANCEL_COMPLETED,
    SESSION_RESUME,
    SESSION_START,
    CancelCompleted,
    SessionStart,
)
from amplifier_sdk.history import closing_message, open_calls, result_message
from amplifier_sdk.journal import Journal, TurnEnded, TurnStarted
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.limits import LimitChanges
from amplifier_sdk.loops import Loop
from amplifier_sdk.loops.notices import ended_early
from amplifier_sdk.middleware import TurnCall, event_of
from amplifier_sdk.secret import withhold
from amplifier_sdk.streaming import TextDelta

if TYPE_CHECKING:
    from amplifier.kernel.hooks.middleware import MiddlewareChain
    from amplifier.kernel.turn.prompts import MediaPrompt
    from amplifier.kernel.turn.stream import EventSink
    from amplifier_sdk.journal import RecordedTurn
    from amplifier_sdk.media import Prompt

__all__ = ["TurnQueue"]

_Status: TypeAlias = Literal["completed", "cancelled", "failed"]

AROUND_TURN: Final = event_of("turn")
_ENDS: Final = {"cancelled": "the turn was cancelled", "failed": "the turn failed"}


@attrs.define(eq=False, repr=False)
class TurnQueue:
    """Runs a session's turns, one after the other.

    `last` is the turn that runs or ran last, `status` says how the last one ended, `last_error` with what type of
    error and message, `ended_at` when (seconds since the epoch); `count` is how many turns there were.
    """

    plan: MountPlan
    coordinator: ModuleCoordinator
    ledger: Ledger
    failures: list[ModuleError]
    is_resumed: bool = False
    count: int = 0
    last: RunningTurn | None = None
    status: _Status = "completed"
    ended_at: float | None = None
    last_error: tuple[str, str] | None = None
    history: SessionHistory = attrs.field(
        init=False,
        default=attrs.Factory(
            lambda self: SessionHistory(self.coordinator), takes_self=True
        ),
    )
    _started: bool = False
    _called: tuple[object, bool] = (None, False)
    _tools: dict[str, Tool] = attrs.field(factory=dict)
    _proxies: dict[str, Tool] = attrs.field(factory=dict)

    async def run(
        self,
        prompt: Prompt,
        changes: LimitChanges | None = None,
        metadata: Mapping[str, JSONValue] | None = None,
        stream: EventSink | None = None,
        recorded: RecordedTurn | None = None,
    ) -> str:
        """Run one turn in the caller's task and return its answer.

        Args:
            prompt: what the person asks, perhaps with media.
            changes: limits of this turn, in place of the session's.
            metadata: what the application gives the turn besides.
            stream: where the events of the turn go, if somebody reads them.
            recorded: what the journal has of the turn, where that is continued.

        Raises:
            MediaError: media of the prompt are not of their kind, or too large.
            TurnCancelled: `cancel` stopped it; the history is closed.
            TurnSuspendedError: it waits for a person; nothing of it is closed.
            BudgetExceededError: nothing is left of a budget, or the turn took its `wall_time`.
            Exception: whatever a provider or the loop raised, unchanged.
        """
        coordinator = self.coordinator
        suspension = coordinator.decisions.suspension
        # opening may raise, and then no turn ran whose result could be read
        self.last = None
        text, given = _read(prompt)
        self.last = turn = self._open(changes, metadata, stream, given)
        span = Span(coordinator.session_id, current_span.get())
        self._continue(turn, span, recorded)
        token = current_span.set(span)
        try:
            foreign, is_over = self._bounded(turn, span), False
            try:
                with suspension.call_waiting():
                    await foreign.run(self._work(turn, text))
                is_over = not foreign.cancelled_caught
            finally:
                coordinator.cancellation.attach(None)
                suspension.end(is_root=self.ledger.parent is None, is_over=is_over)
            if foreign.cancelled_caught:
                raise self._stopped(turn)
            if (
                coordinator.services.journal is not None
                or coordinator.cancellation.is_cancelled
            ):
                await self._end(turn, "completed")
            self.status, self.last_error = "completed", None
            assert turn.answer is not None
            return turn.answer
        except BaseException as error:
            # a turn that is suspended is neither ended nor closed: it is continued from its journal
            if not suspension.is_done:
                self._note_failure(error)
                # the error is raised as it came, after the history is one that a vendor accepts
                await self._end(turn, self.status, error)
            raise
        finally:
            current_span.reset(token)
            self._settle(turn, span)

    def _bounded(self, turn: RunningTurn, span: Span) -> ForeignCall:
        """Make the turn's scope, which its deadline, `cancel` and a suspension end, and the call that runs in it."""
        scope = anyio.CancelScope(deadline=anyio.current_time() + turn.limits.wall_time)
        span.scope = turn.budget.scope = scope
        # `CancelScope()` looks up the backend each time; its class makes one without
        turn.budget.scope_class = type(scope)
        # a request that came before the scope was there cancels it now
        self.coordinator.cancellation.attach(scope)
        self.coordinator.decisions.suspension.begin(
            scope, self.coordinator.cancellation, is_root=self.ledger.parent is None
        )
        # Its calls come first to leave a part that ignores its cancellation behind.
        grace = 2 * self.plan.session.limits.cleanup_timeout
        name = f"Orchestrator {self.plan.modules['orchestrator'][0].module!r}"
        return ForeignCall(name, scope, grace=grace)

    def _note_failure(self, error: BaseException) -> None:
        """Note how a turn ended that gave no answer."""
        if isinstance(error, Exception) and not isinstance(error, TurnCancelled):
            self.status = "failed"
            self.last_error = (type(error).__name__, str(error))
        else:
            self.status, self.last_error = "cancelled", None

    def _settle(self, turn: RunningTurn, span: Span) -> None:
        """Release a turn and charge what it spent, however it ended."""
        span.was_cancelled = self.coordinator.cancellation.is_cancelled
        self.coordinator.decisions.is_recorded = never
        self.count += 1
        self.ended_at = time()
        # also what a failed turn spent: the vendor charges for it
        self.ledger.settle(turn.budget)
        turn.release()

    async def _work(self, turn: RunningTurn, prompt: str) -> None:
        """Do all that a turn does within its deadline."""
        journal, replay = self.coordinator.services.journal, turn.log.replay
        if journal is not None and not (replay and replay.recorded.is_begun):
            await journal.append(TurnStarted(turn_id=current_turn_id(), prompt=prompt))
        if not self._started:
            await self._announce()
        await self.history.mend()
        # the history is repaired before the loop asks anybody: vendors refuse a broken
        # one
        around = self.coordinator.services.hooks.middleware(AROUND_TURN)
        if around is not None:
            turn.answer = await self._surrounded(around, turn, prompt)
        else:
            with self._as_owner():
                answer = await self._call_loop(turn, prompt)
            turn.answer = self._checked(answer)
        if turn.budget.reached is not None:
            await self._note_limit(turn, turn.answer)
        await self.history.note()

    async def _surrounded(
        self, around: MiddlewareChain, turn: RunningTurn, prompt: str
    ) -> str:
        """Run the loop through the session's middleware."""

        async def run(call: TurnCall) -> str:
            turn.metadata = call.metadata
            with self._as_owner():
                answer = await self._call_loop(turn, call.prompt)
            return self._checked(answer)

        made = TurnCall(
            session_id=self.coordinator.session_id,
            prompt=prompt,
            metadata=turn.metadata,
        )
        answer: object = await around(made, run)
        if not isinstance(answer, str):
            problem = f"a turn's middleware returned {type(answer).__name__}; expected the answer's text"
            raise ConfigError.of("", problem, subject="middleware")
        return answer

    def _open(
        self,
        changes: LimitChanges | None,
        metadata: Mapping[str, JSONValue] | None,
        stream: EventSink | None,
        given: MediaPrompt | None,
    ) -> RunningTurn:
        """Make the turn, of the parts that its loop needs; from here on it is the hooks' host."""
        coordinator = self.coordinator
        budget = self.ledger.open_turn(changes)
        if type(coordinator.orchestrator).execute is Loop.execute:
            turn = RunningTurn(coordinator.services, budget, metadata, stream, given)
        else:
            # the SDK's loops need no part of it
            from amplifier.kernel.handwritten.turn import HandwrittenTurn

            hooks, tools = coordinator.hooks, coordinator.tools
            turn = HandwrittenTurn(
                coordinator.services,
                budget,
                metadata,
                stream,
                given,
                hooks=hooks,
                tools=tools,
            )
        coordinator.hooks.host = turn
        return turn

    def _continue(
        self, turn: RunningTurn, span: Span, recorded: RecordedTurn | None
    ) -> None:
        """Let a turn continue under the id and with the account that its journal has, where it has any of it."""
        if recorded is None:
            return
        from amplifier.kernel.turn.replay import Replay  # few turns are continued

        span.call_turn(recorded.turn_id)
        turn.log.replay = replay = Replay(recorded)
        # what is injected beside a recorded answer is recorded as well
        self.coordinator.decisions.is_recorded = lambda: replay.is_behind
        # its calls are counted as they are replayed
        spent = {
            name: amount
            for name, amount in recorded.spending.items()
            if name not in ("tool_calls", "tool_failures")
        }
        turn.budget.spending.add(Spending.from_dict(spent))

    def _stopped(self, turn: RunningTurn) -> BaseException:
        """Return what a turn raises whose scope was cancelled: by `cancel`, by a suspension or by its deadline."""
        text, cancellation = turn.text, self.coordinator.cancellation
        if cancellation.is_cancelled:
            return TurnCancelled(text, immediate=cancellation.is_immediate)
        if self.coordinator.decisions.suspension.is_done:
            return TurnSuspendedError()
        return BudgetExceededError(
            "wall_time", f"{turn.limits.wall_time:g} s", partial_text=text
        )

    async def _announce(self) -> None:
        """Emit `session:start` or `session:resume` before the first turn."""
        self._started = True
        settings = self.plan.session
        payload = SessionStart()
        if settings.metadata is not None:
            payload["metadata"] = settings.metadata
        event = SESSION_START
        if self.is_resumed:
            event = SESSION_RESUME
        if settings.raw or event == SESSION_START:
            payload["config"] = withhold(self.coordinator.config)
        await self.coordinator.process_hook_result(
            await self.coordinator.hooks.emit(event, payload), event
        )

    def _call_loop(self, turn: RunningTurn, prompt: str) -> Awaitable[object]:
        """Call the loop with what is mounted now; its caller awaits the answer, a frame less in every traceback."""
        coordinator = self.coordinator
        orchestrator, providers = coordinator.orchestrator, coordinator.providers
        if not providers and getattr(orchestrator, "needs_provider", True):
            raise ConfigError.of("providers", self._no_provider(), subject="session")
        arguments: dict[str, object] = {
            "prompt": prompt,
            "context": turn.context_for_loop(coordinator.context),
            "providers": turn.providers_for_loop(providers, coordinator.hooks),
            "tools": self._proxied(),
            "hooks": coordinator.hooks,
        }
        if self._takes_coordinator(orchestrator):
            arguments["coordinator"] = coordinator
        return orchestrator.execute(**arguments)  # type: ignore[arg-type]  # the contract's five

    @contextmanager
    def _as_owner(self) -> Iterator[None]:
        """Let what the code of a turn registers, such as a context's handler, be no application's."""
        owner = current_module.set(self.coordinator)
        try:
            yield
        finally:
            current_module.reset(owner)

    def _checked(self, answer: object) -> str:
        """Return what the loop returned, if it is an answer's text."""
        if isinstance(answer, str):
            return answer
        problem = f"its execute returned {type(answer).__name__}; it must return the answer's text"
        raise ModuleValidationError(
            self.plan.modules["orchestrator"][0].module, problem
        )

    async def _note_limit(self, turn: RunningTurn, answer: str) -> None:
        """Add to the answer of a turn that a limit ended which one it was; the reader of the turn sees it too."""
        assert turn.budget.reached is not None
        note = ended_early(answer, *turn.budget.reached)
        if turn.stream is not None:
            await turn.stream.send(TextDelta(text=note))
        turn.answer = answer + note

    def _no_provider(self) -> str:
        failed = "; ".join(" ".join(str(failure).split()) for failure in self.failures)
        return "no provider is mounted" + (
            f": {failed}" if failed else "; name one in the plan's 'providers'"
        )

    def _proxied(self) -> dict[str, Tool]:
        """Return the tools as proxies, made anew only when the tools changed."""
        coordinator, tools = self.coordinator, self.coordinator.tools
        # modules may mount and unmount between turns, and most turns find the same
        # tools
        if tools != self._tools:
            self._tools = dict(tools)
            self._proxies = {
                name: ToolProxy(tool, coordinator.hooks, name)
                for name, tool in tools.items()
            }
        return dict(self._proxies)

    async def _end(
        self, turn: RunningTurn, status: _Status, error: BaseException | None = None
    ) -> None:
        """Close the history and announce the end; runs to its end even when the caller is cancelled."""
        coordinator, journal = self.coordinator, self.coordinator.services.journal
        with (
            anyio.CancelScope(shield=True),
            anyio.move_on_after(self.plan.session.limits.cleanup_timeout),
        ):
            if status != "completed":
                await self._close_history(turn, _reason(status, error))
            if journal is not None:
                await self._write_end(journal, status)
            if coordinator.cancellation.is_cancelled:
                await coordinator.announce_cancel()
                payload = CancelCompleted(
                    was_immediate=coordinator.cancellation.is_immediate
                )
                await coordinator.hooks.emit_reserved(CANCEL_COMPLETED, payload)

    async def _write_end(self, journal: Journal, status: _Status) -> None:
        """Write the turn's last record; a failing journal fails a turn that did not fail already."""
        try:
            # the last record of all, so that a turn without it is known to have been
            # killed
            await journal.append(TurnEnded(turn_id=current_turn_id(), status=status))
        except Exception as error:  # foreign code
            if status == "completed":
                raise
            report("journal.failed", error, session_id=self.coordinator.session_id)

    async def _close_history(self, turn: RunningTurn, reason: str) -> None:
        """Answer every open call: with its result if it finished, else with a note that it did not.

        Text that the model had begun is stored as an incomplete answer.
        """
        context = self.coordinator.context
        try:
            messages = await context.get_messages()
            for call in open_calls(messages):
                result = turn.tool_calls.result_of(call, messages)
                if result is not None:
                    message = result_message(call.id, call.name, result)
                else:
                    message = closing_message(
                        call, f"the call did not finish: {reason}"
                    )
                await context.add_message(message)
            # only now that every call has a result, which nothing may separate from it
            await self.coordinator.decisions.store_waiting()
            if text := turn.log.unfinished_text:
                await context.add_message(
                    {
                        "role": "assistant",
                        "content": text,
                        "metadata": {"incomplete": True},
                    }
                )
        except Exception as error:  # foreign code; the turn's own error matters more
            report("history.not_closed", error, session_id=self.coordinator.session_id)

    def _takes_coordinator(self, orchestrator: Orchestrator) -> bool:
        """Whether the loop takes a `coordinator` besides the contract's five; worked out once for each loop."""
        if self._called[0] is not orchestrator:
            parameters = inspect.signature(orchestrator.execute).parameters
            # a loop that passes its arguments on takes what it does not name
            catches_all = any(
                parameter.kind is parameter.VAR_KEYWORD
                for parameter in parameters.values()
            )
            self._called = (orchestrator, catches_all or "coordinator" in parameters)
        return self._called[1]


def _read(prompt: Prompt) -> tuple[str, MediaPrompt | None]:
    """Return the text of a prompt, and its media where it has any."""
    if isinstance(prompt, str):
        return prompt, None
    # most prompts are a text, and what reads others need not be imported
    from amplifier.kernel.turn.prompts import MediaPrompt

    given = MediaPrompt.of(prompt)
    return given.text, given


def _reason(status: _Status, error: BaseException | None) -> str:
    """Say why a turn ended, for the model that reads about its calls."""
    if isinstance(error, BudgetExceededError):
        return f"the turn's limit {error.limit!r} of {error.amount} was reached"
    return _ENDS[status]
