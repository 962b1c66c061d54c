"""The host: the one provider call and the one tool call, with everything each of them owes.

A loop decides the order of the calls. What happens each time stands here: events, decisions, deadlines,
checks, the journal, the account, the stream. See `amplifier_sdk.contracts.TurnHost`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from random import getrandbits
from time import perf_counter
from typing import Final

import anyio
import attrs

from amplifier.kernel.answers import Question
from amplifier.kernel.blocks import BlockEvents
from amplifier.kernel.budgets import Spending
from amplifier.kernel.cancellation import CancellationToken
from amplifier.kernel.decisions import DecisionProcessor
from amplifier.kernel.hooks import HookRegistry
from amplifier.kernel.proxies import unwrapped
from amplifier.kernel.reports import report
from amplifier.kernel.spans import Span, current_span, current_turn_id
from amplifier.kernel.turnstream import TurnStream
from amplifier_sdk.arguments import ArgumentSchema
from amplifier_sdk.chat import ChatRequest, ChatResponse, ToolCall
from amplifier_sdk.contracts import ContextManager, Provider, RequestBuilder, Tool
from amplifier_sdk.errors import LLMError, ToolError, TurnCancelled, did_you_mean
from amplifier_sdk.events import (
    PROVIDER_ERROR,
    PROVIDER_REQUEST,
    PROVIDER_RESPONSE,
    TOOL_ERROR,
    TOOL_POST,
    TOOL_PRE,
    ProviderError,
    ProviderRequest,
    ProviderResponse,
    ToolErrorRaised,
    ToolPost,
    ToolPre,
)
from amplifier_sdk.history import typed
from amplifier_sdk.journal import CallFinished, CallStarted, Journal, MessageWritten
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.limits import Limits
from amplifier_sdk.loops import schema_of
from amplifier_sdk.messages import Message
from amplifier_sdk.results import ContextInjection, Emission, HookResult, ToolResult
from amplifier_sdk.streaming import Delta, StreamEvent, TextDelta, ToolFinished, ToolStarted

__all__ = ["Host"]

LAST_ANSWER: Final = (
    "A limit of this turn is reached. No tool can be used any more: answer now, with what you know so far."
)


@attrs.define(eq=False)
class Host:
    """Runs the calls of one session's turns.

    `stream` is set while somebody reads the turn; `journal` while an application offers one.
    """

    hooks: HookRegistry
    session_id: str = "unknown"
    limits: Limits = Limits()
    cancellation: CancellationToken = attrs.field(factory=CancellationToken)
    decisions: DecisionProcessor = attrs.field(
        default=attrs.Factory(lambda self: DecisionProcessor(self.hooks), takes_self=True)
    )
    journal: Journal | None = None
    stream: TurnStream | None = None
    spending: Spending = attrs.field(factory=Spending)
    partial_text: list[str] = attrs.field(factory=list)
    finished: dict[str, ToolResult] = attrs.field(factory=dict)
    _pending: list[ContextInjection] = attrs.field(factory=list)
    _schemas: dict[int, tuple[Tool, Mapping[str, JSONValue], ArgumentSchema]] = attrs.field(factory=dict)

    def begin_turn(self) -> None:
        """Forget what the turn before left."""
        self.spending = Spending()
        self.partial_text.clear()
        self.finished.clear()
        self._pending.clear()
        self.decisions.reset_turn()

    async def process_hook_result(
        self, result: Emission | HookResult, event: str, hook_name: str = "unknown", /
    ) -> Emission:
        """Carry out what handlers decided; ephemeral injections wait for the next request."""
        emission = await self.decisions.process(result, event, hook_name)
        if emission.decisions:
            self._pending.extend(emission.injections)
        return emission

    # -- the provider call

    async def complete(
        self,
        provider: Provider,
        request: RequestBuilder,
        *,
        context: ContextManager,
        name: str | None = None,
        model: str | None = None,
        iteration: int = 0,
        max_reached: bool = False,
    ) -> ChatResponse:
        """Run one provider call; see `TurnHost.complete`."""
        if self.cancellation.is_cancelled:
            raise TurnCancelled("".join(self.partial_text))
        name = name or provider.name
        token = current_span.set(Span(self.session_id, current_span.get(), iteration))
        try:
            await self._announce(name, model, iteration, max_reached)
            view = await context.get_messages_for_request(provider=provider)
            messages = self._with_pending(typed(view), max_reached)
            response = await self._ask(provider, name, model, request(messages=messages))
            if self.journal is not None:
                await self.journal.append(MessageWritten(turn_id=current_turn_id(), message=response.to_message()))
            return response
        finally:
            current_span.reset(token)

    async def _announce(self, name: str, model: str | None, iteration: int, max_reached: bool) -> None:
        """Emit `provider:request`; what handlers inject for this request waits in `_pending`."""
        if not self.hooks.has_handlers(PROVIDER_REQUEST):
            return
        payload = ProviderRequest(provider=name, model=model)
        payload["iteration"] = iteration
        if max_reached:
            payload["max_reached"] = True
        emission = await self.process_hook_result(await self.hooks.emit(PROVIDER_REQUEST, payload), PROVIDER_REQUEST)
        if emission.denied:
            raise LLMError(f"The request was denied by {emission.decided_by}: {emission.reason}", provider=name)

    def _with_pending(self, messages: Sequence[Message], max_reached: bool) -> Sequence[Message]:
        """Add what waits for this one request behind the history, which stays as it is."""
        if not self._pending and not max_reached:
            return messages
        pending, self._pending = self._pending, []
        for injection in pending:
            messages = _injected(messages, injection)
        return (*messages, Message(role="system", content=LAST_ANSWER)) if max_reached else messages

    async def _ask(self, provider: Provider, name: str, model: str | None, request: ChatRequest) -> ChatResponse:
        blocks = BlockEvents(self.hooks) if BlockEvents.are_heard(self.hooks) else None
        started = perf_counter()
        try:
            response = await Question(provider, name, self.limits, partial(self._deliver, blocks)).ask(request)
        except BaseException as error:
            await self._provider_failed(name, model, error, blocks)
            raise
        self.spending.add_usage(response.usage)
        if blocks is not None:
            await blocks.finish(response)
        if self.hooks.has_handlers(PROVIDER_RESPONSE):
            await self._provider_answered(name, model, response, perf_counter() - started)
        return response

    async def _deliver(self, blocks: BlockEvents | None, delta: Delta) -> None:
        """Hand a delta to the reader of the turn and to the handlers."""
        if isinstance(delta, TextDelta):
            self.partial_text.append(delta.text)
        if self.stream is not None:
            await self.stream.send(delta)
        if blocks is not None:
            await blocks.grow(delta)

    async def _provider_answered(
        self, name: str, model: str | None, response: ChatResponse, duration: float
    ) -> None:
        payload = ProviderResponse(
            provider=name,
            model=model,
            response=response,
            usage=response.usage,
            tool_calls=bool(response.tool_calls),
            duration=duration,
        )
        await self.process_hook_result(await self.hooks.emit(PROVIDER_RESPONSE, payload), PROVIDER_RESPONSE)

    async def _provider_failed(
        self, name: str, model: str | None, error: BaseException, blocks: BlockEvents | None
    ) -> None:
        """Close what was announced; a cancelled call closes its blocks too."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(self.limits.cleanup_timeout):
            if blocks is not None:
                await blocks.abandon()
            if isinstance(error, Exception) and self.hooks.has_handlers(PROVIDER_ERROR):
                await self.hooks.emit(PROVIDER_ERROR, _provider_error(name, model, error))

    # -- the tool call

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
        token = current_span.set(Span(self.session_id, current_span.get()))
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

    async def _decide(
        self, call: ToolCall, tool: Tool, group: str | None
    ) -> tuple[JSONObject, ToolResult | None]:
        """Let handlers decide; return the arguments to run with, or the refusal."""
        if not self.hooks.has_handlers(TOOL_PRE):
            return call.arguments, None
        payload = ToolPre(tool_name=call.name, tool_input=call.arguments)
        payload["tool_call_id"] = call.id
        payload["parallel_group_id"] = group
        payload["tool_obj"] = tool
        emission = await self.hooks.emit(TOOL_PRE, payload)
        decided = await self.process_hook_result(emission, TOOL_PRE, call.name)
        if decided.denied:
            return {}, ToolResult.failure(f"Denied by {decided.decided_by}: {decided.reason}", type="denied")
        changed = emission.data["tool_input"]
        if changed is call.arguments:
            return call.arguments, None
        if not isinstance(changed, Mapping):
            return {}, ToolResult.failure("Denied: a handler replaced the arguments by no object", type="denied")
        arguments: JSONObject = dict(changed)
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
                return ToolResult.failure(error.message, **error.details), True
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
        decided = await self.process_hook_result(emission, TOOL_POST, call.name)
        if decided.denied:
            return ToolResult.failure(f"Withheld by {decided.decided_by}: {decided.reason}", type="denied")
        return _changed_result(emission, result)

    async def _refuse(self, call: ToolCall, group: str | None, result: ToolResult) -> ToolResult:
        await self._tool_failed(call, call.arguments, group, result)
        return result

    async def _tool_failed(
        self, call: ToolCall, arguments: JSONObject, group: str | None, result: ToolResult
    ) -> None:
        if not self.hooks.has_handlers(TOOL_ERROR):
            return
        payload = ToolErrorRaised(tool_name=call.name, tool_input=arguments, error=result.error or {})
        payload["tool_call_id"] = call.id
        payload["parallel_group_id"] = group
        await self.process_hook_result(await self.hooks.emit(TOOL_ERROR, payload), TOOL_ERROR, call.name)

    def _problem(self, tool: Tool, arguments: JSONObject) -> str | None:
        """Check arguments against the tool's schema, compiled once; a schema that cannot be read is a problem."""
        try:
            schema = schema_of(tool)
            known = self._schemas.get(id(tool))
            if known is None or known[0] is not tool or (known[1] is not schema and known[1] != schema):
                known = self._schemas[id(tool)] = (tool, schema, ArgumentSchema(schema, tool.name))
            return known[2].problem(arguments)
        except Exception as error:  # foreign code: a tool's schema
            report("tool.schema_failed", error, tool=type(tool).__name__)
            return f"The tool cannot be used: its schema cannot be read ({type(error).__name__}: {error})"


