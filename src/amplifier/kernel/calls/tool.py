"""The one tool call: checks, decisions, the deadline, the wall to foreign code, the journal, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from random import getrandbits
from time import perf_counter
from typing import TYPE_CHECKING, Final, cast

import anyio
import attrs

from amplifier.kernel.calls.consent import needs_consent, with_consent
from amplifier.kernel.calls.proxies import unwrapped
from amplifier.kernel.calls.scheduling import batches, lanes
from amplifier.kernel.calls.state import HostState
from amplifier.kernel.groups import only_error, open_group
from amplifier.kernel.reports import report
from amplifier.kernel.spans import Span, current_span, current_turn_id
from amplifier_sdk.arguments import ArgumentSchema
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.content import TextBlock
from amplifier_sdk.contracts import Tool
from amplifier_sdk.errors import ToolError, did_you_mean
from amplifier_sdk.events import TOOL_ERROR, TOOL_POST, TOOL_PRE, ToolErrorRaised, ToolPost, ToolPre
from amplifier_sdk.journal import CallFinished, CallStarted, Journal
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops import schema_of
from amplifier_sdk.results import Decision, Emission, HookResult, ToolResult
from amplifier_sdk.streaming import ToolFinished, ToolStarted
from amplifier_sdk.toolinfo import ToolInfo

if TYPE_CHECKING:
    from amplifier.kernel.budgets.accounts import Reached
    from amplifier_sdk.progress import ToolWithContext

__all__ = ["ToolCalls", "copied", "told_of"]

_NESTED: Final = frozenset({dict, list, tuple})


class ToolCalls(HostState):
    """Runs tool calls."""

    __slots__ = ()

    async def run_tools(self, calls: Sequence[ToolCall], tools: Mapping[str, Tool]) -> list[ToolResult]:
        """Run the calls of one answer; see `TurnHost.run_tools`."""
        if len(calls) == 1:
            return [await self.run_tool(calls[0], tools)]
        results: list[ToolResult] = []
        for batch in batches(calls, tools):
            if len(batch) == 1:
                results.append(await self.run_tool(batch[0], tools))
            else:
                results += await self._run_batch(batch, tools)
        return results

    async def _run_batch(self, calls: Sequence[ToolCall], tools: Mapping[str, Tool]) -> list[ToolResult]:
        """Run calls beside each other: each worker takes the next lane until none is left."""
        results: dict[int, ToolResult] = {}
        side_by_side = lanes(calls, tools)
        waiting = iter(side_by_side)
        group = f"{getrandbits(64):016x}"

        interrupts: list[KeyboardInterrupt] = []

        async def work() -> None:
            try:
                for lane in waiting:
                    for index in lane:
                        results[index] = await self.run_tool(calls[index], tools, parallel_group_id=group)
            except KeyboardInterrupt as interrupt:  # out of a task it would end asyncio's event loop
                interrupts.append(interrupt)
                workers.cancel_scope.cancel()

        async with open_group() as workers:
            for _ in range(min(len(side_by_side), self.limits.parallel_tools)):
                workers.start_soon(work)
        if interrupts:
            raise interrupts[0]
        return [results[index] for index in range(len(calls))]

    async def run_tool(
        self, call: ToolCall, tools: Mapping[str, Tool], *, parallel_group_id: str | None = None
    ) -> ToolResult:
        """Run one tool call; see `TurnHost.run_tool`."""
        self.finished.pop(call.id, None)  # a vendor may give the calls of every answer the same ids
        token = current_span.set(Span(self.session_id, current_span.get(), self.iteration))
        try:
            reached = self.take_call()
            if reached is None:
                call, result = await self._run_tool(call, tools, parallel_group_id)
                self.spending.tool_failures += not result.success
            else:
                result = await self._refuse(call, parallel_group_id, _over(reached))
        finally:
            current_span.reset(token)
        self.finished[call.id] = result
        if self.stream is not None:
            await self.stream.send(ToolFinished(call=call, result=result))
        return result

    async def _run_tool(
        self, call: ToolCall, tools: Mapping[str, Tool], group: str | None
    ) -> tuple[ToolCall, ToolResult]:
        """Check the call, let handlers decide, and run the tool; return the call as it ran, and its result.

        A refused call is announced as failed, and so is one that was cancelled.
        """
        if self.cancellation.is_cancelled:
            return call, ToolResult.failure("Not run: the turn was cancelled", type="cancelled")
        tool = tools.get(call.name)
        if tool is None:
            return call, await self._refuse(call, group, _unknown_tool(call.name, tools))
        tool = unwrapped(tool)
        problem = call.problem or self.problem(tool, call.arguments)
        if problem is not None:
            return call, await self._refuse(call, group, ToolResult.failure(problem, type="invalid_arguments"))
        arguments = copied(call.arguments)
        announced = None if self.loop_calls is None else self.loop_calls.verdict(call)
        refusal = None if announced is None else announced.refusal
        try:
            if announced is None and self._is_decided(tool):
                decided, refusal = await self._decide(call, tool, arguments, group)
                if refusal is None and decided is not arguments:
                    call, arguments = attrs.evolve(call, arguments=decided), decided
            done = (refusal, True, 0.0) if refusal is not None else await self._execute(call, tool, arguments)
        except BaseException as error:
            if announced is None:  # a loop that announces its calls tells their ends too
                await self._broke_off(call, group, arguments, error)
            raise
        result, failed, duration = done
        if failed:
            return call, await self._refuse(call, group, result, arguments)
        if self.hooks.has_handlers(TOOL_POST):
            result = await self._tool_returned(call, arguments, group, result, duration)
        return call, result

    def _is_decided(self, tool: Tool) -> bool:
        """Whether anybody has a say in whether calls of a tool run."""
        return self.hooks.has_handlers(TOOL_PRE) or needs_consent(tool, self.decisions.settings)

    async def _decide(
        self, call: ToolCall, tool: Tool, arguments: JSONObject, group: str | None
    ) -> tuple[JSONObject, ToolResult | None]:
        """Let handlers decide; return the arguments to run with, or the refusal."""
        payload: ToolPre = {
            "tool_name": call.name,
            "tool_input": arguments,
            "tool_call_id": call.id,
            "parallel_group_id": group,
            "tool_obj": told_of(tool),
        }
        emission = await self.hooks.emit(TOOL_PRE, payload)
        if not emission.decisions and not needs_consent(tool, self.decisions.settings):
            return arguments, None
        decided, refusal, _ = await self.settle(call, tool, arguments, arguments, emission)
        return decided, refusal

    async def settle(
        self, call: ToolCall, tool: Tool, shown: JSONObject, arguments: JSONObject, emission: Emission
    ) -> tuple[JSONObject, ToolResult | None, Emission]:
        """Carry out what handlers decided on a call.

        Args:
            call: the call; what its `problem` names keeps it from running unless a handler changes it.
            tool: the tool it calls.
            shown: the arguments that the handlers were told of.
            arguments: what runs when they leave these as they are.
            emission: what they decided.

        Returns:
            The arguments to run with, the refusal if it must not run, and what is left of the decisions.
        """
        if emission.data["tool_input"] is not shown:
            arguments, problem = self._changed_arguments(tool, emission.data["tool_input"])
        else:
            problem = call.problem
        kind = "denied"
        if problem is None and not emission.denied and needs_consent(tool, self.decisions.settings):
            emission, problem = await with_consent(tool, call.name, copied(arguments), emission, self.decisions)
            kind = "precondition"
        decided = emission
        if emission.decisions:
            # What a person is asked about is a copy that no handler holds: what they read is what runs.
            emission.data["tool_input"] = arguments
            if problem is not None:  # messages are shown, but nobody is asked about what cannot run
                emission.decisions = (*emission.decisions, Decision(call.name, HookResult.deny(problem)))
            decided = await self.process_hook_result(emission, TOOL_PRE, call.name)
            if decided.denied and decided.reason != problem:
                reason = f"Denied by {decided.decided_by}: {decided.reason}"
                return {}, ToolResult.failure(reason, type="denied"), decided
        if problem is not None:
            return {}, ToolResult.failure(problem, type=kind), decided
        return arguments, None, decided

    def _changed_arguments(self, tool: Tool, changed: object) -> tuple[JSONObject, str | None]:
        """Copy the arguments that a handler gave instead; return what keeps the tool from running with them."""
        arguments = copied(cast("Mapping[str, JSONValue]", changed))
        problem = self.problem(tool, arguments)
        return arguments, None if problem is None else f"Denied: a handler's change does not fit. {problem}"

    async def _execute(self, call: ToolCall, tool: Tool, arguments: JSONObject) -> tuple[ToolResult, bool, float]:
        """Run a tool that passed its checks, with its marks in the journal.

        Returns:
            Its result, whether it failed to give one, and how many seconds it took.
        """
        if self.journal is not None:
            await self.journal.append(CallStarted(turn_id=current_turn_id(), call_id=call.id, tool_name=call.name))
        if self.stream is not None:
            await self.stream.send(ToolStarted(call=call))
        self.cancellation.register_tool_start(call.id, call.name)
        limit = _time_limit(tool, self.limits.tool_timeout)
        started = perf_counter()
        try:
            if getattr(tool, "takes_context", False) is True:
                result, failed = await self._call_with_context(call, tool, arguments, limit)
            else:
                result, failed = await self._call(call.name, tool, arguments, limit)
        finally:
            self.cancellation.register_tool_complete(call.id)
        duration = perf_counter() - started
        is_checked = self.hooks.has_handlers(TOOL_POST) and not failed
        self.finished[call.id] = _UNCHECKED if is_checked else result
        if self.journal is not None:
            await self._write_end(self.journal, call, result)
        return result, failed, duration

    async def _broke_off(self, call: ToolCall, group: str | None, arguments: JSONObject, error: BaseException) -> None:
        """Tell the end of a call that was cancelled, or whose journal failed."""
        if not self.hooks.has_handlers(TOOL_ERROR):
            return
        is_cancelled = not isinstance(error, Exception)
        kind, reason = ("cancelled", "it was cancelled") if is_cancelled else (type(error).__name__, str(error))
        result = ToolResult.failure(f"The call did not finish: {reason}", type=kind)
        with anyio.CancelScope(shield=True), anyio.move_on_after(self.limits.cleanup_timeout):
            await self._refuse(call, group, result, arguments)

    async def _write_end(self, journal: Journal, call: ToolCall, result: ToolResult) -> None:
        record = CallFinished(
            turn_id=current_turn_id(),
            call_id=call.id,
            success=result.success,
            output=result.get_serialized_output(),
            spending=self.spent_so_far,
        )
        await journal.append(record)

    async def _call_with_context(
        self, call: ToolCall, tool: Tool, arguments: JSONObject, limit: float
    ) -> tuple[ToolResult, bool]:
        """Call a tool that may report while it runs; what it reports is brought before its result."""
        from amplifier.kernel.calls.reporting import open_reports  # few tools report

        async with open_reports(cast("ToolWithContext", tool), call, self.hooks, self.stream) as reporting:
            return await self._call(call.name, reporting, arguments, limit)

    async def _call(self, name: str, tool: Tool, arguments: JSONObject, limit: float) -> tuple[ToolResult, bool]:
        """Call the tool behind the wall to foreign code; return its result and whether it failed to give one."""
        answer: object = None
        with anyio.move_on_after(limit) as scope:
            span = current_span.get()
            assert span is not None  # the call's own
            span.scope = scope
            try:
                answer = await tool.execute(arguments)
            except (Exception, SystemExit) as raised:  # foreign code
                error = only_error(raised)  # a tool with a task group fails with a group
                if not isinstance(error, ToolError):
                    report("tool.failed", raised, tool=name)
                    return ToolResult.failure(str(error) or type(error).__name__, type=type(error).__name__), True
                answer = ToolResult.failure(error.message, **error.details)
        if scope.cancelled_caught:
            return ToolResult.failure(f"Tool {name!r} did not finish within {limit:g} s", type="timeout"), True
        if isinstance(answer, ToolResult):
            return answer, False
        problem = f"Tool {name!r} returned {type(answer).__name__}; it must return a ToolResult"
        report("tool.returned_nonsense", tool=name, returned=type(answer).__name__)
        return ToolResult.failure(problem, type="invalid_result"), True

    async def _tool_returned(
        self, call: ToolCall, arguments: JSONObject, group: str | None, result: ToolResult, duration: float
    ) -> ToolResult:
        """Emit `tool:post`; handlers may change the result or withhold it."""
        payload: ToolPost = {
            "tool_name": call.name,
            "tool_input": arguments,
            "result": result,
            "tool_result": result,
            "tool_call_id": call.id,
            "parallel_group_id": group,
            "duration": duration,
        }
        emission = await self.hooks.emit(TOOL_POST, payload)
        if not emission.decisions and self.loop_calls is None:
            return result
        decided = await self._carry_out(emission, TOOL_POST, call)
        if decided.denied:
            return ToolResult.failure(f"Withheld by {decided.decided_by}: {decided.reason}", type="denied")
        return _changed_result(emission, result)

    async def _refuse(
        self, call: ToolCall, group: str | None, result: ToolResult, arguments: JSONObject | None = None
    ) -> ToolResult:
        """Emit `tool:error` for a call that was not run or whose tool failed; return its result."""
        if self.hooks.has_handlers(TOOL_ERROR):
            shown = copied(call.arguments) if arguments is None else arguments
            payload = ToolErrorRaised(
                tool_name=call.name,
                tool_input=shown,
                error={"msg": result.error.get("message"), **result.error} if result.error else {},
                tool_call_id=call.id,
                parallel_group_id=group,
            )
            await self._carry_out(await self.hooks.emit(TOOL_ERROR, payload), TOOL_ERROR, call)
        return result

    async def _carry_out(self, emission: Emission, event: str, call: ToolCall) -> Emission:
        """Carry out what handlers decided of a call that is over."""
        decided = await self.process_hook_result(emission, event, call.name)
        if self.loop_calls is not None:
            self.loop_calls.keep(call.id, decided.decisions)
        return decided

    def problem(self, tool: Tool, arguments: JSONObject) -> str | None:
        """Check arguments against the tool's schema, compiled once; a schema that cannot be read is a problem."""
        try:
            schema = schema_of(tool)
            known = self.schemas.get(id(tool))
            if known is None or known[0] is not tool or (known[1] is not schema and known[1] != schema):
                known = self.schemas[id(tool)] = (tool, schema, ArgumentSchema(schema, tool.name))
            return known[2].problem(arguments)
        except Exception as error:  # foreign code: a tool's schema
            report("tool.schema_failed", error, tool=type(tool).__name__)
            return f"The tool cannot be used: its schema cannot be read ({type(error).__name__}: {error})"


