"""A tool's own code: called behind the wall, within its deadline, through middleware, and perhaps with a context."""

from __future__ import annotations

from collections.abc import Awaitable
from math import inf
from typing import TYPE_CHECKING, Final, cast

import attrs

from amplifier.kernel.foreign import ForeignCall
from amplifier.kernel.groups import only_error
from amplifier.kernel.reports import report
from amplifier.kernel.spans import Span, current_span, current_turn_id
from amplifier.kernel.turn.arguments import copied
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.contracts import Tool
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.middleware import ToolRun, event_of
from amplifier_sdk.results import ToolResult

if TYPE_CHECKING:
    from amplifier.kernel.budgets.turn import TurnBudget
    from amplifier.kernel.hooks.middleware import MiddlewareChain
    from amplifier.kernel.turn.log import TurnLog
    from amplifier.kernel.turn.services import SessionServices
    from amplifier.kernel.turn.stream import EventSink
    from amplifier_sdk.progress import ToolWithContext

__all__ = ["ToolCaller", "own_span", "time_limit"]

AROUND_TOOL: Final = event_of("tool")


@attrs.frozen(eq=False, repr=False)
class ToolCaller:
    """Calls the code of the tools of one turn; whatever it does, a result comes of it."""

    services: SessionServices
    budget: TurnBudget
    log: TurnLog
    stream: EventSink | None = None

    async def call(
        self, call: ToolCall, tool: Tool, arguments: JSONObject, limit: float
    ) -> tuple[ToolResult, bool]:
        """Call a tool behind the wall to foreign code; return its result and whether it failed to give one."""
        name = call.name
        # the span keeps the scope, so that a question to a person can hold its deadline
        span, budget = own_span(), self.budget
        scope = budget.scope_class()
        span.scope, span.limit = scope, limit
        foreign = ForeignCall(
            f"Tool {name!r}",
            scope,
            limit,
            span=span,
            outer=budget.scope,
            grace=budget.limits.cleanup_timeout,
        )
        answer: object
        try:
            around = self.services.hooks.middleware(AROUND_TOOL)
            if around is None:
                answer = await foreign.run(tool.execute(arguments))
            else:
                answer = await foreign.run(self._around(around, call, tool, arguments))
        except (Exception, SystemExit) as raised:  # foreign code
            # a tool with a task group fails with a group
            error = only_error(raised)
            if not isinstance(error, ToolError):
                # the group is logged with all its errors; the model reads the one that
                # counts
                report("tool.failed", raised, tool=name)
                return ToolResult.failure(
                    str(error) or type(error).__name__, type=type(error).__name__
                ), True
            answer = ToolResult.failure(error.message, **error.details)
        if foreign.cancelled_caught:
            return ToolResult.failure(
                f"Tool {name!r} did not finish within {limit:g} s", type="timeout"
            ), True
        if isinstance(answer, ToolResult):
            return answer, False
        problem = f"Tool {name!r} returned {type(answer).__name__}; it must return a ToolResult"
        report("tool.returned_nonsense", tool=name, returned=type(answer).__name__)
        return ToolResult.failure(problem, type="invalid_result"), True

    async def call_with_context(
        self, call: ToolCall, tool: Tool, arguments: JSONObject, limit: float
    ) -> tuple[ToolResult, bool]:
        """Call a tool that may report while it runs; what it reports is delivered before its result."""
        # few tools report, and fewer ask
        from amplifier.kernel.turn.tool_questions import ToolQuestions
        from amplifier.kernel.turn.tool_reports import open_reports

        reporting_tool = cast("ToolWithContext", tool)
        # stable: a turn that is continued has the same id, and gets the same answers in the same order
        key = f"{current_turn_id()}-{self.log.iteration}-{call.id}"
        questions = ToolQuestions(call, tool, arguments, self.services)
        async with open_reports(
            reporting_tool, call, self.services.hooks, self.stream, key, questions.ask
        ) as reporting:
            return await self.call(call, reporting, arguments, limit)

    def _around(
        self,
        around: MiddlewareChain,
        call: ToolCall,
        tool: Tool,
        arguments: JSONObject,
    ) -> Awaitable[ToolResult]:
        """Call a tool through the session's middleware, with the arguments that were decided on."""

        async def run(given: ToolRun) -> ToolResult:
            # what was decided is what runs, whatever came of the copy
            if given.call.name != call.name or given.call.arguments != arguments:
                raise ToolError(
                    "Middleware passed on another call than the one that was decided on; "
                    "a handler of tool:pre changes arguments"
                )
            return await tool.execute(arguments)

        shown = attrs.evolve(call, arguments=copied(arguments))
        made = ToolRun(session_id=self.services.session_id, call=shown)
        return around(made, run)


def own_span() -> Span:
    """Return the span of the call that runs."""
    span = current_span.get()
    assert span is not None
    return span


def time_limit(tool: Tool, default: float) -> float:
    """Return how many seconds a call of the tool may take: its own `timeout`, where it has one."""
    own: object = getattr(tool, "timeout", None)
    # a bool is an int, and an attribute of foreign code may be anything
    if isinstance(own, (int, float)) and own is not True and 0 < own < inf:
        return own
    return default
