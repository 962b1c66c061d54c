"""Turns: the loop is called with what is mounted, and whatever happens the history is closed."""

from __future__ import annotations

import inspect
from typing import Literal

import anyio
import attrs

from amplifier.kernel.budgets import Spending
from amplifier.kernel.coordinator import ModuleCoordinator
from amplifier.kernel.plan import MountPlan
from amplifier.kernel.proxies import ToolProxy
from amplifier.kernel.reports import report
from amplifier.kernel.spans import Span, current_span, current_turn_id
from amplifier_sdk.contracts import Orchestrator, Tool
from amplifier_sdk.errors import ConfigError, ModuleError, ModuleValidationError, Problem, TurnCancelled
from amplifier_sdk.events import CANCEL_COMPLETED, SESSION_RESUME, SESSION_START, CancelCompleted, SessionStart
from amplifier_sdk.history import closing_message, open_calls, tool_message
from amplifier_sdk.journal import Journal, TurnEnded, TurnStarted

__all__ = ["Turns"]


@attrs.define(eq=False)
class Turns:
    """Runs a session's turns, one after the other; `spending` is the account of all of them."""

    plan: MountPlan
    coordinator: ModuleCoordinator
    failures: list[ModuleError]
    is_resumed: bool = False
    spending: Spending = attrs.field(factory=Spending)
    _started: bool = False
    _called: tuple[object, bool] = (None, False)
    _tools: dict[str, Tool] = attrs.field(factory=dict)
    _proxies: dict[str, Tool] = attrs.field(factory=dict)

    async def run(self, prompt: str) -> str:
        """Run one turn in the caller's task and return its answer.

        Raises:
            TurnCancelled: `cancel` stopped it; the history is closed.
            Exception: whatever a provider or the loop raised, unchanged.
        """
        coordinator = self.coordinator
        coordinator.reset_turn()
        token = current_span.set(Span(self.coordinator.session_id, current_span.get()))
        try:
            with anyio.CancelScope() as scope:
                coordinator.cancellation.attach(scope)
                try:
                    if not self._started:
                        await self._announce()
                    if coordinator.host.journal is not None:
                        await coordinator.host.journal.append(TurnStarted(turn_id=current_turn_id(), prompt=prompt))
                    text = await self._orchestrate(prompt)
                finally:
                    coordinator.cancellation.attach(None)
            if scope.cancelled_caught:
                raise TurnCancelled(coordinator.host.text, immediate=True)
            if coordinator.host.journal is not None or coordinator.cancellation.is_cancelled:
                await self._end_turn("completed")
            return text
        except BaseException as error:
            failed = isinstance(error, Exception) and not isinstance(error, TurnCancelled)
            await self._end_turn("failed" if failed else "cancelled")
            raise
        finally:
            current_span.reset(token)
            self.spending.add(coordinator.host.spending)

    async def _announce(self) -> None:
        """Emit `session:start` or `session:resume` before the first turn."""
        self._started = True
        settings = self.plan.session
        payload = SessionStart()
        if settings.metadata is not None:
            payload["metadata"] = settings.metadata
        if settings.raw:
            payload["config"] = self.coordinator.config
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
        answer: object = await orchestrator.execute(**arguments)  # type: ignore[arg-type]  # the contract's five
        if not isinstance(answer, str):
            problem = f"its execute returned {type(answer).__name__}; it must return the answer's text"
            raise ModuleValidationError(self.plan.modules["orchestrator"][0].module, problem)
        return answer

    def _no_provider(self) -> str:
        failed = "; ".join(str(failure) for failure in self.failures)
        return "no provider is mounted" + (f": {failed}" if failed else "; name one in the plan's 'providers'")

    def _proxied(self) -> dict[str, Tool]:
        """Return the tools as proxies, made anew only when the tools changed."""
        tools = self.coordinator.tools
        if tools != self._tools:
            self._tools = dict(tools)
            self._proxies = {name: ToolProxy(tool, self.coordinator.host, name) for name, tool in tools.items()}
        return dict(self._proxies)

    async def _end_turn(self, status: Literal["completed", "cancelled", "failed"]) -> None:
        """Close the history and tell everybody; runs to its end even when the caller is cancelled."""
        coordinator, journal = self.coordinator, self.coordinator.host.journal
        with anyio.CancelScope(shield=True), anyio.move_on_after(self.plan.session.limits.cleanup_timeout):
            if status != "completed":
                await self._close_history(status)
            if journal is not None:
                await self._write_end(journal, status)
            if coordinator.cancellation.is_cancelled:
                payload = CancelCompleted(was_immediate=coordinator.cancellation.is_immediate)
                await coordinator.hooks.emit(CANCEL_COMPLETED, payload)

    async def _write_end(self, journal: Journal, status: Literal["completed", "cancelled", "failed"]) -> None:
        """Write the turn's last record; a failing journal fails a turn that did not fail already."""
        try:
            await journal.append(TurnEnded(turn_id=current_turn_id(), status=status))
        except Exception as error:  # foreign code
            if status == "completed":
                raise
            report("journal.failed", error, session_id=self.coordinator.session_id)

    async def _close_history(self, status: str) -> None:
        """Answer every open call: with its result if it finished, else with a note that it did not.

        Text that the model had begun is kept as an incomplete answer.
        """
        context, host = self.coordinator.context, self.coordinator.host
        try:
            for call in open_calls(await context.get_messages()):
                result = host.finished.get(call.id)
                if result is not None:
                    message = tool_message(call.id, call.name, result.get_serialized_output())
                else:
                    message = closing_message(call, f"the call did not finish: the turn was {status}")
                await context.add_message(message)
            if host.unfinished_text:
                await context.add_message(
                    {"role": "assistant", "content": host.unfinished_text, "metadata": {"incomplete": True}}
                )
        except Exception as error:  # foreign code; the turn's own error matters more
            report("history.not_closed", error, session_id=self.coordinator.session_id)

    def _takes_coordinator(self, orchestrator: Orchestrator) -> bool:
        """Whether the loop takes a `coordinator` besides the contract's five; looked at once for each loop."""
        if self._called[0] is not orchestrator:
            parameters = inspect.signature(orchestrator.execute).parameters
            catches_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
            self._called = (orchestrator, catches_all or "coordinator" in parameters)
        return self._called[1]