_UNCHECKED: Final = ToolResult.failure(
    "The call ran, but the turn ended before its result was checked", type="cancelled"
)
"""What the history says of a call whose `tool:post` handlers did not finish: they may be there to withhold."""


def copied(arguments: Mapping[str, JSONValue]) -> JSONObject:
    """Copy arguments, so that neither a handler nor a tool changes what others see and the history says."""
    return {key: _copied_value(value) if type(value) in _NESTED else value for key, value in arguments.items()}


def _copied_value(value: JSONValue) -> JSONValue:
    if isinstance(value, Mapping):
        return copied(value)
    return [_copied_value(item) for item in value] if isinstance(value, (list, tuple)) else value


def told_of(tool: Tool) -> ToolInfo | None:
    """Return what handlers learn of a tool; nothing of one that cannot say what it is."""
    try:
        return ToolInfo.of(tool)
    except Exception as error:  # foreign code: a tool's attributes
        report("tool.schema_failed", error, tool=type(tool).__name__)
        return None


def _time_limit(tool: Tool, default: float) -> float:
    """Return how many seconds a call of the tool may take: its own `timeout`, where it has one."""
    own: object = getattr(tool, "timeout", None)
    if isinstance(own, (int, float)) and own is not True and 0 < own < inf:
        return own
    return default


