"""The reports of a delegation: its events, in pairs, and what the agent does, as progress."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Final

import anyio
import attrs

from amplifier_kit.trust.untrusted import without_unseen
from amplifier_module_tool_task.events import (
    TASK_AGENT_COMPLETED,
    AgentCompleted,
    AgentResumed,
    AgentSpawned,
)
from amplifier_module_tool_task.truncation import shortened
from amplifier_sdk.contracts import Hooks
from amplifier_sdk.delegation import ChildObserver, ChildResult
from amplifier_sdk.events import SESSION_FORK, TOOL_ERROR, TOOL_PRE, Event
from amplifier_sdk.progress import TOOL_OUTPUT, TOOL_PROGRESS, ToolContext

__all__ = ["DelegationEnd", "DelegationProgress", "announced"]

_LONGEST: Final = 200
_LONGEST_DENIAL: Final = 600
_LONGEST_ERROR: Final = 2_000


@attrs.define(eq=False)
class DelegationEnd:
    """How a delegation ended, for its last event: set `result` or `error`; neither means that it was cancelled."""

    result: ChildResult | None = None
    error: Exception | None = None


@asynccontextmanager
async def announced(
    hooks: Hooks,
    event: Event[AgentSpawned] | Event[AgentResumed],
    begin: AgentSpawned | AgentResumed,
) -> AsyncIterator[DelegationEnd]:
    """Emit the event that begins a delegation, and the one that ends it however it ends.

    The last one is emitted also when the turn is cancelled, within the session's `cleanup_timeout`.
    """
    ending, started = DelegationEnd(), perf_counter()
    try:
        await hooks.emit(event, begin)
        yield ending
    finally:
        payload = _completed(begin, ending, perf_counter() - started)
        with (
            # a cancelled turn ends here as well, and each beginning has its end
            anyio.CancelScope(shield=True),
            anyio.move_on_after(hooks.host.limits.cleanup_timeout),
        ):
            await hooks.emit(TASK_AGENT_COMPLETED, payload)


def _completed(
    begin: AgentSpawned | AgentResumed, ending: DelegationEnd, duration: float
) -> AgentCompleted:
    result, error = ending.result, ending.error
    status = (
        result.status
        if result is not None
        else "cancelled"
        if error is None
        else "failed"
    )
    payload = AgentCompleted(
        sub_session_id=begin["sub_session_id"],
        parent_session_id=begin["parent_session_id"],
        success=status == "completed",
        status=status,
        duration=duration,
    )
    if "agent" in begin:
        payload["agent"] = begin["agent"]
    if result is not None:
        payload["turn_count"] = result.turn_count
        payload["spending"] = dict(result.spending)
    if result is not None:
        limit = result.limit
    else:
        limit = getattr(error, "limit", None)
    # an error of foreign code may have any attribute of this name
    if isinstance(limit, str):
        payload["limit"] = limit
    if error is not None:
        payload["error"] = {
            "type": type(error).__name__,
            "message": shortened(str(error), _LONGEST_ERROR),
        }
    return payload


@attrs.define(eq=False)
class DelegationProgress:
    """Reports what an agent does as progress of the call; `began` says that its session was opened."""

    context: ToolContext
    agent: str
    began: bool = False
    steps: int = 0

    @property
    def observers(self) -> Mapping[str, ChildObserver]:
        """What `session.spawn` and `session.resume` take as `observers`."""
        return {
            SESSION_FORK: self._begin,
            TOOL_PRE: self._call,
            TOOL_ERROR: self._refused,
            TOOL_OUTPUT: self._output,
            TOOL_PROGRESS: self._progress,
        }

    def _begin(self, *_: object) -> None:
        self.began = True
        self._report("at work")

    def _call(self, _: str, data: dict[str, object]) -> None:
        self.steps += 1
        self._report(str(data.get("tool_name")))

    def _progress(self, _: str, data: dict[str, object]) -> None:
        tool, message = data.get("tool_name"), str(data.get("message"))
        # A report of the task tool itself is that of a deeper agent, which names
        # itself.
        self._report(
            message if tool == self.context.tool_name else f"{tool}: {message}"
        )

    def _refused(self, _: str, data: dict[str, object]) -> None:
        """Tell of a call that was denied: the person has to see it, and progress is dropped for later progress."""
        error = data.get("error")
        if isinstance(error, Mapping) and error.get("type") == "denied":
            message = f"{data.get('tool_name')}: {error.get('message')}"
            self.context.output(f"{self._said(message, _LONGEST_DENIAL)}\n")

    def _output(self, _: str, data: dict[str, object]) -> None:
        """Pass on what an agent of the agent's was denied; what other tools put out is the agent's own."""
        if data.get("tool_name") == self.context.tool_name:
            for line in str(data.get("text")).splitlines():
                self.context.output(f"{self._said(line, _LONGEST_DENIAL)}\n")

    def _report(self, what: str) -> None:
        self.context.progress(self._said(what, _LONGEST), done=self.steps or None)

    def _said(self, what: str, limit: int) -> str:
        said = f"{self.agent[:_LONGEST]}: {what[:limit]}"
        # one line of visible text: an agent must not draw on the terminal
        return without_unseen(" ".join(said.split()))
