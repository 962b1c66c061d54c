"""The one tool call: checks, decisions, the journal, events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import getrandbits
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, cast

import anyio
import attrs

from amplifier.kernel.groups import open_group
from amplifier.kernel.hooks.readonly import read_only
from amplifier.kernel.reports import report
from amplifier.kernel.spans import Span, current_span, current_turn_id
from amplifier.kernel.turn.arguments import copied
from amplifier.kernel.turn.batches import batches, lanes
from amplifier.kernel.turn.consent import needs_consent, with_consent
from amplifier.kernel.turn.proxies import unwrapped
from amplifier.kernel.turn.slots import CallSlot
from amplifier.kernel.turn.tool_caller import ToolCaller, own_span, time_limit
from amplifier_sdk.chat import ToolCall
from amplifier_sdk.content import TextBlock
from amplifier_sdk.contracts import Tool
from amplifier_sdk.events import (
    TOOL_ERROR,
    TOOL_POST,
    TOOL_PRE,
    ToolErrorPayload,
    ToolPost,
    ToolPre,
)
from amplifier_sdk.journal import CallFinished, CallStarted
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.loops.notices import (
    CALL_CANCELLED,
    RESULT_UNCHECKED,
    call_limit_reached,
    unknown_tool,
)
from amplifier_sdk.results import Decision, Emission, HookResult, ToolResult
from amplifier_sdk.streaming import ToolFinished, ToolStarted
from amplifier_sdk.toolinfo import ToolInfo

if TYPE_CHECKING:
    from amplifier.kernel.budgets.turn import TurnBudget
    from amplifier.kernel.turn.decisions import TurnDecisions
    from amplifier.kernel.turn.log import TurnLog
    from amplifier.kernel.turn.services import SessionServices
    from amplifier.kernel.turn.stream import EventSink
    from amplifier_sdk.history import OpenCall
    from amplifier_sdk.journal import Journal
    from amplifier_sdk.messages import MessageDict

__all__ = ["SettledCall", "ToolRunner", "tool_info"]


@attrs.frozen(eq=False)
class SettledCall:
    """A call that was decided on before it is run: `refusal` says why it must not run, if so."""

    call: ToolCall
    refusal: ToolResult | None = None


@attrs.frozen(eq=False)
class _Outcome:
    """What a tool gave: its result, whether it failed to give one, and how many seconds it took."""

    result: ToolResult
    failed: bool
    duration: float = 0.0


@attrs.frozen(eq=False, repr=False)
class ToolRunner:
    """Runs the tool calls of one turn."""

    services: SessionServices
    budget: TurnBudget
    log: TurnLog
    decisions: TurnDecisions
    stream: EventSink | None = None
    _infos: dict[int, tuple[Tool, ToolInfo | None]] = attrs.field(
        factory=dict, init=False
    )
    _caller: ToolCaller = attrs.field(
        default=attrs.Factory(
            lambda self: ToolCaller(self.services, self.budget, self.log, self.stream),
            takes_self=True,
        ),
        init=False,
    )

    hears_ends: ClassVar[bool] = False
    """Whether `carry_out` is to be called for the end of each call, also where nobody decided anything."""

    async def run_all(
        self, calls: Sequence[ToolCall], tools: Mapping[str, Tool]
    ) -> list[ToolResult]:
        """Run the calls of one answer; see `TurnHost.run_tools`."""
        if len(calls) == 1:
            # most answers call one tool, which needs neither a group nor a task
            return [await self.run(calls[0], tools)]
        results: list[ToolResult] = []
        for batch in batches(calls, tools):
            if len(batch) == 1:
                results.append(await self.run(batch[0], tools))
            else:
                results += await self._run_batch(batch, tools)
        return results

    async def _run_batch(
        self, calls: Sequence[ToolCall], tools: Mapping[str, Tool]
    ) -> list[ToolResult]:
        """Run calls beside each other: each worker takes the next lane until none is left."""
        results: dict[int, ToolResult] = {}
        limit = self.budget.limits.parallel_tools
        side_by_side = lanes(calls, tools)
        waiting = iter(side_by_side)
        # not secret, so the operating system need not be asked for randomness
        group_id = f"{getrandbits(64):016x}"
        interrupts: list[KeyboardInterrupt] = []
        slots = anyio.Semaphore(limit, fast_acquire=True)

        def start_next() -> None:
            workers.start_soon(work)

        async def work() -> None:
            try:
                # one iterator for all workers: a lane is taken once, by whoever is free
                # first
                for lane in waiting:
                    for index in lane:
                        slot = CallSlot(slots, start_next)
                        async with slot:
                            results[index] = await self.run(
                                calls[index], tools, group_id, slot=slot
                            )
            except KeyboardInterrupt as interrupt:
                # out of a task it would end asyncio's event loop
                interrupts.append(interrupt)
                workers.cancel_scope.cancel()

        async with open_group() as workers:
            for _ in range(min(len(side_by_side), limit)):
                workers.start_soon(work)
        if interrupts:
            raise interrupts[0]
        return [results[index] for index in range(len(calls))]

    async def run_received(self, call: ToolCall, tool: Tool) -> ToolResult:
        """Run a call that a loop made by the tool that it received."""
        return await self.run(call, {call.name: tool})

    async def run(
        self,
        call: ToolCall,
        tools: Mapping[str, Tool],
        group: str | None = None,
        settled: SettledCall | None = None,
        slot: CallSlot | None = None,
    ) -> ToolResult:
        """Run one tool call; see `TurnHost.run_tool`.

        Args:
            call: the call.
            tools: what it may call.
            group: the id of the calls that run beside it.
            settled: what was decided of it already; `None` lets handlers decide.
            slot: its place among the calls that run beside it.
        """
        log, budget = self.log, self.budget
        # a vendor may give the calls of every answer the same ids
        log.results.pop(call.id, None)
        around = current_span.get()
        # the model's call belongs to its answer, one that a tool makes to that tool
        if log.request is not None and around is not None and around.is_turn:
            around = log.request
        span = Span(self.services.session_id, around, log.iteration)
        if slot is not None:
            span.release_slot = slot.released
        token = current_span.set(span)
        try:
            reached = budget.take_call()
            if reached is None:
                call, result = await self._run(call, tools, group, settled)
                if not result.success:
                    budget.spending.tool_failures += 1
            else:
                result = await self._refuse(call, group, call_limit_reached(*reached))
        finally:
            current_span.reset(token)
        log.results[call.id] = result
        # whoever watches a turn that is continued has seen the ends that are recorded
        was_shown = log.replay is not None and log.replay.is_finished(call.id)
        if self.stream is not None and not was_shown:
            await self.stream.send(ToolFinished(call=call, result=result))
        return result

    async def _run(  # noqa: C901  # the one tool call, step by step
        self,
        call: ToolCall,
        tools: Mapping[str, Tool],
        group: str | None,
        settled: SettledCall | None,
    ) -> tuple[ToolCall, ToolResult]:
        """Check the call, let handlers decide, and run the tool; return the call as it ran, and its result.

        A refused call is announced as failed, and so is one that was cancelled.
        """
        services, hooks = self.services, self.services.hooks
        if services.cancellation.is_cancelled:
            return call, CALL_CANCELLED
        tool = tools.get(call.name)
        if self.log.replay is not None:
            recorded = self.log.replay.result(call, tool)
            if recorded is not None:
                return call, await self._recorded(call, group, recorded)
        if tool is None:
            return call, await self._refuse(call, group, unknown_tool(call.name, tools))
        # a loop passes on the proxies it received, which would start the call anew
        tool = unwrapped(tool)
        problem = call.problem or services.schemas.problem(tool, call.arguments)
        if problem is not None:
            return call, await self._refuse(
                call, group, ToolResult.failure(problem, type="invalid_arguments")
            )
        # handlers and the tool get what no message of the history refers to
        arguments = copied(call.arguments)
        if settled is None:
            refusal = None
        else:
            refusal = settled.refusal
        try:
            if settled is None and (
                hooks.has_handlers(TOOL_PRE)
                or needs_consent(tool, services.decisions.settings)
            ):
                decided, refusal = await self._decide(call, tool, arguments, group)
                if refusal is None and decided is not arguments:
                    call, arguments = attrs.evolve(call, arguments=decided), decided
            if refusal is None:
                with services.decisions.suspension.call(own_span()):
                    outcome = await self._execute(call, tool, arguments)
            else:
                outcome = _Outcome(refusal, failed=True)
        except BaseException as error:
            # a loop that announces its calls reports their ends too
            if settled is None:
                await self._broke_off(call, group, arguments, error)
            raise
        if outcome.failed:
            return call, await self._refuse(call, group, outcome.result, arguments)
        if not hooks.has_handlers(TOOL_POST):
            return call, outcome.result
        return call, await self._returned(call, arguments, group, outcome)

    async def _recorded(
        self, call: ToolCall, group: str | None, result: ToolResult
    ) -> ToolResult:
        """Return the result of a call that does not run any more, checked by handlers as any."""
        arguments, replay = copied(call.arguments), self.log.replay
        if replay is not None and replay.is_finished(call.id):
            if not self.services.hooks.has_handlers(TOOL_POST):
                return result
            outcome = _Outcome(result, failed=False)
            return await self._returned(call, arguments, group, outcome)
        if self.services.journal is not None:
            # settled from here on: whoever continues the turn next finds the same
            await self._write_end(self.services.journal, call, result)
        return await self._refuse(call, group, result, arguments)

    async def _decide(
        self, call: ToolCall, tool: Tool, arguments: JSONObject, group: str | None
    ) -> tuple[JSONObject, ToolResult | None]:
        """Let handlers decide; return the arguments to run with, or the refusal."""
        payload: ToolPre = {
            "tool_name": call.name,
            "tool_input": arguments,
            "tool_call_id": call.id,
            "parallel_group_id": group,
            "tool_obj": self._info_of(tool),
        }
        emission = await self.services.hooks.emit(TOOL_PRE, payload)
        if not emission.decisions and not needs_consent(
            tool, self.services.decisions.settings
        ):
            return arguments, None
        decided, refusal, _ = await self.settle(
            call, tool, arguments, arguments, emission
        )
        return decided, refusal

    def _info_of(self, tool: Tool) -> ToolInfo | None:
        """Return what handlers learn of a tool, which it is asked once a turn."""
        # the tool is stored with it, so that no other object can have its id meanwhile
        known = self._infos.get(id(tool))
        if known is None:
            known = self._infos[id(tool)] = tool, read_only(tool_info(tool))
        return known[1]

    async def settle(
        self,
        call: ToolCall,
        tool: Tool,
        shown: JSONObject,
        arguments: JSONObject,
        emission: Emission,
    ) -> tuple[JSONObject, ToolResult | None, Emission]:
        """Carry out what handlers decided on a call.

        Args:
            call: the call; what its `problem` names keeps it from running unless a handler changes it.
            tool: the tool it calls.
            shown: the arguments that the handlers were shown.
            arguments: what runs when they leave these as they are.
            emission: what they decided.

        Returns:
            The arguments to run with, the refusal if it must not run, and what is left of the decisions.
        """
        if emission.data["tool_input"] is not shown:
            arguments, problem = self._changed_arguments(
                tool, emission.data["tool_input"]
            )
        else:
            # the model's mistake stands as long as nobody replaced what it wrote
            problem = call.problem
        kind = "denied"
        processor = self.services.decisions
        if (
            problem is None
            and not emission.denied
            and needs_consent(tool, processor.settings)
        ):
            emission, problem = await with_consent(
                tool, call.name, copied(arguments), emission, processor
            )
            kind = "precondition"
        decided = emission
        if emission.decisions:
            # What a person is asked about is a copy that no handler holds: what they read is what runs.
            emission.data["tool_input"] = arguments
            # messages are shown, but nobody is asked about what cannot run
            if problem is not None:
                emission.decisions = (
                    *emission.decisions,
                    Decision(call.name, HookResult.deny(problem)),
                )
            decided = await self.decisions.carry_out(emission, TOOL_PRE, call.name)
            if decided.denied and decided.reason != problem:
                reason = f"Denied by {decided.decided_by}: {decided.reason}"
                return {}, ToolResult.failure(reason, type="denied"), decided
        if problem is not None:
            return {}, ToolResult.failure(problem, type=kind), decided
        return arguments, None, decided

    def _changed_arguments(
        self, tool: Tool, changed: object
    ) -> tuple[JSONObject, str | None]:
        """Copy the arguments that a handler gave instead; return what keeps the tool from running with them."""
        arguments = copied(cast("Mapping[str, JSONValue]", changed))
        problem = self.services.schemas.problem(tool, arguments)
        return (
            arguments,
            None
            if problem is None
            else f"Denied: a handler's change does not fit. {problem}",
        )

    async def _execute(
        self, call: ToolCall, tool: Tool, arguments: JSONObject
    ) -> _Outcome:
        """Run a tool that passed its checks, with its marks in the journal."""
        services, log = self.services, self.log
        journal, running = services.journal, services.cancellation
        if journal is not None:
            await journal.append(
                CallStarted(
                    turn_id=current_turn_id(), call_id=call.id, tool_name=call.name
                )
            )
        if self.stream is not None:
            await self.stream.send(ToolStarted(call=call))
        # after the journal: what is listed as running is known to have begun
        running.register_tool_start(call.id, call.name)
        limit = time_limit(tool, self.budget.limits.tool_timeout)
        started = perf_counter()
        try:
            if getattr(tool, "takes_context", False) is True:
                result, failed = await self._caller.call_with_context(
                    call, tool, arguments, limit
                )
            else:
                result, failed = await self._caller.call(call, tool, arguments, limit)
        finally:
            running.register_tool_complete(call.id)
        duration = perf_counter() - started
        # a turn that is cancelled while handlers check must not store what they may
        # withhold
        is_checked = services.hooks.has_handlers(TOOL_POST) and not failed
        if is_checked:
            log.results[call.id] = RESULT_UNCHECKED
        else:
            log.results[call.id] = result
        if journal is not None:
            await self._write_end(journal, call, result)
        return _Outcome(result, failed, duration)

    async def _write_end(
        self, journal: Journal, call: ToolCall, result: ToolResult
    ) -> None:
        record = CallFinished(
            turn_id=current_turn_id(),
            call_id=call.id,
            success=result.success,
            output=result.get_serialized_output(),
            spending=self.budget.spent_so_far,
        )
        await journal.append(record)

    async def _returned(
        self,
        call: ToolCall,
        arguments: JSONObject,
        group: str | None,
        outcome: _Outcome,
    ) -> ToolResult:
        """Emit `tool:post`; handlers may change the result or withhold it."""
        result = outcome.result
        payload: ToolPost = {
            "tool_name": call.name,
            "tool_input": arguments,
            "result": result,
            "tool_result": result,
            "tool_call_id": call.id,
            "parallel_group_id": group,
            "duration": outcome.duration,
        }
        emission = await self.services.hooks.emit(TOOL_POST, payload)
        if not emission.decisions and not self.hears_ends:
            return result
        decided = await self.carry_out(emission, TOOL_POST, call)
        if decided.denied:
            return ToolResult.failure(
                f"Withheld by {decided.decided_by}: {decided.reason}", type="denied"
            )
        return _changed_result(emission, result)

    async def _broke_off(
        self,
        call: ToolCall,
        group: str | None,
        arguments: JSONObject,
        error: BaseException,
    ) -> None:
        """Announce the end of a call that was cancelled, or whose journal failed."""
        # a call of a turn that is suspended is made when that is continued
        if self.services.decisions.suspension.is_done:
            return
        if not self.services.hooks.has_handlers(TOOL_ERROR):
            return
        is_cancelled = not isinstance(error, Exception)
        if is_cancelled:
            kind, reason = ("cancelled", "it was cancelled")
        else:
            kind, reason = (type(error).__name__, str(error))
        result = ToolResult.failure(f"The call did not finish: {reason}", type=kind)
        with (
            # cancelled code cannot await; the limit keeps a handler from holding up the
            # end
            anyio.CancelScope(shield=True),
            anyio.move_on_after(self.budget.limits.cleanup_timeout),
        ):
            await self._refuse(call, group, result, arguments)

    async def _refuse(
        self,
        call: ToolCall,
        group: str | None,
        result: ToolResult,
        arguments: JSONObject | None = None,
    ) -> ToolResult:
        """Emit `tool:error` for a call that was not run or whose tool failed; return its result."""
        hooks = self.services.hooks
        if hooks.has_handlers(TOOL_ERROR):
            payload = ToolErrorPayload(
                tool_name=call.name,
                tool_input=copied(call.arguments) if arguments is None else arguments,
                error={"msg": result.error.get("message"), **result.error}
                if result.error
                else {},
                tool_call_id=call.id,
                parallel_group_id=group,
            )
            await self.carry_out(
                await hooks.emit(TOOL_ERROR, payload), TOOL_ERROR, call
            )
        return result

    async def carry_out(
        self, emission: Emission, event: str, call: ToolCall
    ) -> Emission:
        """Carry out what handlers decided of a call that is over."""
        return await self.decisions.carry_out(emission, event, call.name)

    def result_of(
        self,
        call: OpenCall,
        messages: Sequence[MessageDict],  # noqa: ARG002  # for a runner that knows its calls by what was asked
    ) -> ToolResult | None:
        """Return the result of a call of the history that has none there.

        Args:
            call: the call.
            messages: the history.
        """
        return self.log.results.get(call.id)


def tool_info(tool: Tool) -> ToolInfo | None:
    """Return what handlers learn of a tool; nothing of one that cannot say what it is."""
    try:
        return ToolInfo.of(tool)
    except Exception as error:  # foreign code: a tool's attributes
        report("tool.schema_failed", error, tool=type(tool).__name__)
        return None


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
    # the vendor is sent the content: the old text there would undo the change
    others = [block for block in changed.content if not isinstance(block, TextBlock)]
    return attrs.evolve(
        changed, content=[TextBlock(text=changed.get_serialized_output()), *others]
    )