def _over(reached: Reached) -> ToolResult:
    """Say which limit did not allow a call."""
    name, amount = reached
    whose = "session" if name.startswith("session_") else "turn"
    return ToolResult.failure(f"Not run: the {whose}'s limit of {amount} tool calls is reached", type="limit")


def _unknown_tool(name: str, tools: Mapping[str, Tool]) -> ToolResult:
    known = ", ".join(sorted(tools)) or "none"
    hint = did_you_mean(name, list(tools)) or "."
    return ToolResult.failure(f"There is no tool {name!r}{hint} Available: {known}", type="unknown_tool")


def _changed_result(emission: Emission, result: ToolResult) -> ToolResult:
    """Return the result that handlers left; `result` counts before `tool_result`."""
    for key in ("result", "tool_result"):
        changed = emission.data[key]
        if changed is not result:
            return _agreeing(cast("ToolResult", changed), result)
    return result


def _agreeing(changed: ToolResult, result: ToolResult) -> ToolResult:
    """Return a changed result whose content says what its text says, where a handler changed the text alone."""
    is_same_text = changed.output == result.output and changed.error == result.error
    if is_same_text or not changed.content or changed.content != result.content:
        return changed
    others = [block for block in changed.content if not isinstance(block, TextBlock)]
    return attrs.evolve(changed, content=[TextBlock(text=changed.get_serialized_output()), *others])