def first_cause(failure: BaseException) -> BaseException:
    """Return the one error inside groups of one; a group of several stays a group."""
    while isinstance(failure, BaseExceptionGroup) and len(failure.exceptions) == 1:
        failure = failure.exceptions[0]
    return failure


def _injected(messages: Sequence[Message], injection: ContextInjection) -> Sequence[Message]:
    last = messages[-1] if messages else None
    if injection.append_to_last_tool_result and last is not None and last.role == "tool":
        return (*messages[:-1], attrs.evolve(last, content=f"{last.text}\n\n{injection.content}"))
    return (*messages, Message(role=injection.role, content=injection.content))


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
    hint = did_you_mean(name, list(tools))
    return ToolResult.failure(f"There is no tool {name!r}{hint} Available: {known}", type="unknown_tool")


def _changed_result(emission: Emission, result: ToolResult) -> ToolResult:
    """Return the result that handlers left; `result` counts before `tool_result`."""
    for key in ("result", "tool_result"):
        changed = emission.data.get(key)
        if changed is not result and isinstance(changed, ToolResult):
            return changed
    return result


def _provider_error(name: str, model: str | None, error: Exception) -> ProviderError:
    details: dict[str, JSONValue] = {"type": type(error).__name__, "msg": str(error)}
    retryable, status = (error.retryable, error.status_code) if isinstance(error, LLMError) else (False, None)
    return ProviderError(provider=name, model=model, error=details, retryable=retryable, status_code=status)
