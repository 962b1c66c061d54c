"""The one tool call: checks, decisions, the deadline, the wall to foreign code, the journal, events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import getrandbits
from time import perf_counter
from typing import Final

import anyio

from amplifier.kernel.groups import first_cause
from amplifier.kernel.hoststate import HostState
from amplifier.kernel.proxies import unwrapped
from amplifier.kernel.reports import report
from amplifier.kernel.spans import Span, current_span, current_turn_id
from amplifier_sdk.arguments import ArgumentSchema
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.contracts import Tool
from amplifier_sdk.errors import ToolError, did_you_mean
from amplifier_sdk.events import TOOL_ERROR, TOOL_POST, TOOL_PRE, ToolErrorRaised, ToolPost, ToolPre
from amplifier_sdk.journal import CallFinished, CallStarted
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops import schema_of
from amplifier_sdk.results import Emission, ToolResult
from amplifier_sdk.streaming import ToolFinished, ToolStarted

__all__ = ["ToolCalls"]

_NESTED: Final = frozenset({dict, list, tuple})


class ToolCalls(HostState):
    """Runs tool calls."""

    __slots__ = ()

    async def run_tools(self, calls: Sequence[ToolCall], tools: Mapping[str, Tool]) -> list[ToolResult]:
        """Run the calls of one answer; see `TurnHost.run_tools`."""
        if len(calls) == 1:
            return [await self.run_tool(calls[0], tools)]
        results: list[ToolResult] = []
        for batch in _batches(calls, tools):
            results += await self._run_batch(batch, tools)
        return results

    async def _run_batch(self, calls: Sequence[ToolCall], tools: Mapping[str, Tool]) -> list[ToolResult]:
        """Run calls beside each other: each worker takes the next call until none is left."""
        if len(calls) == 1:
            return [await self.run_tool(calls[0], tools)]
        results: dict[int, ToolResult] = {}
        waiting = iter(enumerate(calls))
        group = f"{getrandbits(64):016x}"

        async def work() -> None:
            for index, call in waiting:
                results[index] = await self.run_tool(call, tools, parallel_group_id=group)

        try:
            async with anyio.create_task_group() as workers:
                for _ in range(min(len(calls), self.limits.parallel_tools)):
                    workers.start_soon(work)
        except BaseExceptionGroup as failures:
            raise first_cause(failures) from None
        return [results[index] for index in range(len(calls))]

    async def run_tool(
        self, call: ToolCall, tools: Mapping[str, Tool], *, parallel_group_id: str | None = None
    ) -> ToolResult:
        """Run one tool call; see `TurnHost.run_tool`."""
        self.finished.pop(call.id, None)  # a vendor may give the calls of every answer the same ids
        token = current_span.set(Span(self.session_id, current_span.get(), self.iteration))
        try:
            result = await self._run_tool(call, tools, parallel_group_id)
        finally:
            current_span.reset(token)
        self.finished[call.id] = result
        self.spending.add_call(success=result.success)
        if self.stream is not None:
            await self.stream.send(ToolFinished(call=call, result=result))
        return result

    async def _run_tool(self, call: ToolCall, tools: Mapping[str, Tool], group: str | None) -> ToolResult:
        if self.cancellation.is_cancelled:
            return ToolResult.failure("Not run: the turn was cancelled", type="cancelled")
        tool = tools.get(call.name)
        if tool is None:
            return await self._refuse(call, group, _unknown_tool(call.name, tools))
        tool = unwrapped(tool)
        problem = call.problem or self._problem(tool, call.arguments)
        if problem is not None:
            return await self._refuse(call, group, ToolResult.failure(problem, type="invalid_arguments"))
        arguments, refusal = await self._decide(call, tool, group)
        if refusal is not None:
            return await self._refuse(call, group, refusal)
        return await self._execute(call, tool, arguments, group)

    async def _decide(self, call: ToolCall, tool: Tool, group: str | None) -> tuple[JSONObject, ToolResult | None]:
        """Let handlers decide; return the arguments to run with, or the refusal."""
        if not self.hooks.has_handlers(TOOL_PRE):
            return _copied(call.arguments), None
        shown = _copied(call.arguments)
        payload = ToolPre(tool_name=call.name, tool_input=shown)
        payload["tool_call_id"] = call.id
        payload["parallel_group_id"] = group
        payload["tool_obj"] = tool
        emission = await self.hooks.emit(TOOL_PRE, payload)
        try:
            decided = await self.process_hook_result(emission, TOOL_PRE, call.name)
        except ValueError as error:  # an injection over the session's limit
            return {}, ToolResult.failure(f"Denied: {error}", type="denied")
        if decided.denied:
            return {}, ToolResult.failure(f"Denied by {decided.decided_by}: {decided.reason}", type="denied")
        changed = emission.data["tool_input"]
        if changed is shown:
            return (_copied(call.arguments), None) if shown == call.arguments else ({}, _CHANGED_IN_PLACE)
        if not isinstance(changed, Mapping):
            return {}, ToolResult.failure("Denied: a handler replaced the arguments by no object", type="denied")
        arguments = _copied(changed)
        problem = self._problem(tool, arguments)
        if problem is not None:
            return {}, ToolResult.failure(f"Denied: a handler's change does not fit. {problem}", type="denied")
        return arguments, None

    async def _execute(self, call: ToolCall, tool: Tool, arguments: JSONObject, group: str | None) -> ToolResult:
        """Run a tool that passed its checks, with its marks in the journal."""
        if self.journal is not None:
            await self.journal.append(CallStarted(turn_id=current_turn_id(), call_id=call.id, tool_name=call.name))
        if self.stream is not None:
            await self.stream.send(ToolStarted(call=call))
        self.cancellation.register_tool_start(call.id, call.name)
        started = perf_counter()
        try:
            result, failed = await self._call(call.name, tool, arguments)
        finally:
            self.cancellation.register_tool_complete(call.id)
        self.finished[call.id] = result if failed or not self.hooks.has_handlers(TOOL_POST) else _UNCHECKED
        if self.journal is not None:
            await self.journal.append(
                CallFinished(
                    turn_id=current_turn_id(),
                    call_id=call.id,
                    success=result.success,
                    output=result.get_serialized_output(),
                )
            )
        if failed:
            await self._tool_failed(call, arguments, group, result)
            return result
        return await self._tool_returned(call, arguments, group, result, perf_counter() - started)

    async def _call(self, name: str, tool: Tool, arguments: JSONObject) -> tuple[ToolResult, bool]:
        """Call the tool behind the wall to foreign code; return its result and whether it failed to give one."""
        limit = self.limits.tool_timeout
        answer: object = None
        with anyio.CancelScope(deadline=anyio.current_time() + limit) as scope:
            try:
                answer = await tool.execute(arguments)
            except ToolError as error:
                answer = ToolResult.failure(error.message, **error.details)
            except (Exception, SystemExit) as error:  # foreign code
                report("tool.failed", error, tool=name)
                return ToolResult.failure(str(error) or type(error).__name__, type=type(error).__name__), True
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
        if not self.hooks.has_handlers(TOOL_POST):
            return result
        payload = ToolPost(tool_name=call.name, tool_input=arguments, result=result, tool_result=result)
        payload["tool_call_id"] = call.id
        payload["parallel_group_id"] = group
        payload["duration"] = duration
        emission = await self.hooks.emit(TOOL_POST, payload)
        decided = await self._carry_out(emission, TOOL_POST, call.name)
        if decided.denied:
            return ToolResult.failure(f"Withheld by {decided.decided_by}: {decided.reason}", type="denied")
        return _changed_result(emission, result)

    async def _refuse(self, call: ToolCall, group: str | None, result: ToolResult) -> ToolResult:
        await self._tool_failed(call, _copied(call.arguments), group, result)
        return result

    async def _tool_failed(self, call: ToolCall, arguments: JSONObject, group: str | None, result: ToolResult) -> None:
        if not self.hooks.has_handlers(TOOL_ERROR):
            return
        payload = ToolErrorRaised(tool_name=call.name, tool_input=arguments, error=result.error or {})
        payload["tool_call_id"] = call.id
        payload["parallel_group_id"] = group
        await self._carry_out(await self.hooks.emit(TOOL_ERROR, payload), TOOL_ERROR, call.name)

    async def _carry_out(self, emission: Emission, event: str, name: str) -> Emission:
        """Carry out what handlers decided of a call that is over: one bad injection must not cost its result."""
        try:
            return await self.process_hook_result(emission, event, name)
        except ValueError as error:  # an injection over the session's limit
            report("injection.refused", error, tool=name)
            return Emission(emission.data)

    def _problem(self, tool: Tool, arguments: JSONObject) -> str | None:
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


_CHANGED_IN_PLACE: Final = ToolResult.failure(
    "Denied: a handler changed the arguments in place; a change is made with HookResult.modify", type="denied"
)
_UNCHECKED: Final = ToolResult.failure(
    "The call ran, but the turn ended before its result was checked", type="cancelled"
)
"""What the history says of a call whose `tool:post` handlers did not finish: they may be there to withhold."""


def _copied(arguments: Mapping[str, JSONValue]) -> JSONObject:
    """Copy arguments, so that neither a handler nor a tool changes what others see and the history says."""
    return {key: _copied_value(value) if type(value) in _NESTED else value for key, value in arguments.items()}


def _copied_value(value: JSONValue) -> JSONValue:
    if isinstance(value, Mapping):
        return _copied(value)
    return [_copied_value(item) for item in value] if isinstance(value, (list, tuple)) else value


def _batches(calls: Sequence[ToolCall], tools: Mapping[str, Tool]) -> Iterator[list[ToolCall]]:
    """Split calls where an exclusive tool stands: it is a batch of its own."""
    batch: list[ToolCall] = []
    for call in calls:
        tool = tools.get(call.name)
        if tool is not None and getattr(tool, "exclusive", False) is True:
            if batch:
                yield batch
            yield [call]
            batch = []
        else:
            batch.append(call)
    if batch:
        yield batch


def _unknown_tool(name: str, tools: Mapping[str, Tool]) -> ToolResult:
    known = ", ".join(sorted(tools)) or "none"
    hint = did_you_mean(name, list(tools)) or "."
    return ToolResult.failure(f"There is no tool {name!r}{hint} Available: {known}", type="unknown_tool")


def _changed_result(emission: Emission, result: ToolResult) -> ToolResult:
    """Return the result that handlers left; `result` counts before `tool_result`."""
    for key in ("result", "tool_result"):
        changed = emission.data.get(key)
        if changed is not result and isinstance(changed, ToolResult):
            return changed
    return result
