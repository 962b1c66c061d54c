"""The turn of a loop written by hand.

Such a loop emits `tool:pre` and `tool:post` itself and then calls the tool that it received, which owes the same
events. Its turn is composed of other parts: hooks that note what the loop announces, a runner of tools that takes the
note in place of asking again, and a context that stores what waited for a result.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import attrs

from amplifier.kernel.handwritten.announcements import Announcements
from amplifier.kernel.handwritten.context import LoopContext
from amplifier.kernel.handwritten.hooks import LoopHooks
from amplifier.kernel.handwritten.provider_calls import ReceivedProviderCaller
from amplifier.kernel.handwritten.providers import proxy_of, unwrapped_provider
from amplifier.kernel.turn.tool_calls import SettledCall, ToolRunner
from amplifier.kernel.turn.turn import RunningTurn
from amplifier_sdk.content import ToolCallBlock
from amplifier_sdk.messages import Message

if TYPE_CHECKING:
    from amplifier.kernel.budgets.turn import TurnBudget
    from amplifier.kernel.handwritten.prompts import PromptDelivery
    from amplifier.kernel.turn.prompts import MediaPrompt
    from amplifier.kernel.turn.provider_calls import ProviderCaller
    from amplifier.kernel.turn.registry import HookRegistry
    from amplifier.kernel.turn.services import SessionServices
    from amplifier.kernel.turn.stream import EventSink
    from amplifier_sdk.chat import ChatResponse, ToolCall
    from amplifier_sdk.contracts import (
        ContextManager,
        Provider,
        RequestBuilder,
        Tool,
    )
    from amplifier_sdk.history import OpenCall
    from amplifier_sdk.jsontypes import JSONValue
    from amplifier_sdk.messages import MessageDict
    from amplifier_sdk.results import Emission, ToolResult

__all__ = ["AnnouncedToolRunner", "HandwrittenTurn"]


@attrs.frozen(eq=False, repr=False)
class AnnouncedToolRunner(ToolRunner):
    """Runs the tool calls of a loop that announces them itself: each is decided on once and reported once."""

    announcements: Announcements = attrs.field(factory=Announcements)

    hears_ends: ClassVar[bool] = True

    async def run_received(self, call: ToolCall, tool: Tool) -> ToolResult:
        """Run a call that the loop made by the tool that it received, as it was decided when it was announced."""
        # the model's arguments could not be read, so no announcement can fit them
        announced = None
        if not call.problem:
            announced = self.announcements.take(call)
        settled, asked = None, call.arguments
        if announced is None:
            adopted = self.announcements.adopt(call.name, call.arguments)
            call = attrs.evolve(call, id=adopted or call.id)
        else:
            call, asked = announced.call, announced.asked
            settled = SettledCall(call, announced.refusal)
        result = await self.run(call, {call.name: tool}, settled=settled)
        self.announcements.end(call, (asked, call.arguments), result)
        return result

    async def carry_out(
        self, emission: Emission, event: str, call: ToolCall
    ) -> Emission:
        """Carry out what handlers decided of a call that is over, and note what is left for a loop that reports it."""
        decided = await super().carry_out(emission, event, call)
        self.announcements.note_end(call.id, decided.decisions)
        return decided

    def result_of(
        self, call: OpenCall, messages: Sequence[MessageDict]
    ) -> ToolResult | None:
        """Return the result of a call of the history, which the loop may have run under another id."""
        return super().result_of(call, messages) or self._result_by_input(
            call, messages
        )

    def _result_by_input(
        self, call: OpenCall, messages: Sequence[MessageDict]
    ) -> ToolResult | None:
        last = next(
            message
            for message in reversed(messages)
            if message.get("role") == "assistant"
        )
        blocks = (
            block
            for block in Message.from_dict(last).content
            if isinstance(block, ToolCallBlock)
        )
        made = next(block for block in blocks if block.id == call.id)
        return self.announcements.take_result(made.name, made.input)


class HandwrittenTurn(RunningTurn):
    """One turn of a loop that announces its tool calls and stores their results itself.

    Args:
        services: the session's.
        budget: the turn's.
        metadata: what the application gave the turn besides its prompt.
        stream: where the events of the turn go, if somebody reads them.
        given: the prompt, where it is more than a text.
        hooks: the session's.
        tools: what is mounted, live.
    """

    __slots__ = ("delivery",)

    def __init__(
        self,
        services: SessionServices,
        budget: TurnBudget,
        metadata: Mapping[str, JSONValue] | None,
        stream: EventSink | None,
        given: MediaPrompt | None = None,
        *,
        hooks: HookRegistry,
        tools: Mapping[str, Tool],
    ) -> None:
        super().__init__(services, budget, metadata, stream, given)
        parts = services, budget, self.log, self.decisions, stream
        runner = AnnouncedToolRunner(*parts)
        self.delivery: PromptDelivery | None = (
            None if given is None else _delivery(given)
        )
        self.tool_calls: ToolRunner = runner
        self.provider_calls: ProviderCaller = ReceivedProviderCaller(
            *parts, runner.announcements
        )
        self.loop_hooks: HookRegistry | None = LoopHooks(
            hooks, runner, runner.announcements, tools, self.delivery
        )

    def complete(
        self,
        provider: Provider,
        request: RequestBuilder,
        *,
        context: ContextManager,
        name: str | None = None,
        model: str | None = None,
        iteration: int = 0,
        max_reached: bool = False,
    ) -> Coroutine[object, object, ChatResponse]:
        """Run one provider call; such a loop passes on the proxy that it received, which would start it anew."""
        return super().complete(
            unwrapped_provider(provider),
            request,
            context=context,
            name=name,
            model=model,
            iteration=iteration,
            max_reached=max_reached,
        )

    def providers_for_loop(
        self, providers: Mapping[str, Provider], hooks: HookRegistry
    ) -> dict[str, Provider]:
        """Return the providers as such a loop receives them."""
        return {
            name: proxy_of(provider, hooks, name)
            for name, provider in providers.items()
        }

    def context_for_loop(self, context: ContextManager) -> ContextManager:
        """Return the context as such a loop receives it."""
        return LoopContext(context, self.services.decisions, self.delivery)


def _delivery(given: MediaPrompt) -> PromptDelivery:
    from amplifier.kernel.handwritten.prompts import PromptDelivery  # few have media

    return PromptDelivery(given)
