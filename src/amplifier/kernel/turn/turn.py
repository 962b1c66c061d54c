"""The turn: made anew each time, and composed of what calls providers, what runs tools, and steering.

A loop decides the order of the calls; what happens each time is the turn's. The parts share the turn's budget, the
log of its answers and what handlers decided; nothing of it outlives the turn.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from amplifier.kernel.budgets.turn import TurnBudget
from amplifier.kernel.turn.decisions import TurnDecisions
from amplifier.kernel.turn.inbox import SteeringReader
from amplifier.kernel.turn.log import TurnLog
from amplifier.kernel.turn.provider_calls import ProviderCaller
from amplifier.kernel.turn.tool_calls import ToolRunner
from amplifier_sdk.chat import Degradation
from amplifier_sdk.contracts import ContextManager
from amplifier_sdk.streaming import TurnFinished

if TYPE_CHECKING:
    from amplifier.kernel.cancellation import CancellationToken
    from amplifier.kernel.turn.prompts import MediaPrompt
    from amplifier.kernel.turn.registry import HookRegistry
    from amplifier.kernel.turn.services import SessionServices
    from amplifier.kernel.turn.stream import EventSink
    from amplifier_sdk.chat import ChatResponse, ToolCall
    from amplifier_sdk.contracts import Provider, RequestBuilder, Tool
    from amplifier_sdk.jsontypes import JSONObject, JSONValue
    from amplifier_sdk.limits import Limits
    from amplifier_sdk.results import Emission, HookResult, ToolResult

__all__ = ["RunningTurn"]

NO_METADATA: Final[Mapping[str, JSONValue]] = {}


class RunningTurn:
    """One turn of a session, as its loop sees it; see `amplifier_sdk.contracts.TurnHost`.

    `answer` is what the loop answered, `None` while it works. `loop_hooks` are the hooks as the loop receives them
    where they are other than the session's.

    Args:
        services: the session's.
        budget: the turn's.
        metadata: what the application gave the turn besides its prompt.
        stream: where the events of the turn go, if somebody reads them.
        given: the prompt, where it is more than a text.
    """

    __slots__ = (
        "answer",
        "budget",
        "decisions",
        "given",
        "log",
        "loop_hooks",
        "metadata",
        "provider_calls",
        "services",
        "steering",
        "stream",
        "tool_calls",
    )

    def __init__(
        self,
        services: SessionServices,
        budget: TurnBudget | None = None,
        metadata: Mapping[str, JSONValue] | None = None,
        stream: EventSink | None = None,
        given: MediaPrompt | None = None,
    ) -> None:
        self.services: SessionServices = services
        self.budget: TurnBudget = (
            TurnBudget(services.limits) if budget is None else budget
        )
        self.metadata: Mapping[str, JSONValue] = metadata or NO_METADATA
        self.stream: EventSink | None = stream
        self.answer: str | None = None
        self.loop_hooks: HookRegistry | None = None
        self.given: MediaPrompt | None = given
        self.log: TurnLog = TurnLog()
        self.decisions: TurnDecisions = TurnDecisions(services.decisions)
        parts = services, self.budget, self.log, self.decisions, stream
        self.tool_calls: ToolRunner = ToolRunner(*parts)
        self.provider_calls: ProviderCaller = ProviderCaller(*parts)
        self.steering: SteeringReader = SteeringReader(
            services.inbox, services.hooks, self.decisions, stream
        )

    # -- what a loop asks for

    @property
    def limits(self) -> Limits:
        """The turn's limits."""
        return self.budget.limits

    @property
    def cancellation(self) -> CancellationToken:
        """The session's cancellation token."""
        return self.services.cancellation

    @property
    def conversation_id(self) -> str:
        """What a vendor may group the session's requests by."""
        return self.services.session_id

    @property
    def assigned(self) -> str | None:
        """The provider that a child session was given, whatever its loop chooses."""
        route = self.services.route
        if route is None:
            return None
        return route.name

    @property
    def was_shown(self) -> bool:
        """Whether anybody saw a part of the last request's answer as it formed."""
        return self.log.was_shown

    @property
    def limit(self) -> str | None:
        """The name of the limit that the turn reached."""
        reached = self.budget.reached
        if reached is None:
            return None
        return reached[0]

    @property
    def prompt_media(self) -> Sequence[JSONObject]:
        """What is shown with the turn's prompt, described without its data."""
        if self.given is None:
            return ()
        return self.given.media

    def prompt_content(
        self, prompt: str, media: Sequence[Mapping[str, JSONValue]]
    ) -> JSONValue:
        """Return the content of the message that stores the prompt; see `MediaPrompt.content`."""
        if self.given is None:
            return prompt
        return self.given.content(prompt, media)

    def note_degradation(self, degradation: Degradation) -> None:
        """List in the turn's result in what an answer is not what was asked for."""
        self.log.degradations.append(degradation)

    @property
    def wrapped_up(self) -> bool:
        """Whether the turn's last answer was given."""
        return self.budget.wrapped_up

    # These hand out the coroutines of the parts: a frame of their own would be in every traceback.

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
        """Run one provider call; see `TurnHost.complete`."""
        calls = self.provider_calls
        complete = calls.complete
        if self.log.replay is not None:
            complete = calls.complete_or_replay
        return complete(
            provider,
            request,
            context,
            name=name,
            model=model,
            iteration=iteration,
            max_reached=max_reached,
        )

    def run_tool(
        self,
        call: ToolCall,
        tools: Mapping[str, Tool],
        *,
        parallel_group_id: str | None = None,
    ) -> Coroutine[object, object, ToolResult]:
        """Run one tool call; see `TurnHost.run_tool`."""
        return self.tool_calls.run(call, tools, parallel_group_id)

    def run_tools(
        self, calls: Sequence[ToolCall], tools: Mapping[str, Tool]
    ) -> Coroutine[object, object, list[ToolResult]]:
        """Run the calls of one answer; see `TurnHost.run_tools`."""
        return self.tool_calls.run_all(calls, tools)

    def take_steering(
        self, context: ContextManager, /
    ) -> Coroutine[object, object, Sequence[str]]:
        """Add what was typed while the agent worked to the conversation; see `TurnHost.take_steering`."""
        return self.steering.take(context)

    def process_hook_result(
        self, result: Emission | HookResult, event: str, hook_name: str = "unknown", /
    ) -> Coroutine[object, object, Emission]:
        """Carry out what handlers decided; see `TurnHost.process_hook_result`."""
        return self.decisions.carry_out(result, event, hook_name)

    # -- what the session asks for

    def providers_for_loop(
        self, providers: Mapping[str, Provider], _: HookRegistry
    ) -> dict[str, Provider]:
        """Return the providers as the loop of this turn receives them.

        It is a copy: the loop may drop a provider for itself and for nobody else.
        """
        return dict(providers)

    def context_for_loop(self, context: ContextManager) -> ContextManager:
        """Return the context as the loop of this turn receives it."""
        return context

    @property
    def text(self) -> str:
        """What the model wrote in this turn, as far as it streamed."""
        return self.log.text

    @property
    def finished(self) -> TurnFinished | None:
        """The turn's result, once it has an answer."""
        if self.answer is None:
            return None
        total = self.budget.total
        return TurnFinished(
            text=self.answer,
            usage=total.usage,
            iterations=self.budget.spending.provider_calls,
            finish_reason=self.log.finish_reason,
            tool_calls=total.tool_calls,
            children=total.children,
            limit=self.limit,
            unread=self.services.inbox.texts,
            degradations=tuple(self.log.degradations),
        )

    def release(self) -> None:
        """Let go of what only a turn that runs needs: its scope holds those around it, and so the caller's."""
        self.budget.scope = None
        self.loop_hooks = None
        self.log.results.clear()
