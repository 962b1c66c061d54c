"""One turn of a loop: its parts, and the steps a loop is made of."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import attrs

from amplifier_sdk.chat import (
    ChatRequest,
    ChatResponse,
    Degradation,
    ResponseFormat,
    ToolCall,
    ToolChoice,
    ToolSpec,
    Usage,
)
from amplifier_sdk.contracts import (
    ContextManager,
    Hooks,
    Provider,
    RequestBuilder,
    Tool,
    TurnHost,
)
from amplifier_sdk.errors import InvalidRequestError, LLMError
from amplifier_sdk.events import (
    PROMPT_COMPLETE,
    PROMPT_SUBMIT,
    PROVIDER_RESOLVE,
    PromptComplete,
    PromptSubmit,
)
from amplifier_sdk.history import result_message
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.results import HookResult, ToolResult

if TYPE_CHECKING:
    from amplifier_sdk.loops.loop import Loop
    from amplifier_sdk.loops.output import OutputRequest

__all__ = ["Turn"]


@attrs.define(eq=False, repr=False)
class Turn:
    """One turn of a loop: its parts, and the steps a loop is made of.

    `specs` are the tools as the model sees them, `provider_name` whom the loop asks unless something else decides,
    `metadata` what the application gave the turn. `iteration` counts the provider calls made, `usage` what they
    reported, `calls_made` the tool calls run.
    """

    loop: Loop
    prompt: str
    context: ContextManager
    providers: Mapping[str, Provider]
    tools: Mapping[str, Tool]
    hooks: Hooks
    host: TurnHost
    provider_name: str
    specs: tuple[ToolSpec, ...] = ()
    metadata: Mapping[str, JSONValue] = attrs.field(factory=dict)
    iteration: int = 0
    calls_made: int = 0
    usage: Usage | None = None
    _plain_request: partial[ChatRequest] | None = None
    _output: OutputRequest | None = None
    _is_output_read: bool = False

    @property
    def is_over(self) -> bool:
        """Whether a limit ended the turn: its last answer was given, and there can be no other."""
        return self.host.wrapped_up

    async def begin(self) -> str | None:
        """Announce the prompt and store it; return the refusal's text when a handler denies the turn."""
        shown = self.host.prompt_media
        media: Sequence[Mapping[str, JSONValue]] = shown
        if self.hooks.has_handlers(PROMPT_SUBMIT):
            payload = PromptSubmit(prompt=self.prompt)
            if shown:
                payload["media"] = shown
            if self.metadata:
                payload["metadata"] = self.metadata
            emission = await self.hooks.emit(PROMPT_SUBMIT, payload)
            emission = await self.host.process_hook_result(emission, PROMPT_SUBMIT)
            if emission.denied:
                return f"Operation denied: {emission.reason}"
            # the registry checks what handlers change
            self.prompt = cast("str", emission.data["prompt"])
            self.metadata = cast(
                "Mapping[str, JSONValue]", emission.data.get("metadata", self.metadata)
            )
            media = cast(
                "Sequence[Mapping[str, JSONValue]]", emission.data.get("media", media)
            )
        content = self.host.prompt_content(self.prompt, media)
        await self.context.add_message({"role": "user", "content": content})
        return None

    async def is_continued(self, answer: str, continued: int) -> bool:
        """Announce that the turn is about to end; return whether a handler wants more, which the agent then reads.

        Args:
            answer: what the turn would end with.
            continued: how many times it was continued already.
        """
        # few sessions have such a handler
        from amplifier_sdk.loops.events import STOPPING, Stopping

        emission = await self.hooks.emit(
            STOPPING, Stopping(response=answer, continued=continued)
        )
        emission = await self.host.process_hook_result(emission, STOPPING)
        if not emission.denied:
            return False
        wanted = HookResult.inject(
            f"Do not stop yet: {emission.reason or 'go on.'}", role="user"
        )
        await self.host.process_hook_result(
            wanted, STOPPING, emission.decided_by or "unknown"
        )
        return True

    async def end(self, answer: str) -> None:
        """Announce the turn's answer."""
        if self.hooks.has_handlers(PROMPT_COMPLETE):
            await self.hooks.emit(
                PROMPT_COMPLETE,
                PromptComplete(
                    prompt=self.prompt,
                    response=answer,
                    response_preview=answer[:200],
                    length=len(answer),
                ),
            )

    async def complete(
        self,
        *,
        provider: str | None = None,
        role: str | None = None,
        tool_choice: ToolChoice | None = None,
        model: str | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        max_output_tokens: int | None = None,
        stop: Sequence[str] | None = None,
        response_format: ResponseFormat | None = None,
        reasoning_effort: str | None = None,
    ) -> ChatResponse:
        """Ask the model once and store its answer.

        When a limit is reached the model reads so and gets no tools, so that its answer ends the turn; after
        that one the turn is over. Where the request has several candidates, the next one is asked when one fails,
        trying again may help, and nobody has seen a part of the answer.

        Args:
            provider: the mounted name of the provider to ask; default whom the turn's metadata or the loop's
                settings say. Handlers of `provider:resolve` may change it.
            role: the role of the loop's `roles` whose candidates are asked instead.
            tool_choice: as in `ChatRequest`.
            response_format: likewise; default what the turn's metadata has under that name. Where a vendor refuses
                that one, it is asked in another way; see `amplifier_sdk.loops.output`.
            model: likewise, as the rest; default the loop's settings.

        Raises:
            ConfigError: the provider is not mounted, or the role has no candidate that is.
            LLMError: the provider failed.
            BudgetExceededError: a limit was reached and the last answer given.
        """
        output = None
        if response_format is None and self.metadata:
            output = self._output_request()
        request = self._request(
            tool_choice=tool_choice,
            temperature=temperature,
            top_p=top_p,
            max_output_tokens=max_output_tokens or None,
            stop=stop,
            response_format=response_format,
            reasoning_effort=reasoning_effort or None,
        )
        refused: list[tuple[str, InvalidRequestError]] = []
        response: ChatResponse | None = None
        while response is None:
            asked = request
            if output is not None:
                asked = output.asked(request, self.specs)
            try:
                response = await self._ask_somebody(provider, role, model, asked)
            except InvalidRequestError as error:
                if output is None or len(output.strategies) == 1:
                    raise
                # for the rest of the turn: the vendor would refuse each further request
                refused.append((output.strategies.pop(0), error))
        if output is not None:
            response = output.read(response, self.specs)
        self._count(response)
        await self.context.add_message(response.to_message())
        # only now: what is refused otherwise as well was wrong for another reason
        for strategy, refusal in reversed(refused):
            self._note_refusal(strategy, refusal)
        return response

    def _count(self, response: ChatResponse) -> None:
        self.iteration += 1
        if response.usage is not None:
            if self.usage is None:
                self.usage = response.usage
            else:
                self.usage = self.usage + response.usage

    def _output_request(self) -> OutputRequest | None:
        """Return what the application wants the turn's answers to be."""
        if not self._is_output_read:
            # few turns want more than text
            from amplifier_sdk.loops.output import OutputRequest

            self._is_output_read = True
            self._output = OutputRequest.of(
                self.metadata, self.providers.values(), has_tools=bool(self.specs)
            )
        return self._output

    def _note_refusal(self, strategy: str, error: InvalidRequestError) -> None:
        """Report that the vendor refused a way of asking for an answer of a schema."""
        assert self._output is not None  # which named the strategy
        self.host.note_degradation(
            Degradation(
                requested=f"an answer of a schema by {strategy}",
                actual=self._output.strategy,
                reason=str(error),
            )
        )

    async def run_tools(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Run the calls of one answer and store their results in the calls' order.

        One call runs in the turn's own task; several run beside each other, as many at once as the
        session's limit says. Calls beyond the turn's limit are answered without being run.
        """
        self.calls_made += len(calls)
        # no task and no limit of parallel calls is needed for the most frequent case
        if len(calls) == 1:
            results = [await self.host.run_tool(calls[0], self.tools)]
        else:
            results = await self.host.run_tools(calls, self.tools)
        await self.store_results(calls, results)
        return results

    async def store_results(
        self, calls: Sequence[ToolCall], results: Sequence[ToolResult]
    ) -> None:
        """Store the results of calls that a loop ran itself, as answers to the calls of the model."""
        for call, result in zip(calls, results, strict=True):
            await self.context.add_message(result_message(call.id, call.name, result))

    async def take_steering(self) -> int:
        """Add what was typed while the agent worked as user messages; return how many that were.

        For a loop whose `takes_steering` is true, before each request.
        """
        texts = await self.host.take_steering(self.context)
        if texts:
            await self.loop.announce_steering(self, texts)
        return len(texts)

    def _request(self, **wishes: object) -> partial[ChatRequest]:
        """Return what builds a request; that of the settings is made once, unless the loop changes the `specs`."""
        request, tools = self._plain_request, self.specs or None
        if request is None or request.keywords["tools"] is not tools:
            config = self.loop.config
            request = self._plain_request = partial(
                ChatRequest,
                tools=tools,
                temperature=config.temperature,
                max_output_tokens=config.max_output_tokens,
                reasoning_effort=config.reasoning_effort,
                conversation_id=self.host.conversation_id,
            )
        given = {name: value for name, value in wishes.items() if value is not None}
        # almost no request wishes anything: the one of the settings will do
        if given:
            return partial(request, **given)
        return request

    def _is_decided(self, wish: str | None) -> bool:
        """Whether there is nothing to choose: one provider is mounted, or only the loop says which one is asked."""
        if wish is not None or self.metadata or self.loop.chooses:
            return self.host.assigned is not None
        if len(self.providers) < 2 or not self.hooks.has_handlers(PROVIDER_RESOLVE):
            return True
        return self.host.assigned is not None

    async def _ask_somebody(
        self,
        provider: str | None,
        role: str | None,
        model: str | None,
        request: partial[ChatRequest],
    ) -> ChatResponse:
        """Ask the one provider there is, or whoever the rules of `amplifier_sdk.loops.choice` say."""
        if not self._is_decided(provider or role):
            from amplifier_sdk.loops.choice import Wish  # most turns have one candidate

            wish = Wish(provider=provider, role=role, model=model)
            return await self.loop.choice.ask(
                self, wish, lambda one: self._ask(one.provider, one.model, request)
            )
        try:
            return await self._ask(
                self.provider_name, model or self.loop.config.model, request
            )
        except LLMError as error:
            # noted although there was no other: the next turn may have one
            self.loop.choice.failed(self.host.assigned or self.provider_name, error)
            raise

    def _ask(
        self, name: str, model: str | None, request: partial[ChatRequest]
    ) -> Awaitable[ChatResponse]:
        asked = self.providers.get(name)
        if asked is None:
            from amplifier_sdk.loops.choice import missing_provider  # likewise

            raise missing_provider(name, self.providers)
        build: RequestBuilder
        build = request
        if model is not None:
            build = partial(request, model=model)
        return self.host.complete(
            asked,
            build,
            context=self.context,
            name=name,
            model=model,
            iteration=self.iteration,
        )
